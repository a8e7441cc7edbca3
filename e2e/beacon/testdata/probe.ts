// What the tests need inside of Pi: a second opinion about whether it is idle,
// and commands for what RPC has none for. Loaded after Switchboard.
export default function (pi: any) {
	let ctx: any;
	let idle: boolean | undefined;
	let spans = 0; // how often Pi was seen to become idle
	// After two prompts at once isIdle() can be true in the middle of a run.
	const atRest = (c: any) => c.isIdle() && !c.signal;
	const sample = () => {
		try {
			const now = ctx && atRest(ctx);
			if (now && idle === false) spans++;
			idle = now ?? idle;
		} catch {
			// the session is being replaced
		}
	};
	for (const name of [
		"session_start", "input", "before_agent_start", "agent_start", "turn_end", "agent_end", "agent_before_settle", "agent_settled",
		"session_before_compact", "session_compact", "session_compact_failed", "session_before_tree", "session_tree",
	]) {
		pi.on(name, (_e: any, c: any) => {
			ctx = c;
			sample();
			setImmediate(sample);
			if (process.env.PROBE_LOG) console.error(`probe ${Date.now()} ${name} idle=${idle} pending=${c.hasPendingMessages()}`);
		});
	}
	const ticking = setInterval(sample, 2);
	ticking.unref();
	pi.on("session_shutdown", () => clearInterval(ticking));

	const say = (what: unknown) => ctx.ui.notify(`probe ${JSON.stringify(what)}`, "info");
	pi.registerCommand("probe", {
		description: "for tests",
		handler: async (args: string, c: any) => {
			ctx = c;
			const [what, arg] = args.split(" ");
			const first = () => c.sessionManager.getEntries().find((e: any) => e.type === "message" && e.message.role === "assistant")?.id;
			switch (what) {
				case "idle": // what Pi says of itself
					say({ idle: atRest(c), pending: c.hasPendingMessages(), spans });
					break;
				case "tree": // back to the first answer; "sum" summarizes what is left
					say({ tree: first() && await c.navigateTree(first(), { summarize: arg === "sum" }).catch(String) });
					break;
				case "confirm":
					say({ confirmed: await c.ui.confirm("Sure?", "a dialog") });
					break;
				case "reload":
					await c.reload();
					break;
			}
		},
	});

	// PROBE_SEND=agent_end: one message of an extension at that event.
	let sent = false;
	if (process.env.PROBE_SEND) {
		pi.on(process.env.PROBE_SEND, () => {
			if (sent) return;
			sent = true;
			pi.sendMessage({ customType: "probe", content: "from the probe", display: true }, { triggerTurn: true });
		});
	}
	// PROBE_CONFIRM=bash: ask the human before that tool.
	if (process.env.PROBE_CONFIRM) {
		pi.on("tool_call", async (e: any, c: any) => {
			if (e.toolName === process.env.PROBE_CONFIRM) await c.ui.confirm("Sure?", `run ${e.toolName}`);
		});
	}
	// PROBE_INPUT=300: think that many milliseconds about each prompt.
	if (process.env.PROBE_INPUT) pi.on("input", () => new Promise((done) => setTimeout(done, Number(process.env.PROBE_INPUT))));
	// PROBE_CANCEL=session_before_compact: as an extension that forbids it.
	if (process.env.PROBE_CANCEL) pi.on(process.env.PROBE_CANCEL, () => ({ cancel: true }));
}
