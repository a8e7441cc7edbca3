// Draws what a test says: a touchtone whose results come from a file, and
// commands that put calls into the conversation and onto the deck.
import { readFileSync } from "node:fs";
import { renderCall, renderIncoming, renderResult } from "../../../extension/bubbles.ts";
import { Deck } from "../../../extension/deck.ts";

export default function (pi: any) {
	const scene = JSON.parse(readFileSync(process.env.SWITCHBOARD_SCENE ?? "", "utf8"));
	let deck: Deck | undefined;
	pi.registerTool({
		name: "touchtone",
		label: "Touchtone",
		description: "fake",
		parameters: { type: "object", properties: { action: { type: "string" } } },
		renderShell: "self",
		renderCall,
		renderResult,
		async execute() {
			const r = scene.results.shift();
			return { content: [{ type: "text", text: r.text }], details: r.details, isError: !!r.isError };
		},
	});
	pi.registerMessageRenderer("switchboard", renderIncoming);
	pi.on("session_start", (_e: any, ctx: any) => {
		deck = new Deck(ctx.ui);
	});
	pi.registerCommand("incoming", {
		description: "calls come in",
		handler: async () => pi.sendMessage({ customType: "switchboard", content: "text for the model", display: true, details: scene.incoming }),
	});
	pi.registerCommand("deck", { description: "calls wait", handler: async (n: string) => deck?.set(Number(n)) });
}
