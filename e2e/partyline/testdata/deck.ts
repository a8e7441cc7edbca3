// Mirrors touchtone:on-deck into the file DECK_LOG, a line for each event and
// session start, as another extension would show it; and reloads by a command.
import { appendFileSync, readFileSync } from "node:fs";

export default function (pi: any) {
	let ctx: any;
	const log = (line: unknown) => appendFileSync(process.env.DECK_LOG ?? "/dev/null", `${JSON.stringify(line)}\n`);

	/** How many of our messages the session's file holds. */
	function filed(): number {
		let n = 0;
		try {
			for (const line of readFileSync(ctx.sessionManager.getSessionFile(), "utf8").split("\n")) {
				const e = line && JSON.parse(line);
				if (e?.type === "custom_message" && e.customType === "switchboard") n += e.details.ids.length;
			}
		} catch {
			// not written yet
		}
		return n;
	}

	const off = pi.events.on("touchtone:on-deck", (e: any) => log({ count: e.count, keys: Object.keys(e).join(), filed: filed() }));
	pi.on("session_start", (e: any, c: any) => {
		ctx = c;
		log({ start: e.reason ?? "startup" });
	});
	pi.on("session_shutdown", () => off?.());
	pi.registerCommand("reload-now", { description: "reload", handler: async (_args: string, c: any) => c.reload() });
}
