// For tests: goes back in the conversation, to the answer that holds a text.
export default function (pi: any) {
	const textOf = (e: any) => JSON.stringify(e.message?.content ?? "");
	pi.registerCommand("to", {
		description: "for tests: /to <a text of an answer>",
		handler: async (text: string, c: any) => {
			const answer = c.sessionManager.getEntries().findLast((e: any) => e.type === "message" && e.message.role === "assistant" && textOf(e).includes(text));
			await c.navigateTree(answer.id);
			c.ui.notify(`went to ${text}`, "info");
		},
	});
}
