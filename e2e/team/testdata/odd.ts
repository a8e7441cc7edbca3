// Other extensions: one that blocks, one that changes the path, one that asks.
export default function (pi: any) {
	pi.on("tool_call", async (e: any, c: any) => {
		const path = String(e.input?.path ?? "");
		if (path.includes("blocked")) return { block: true, reason: "another extension says no" };
		if (path.includes("moved")) e.input.path = "arrived.txt";
		if (path.includes("asked")) await c.ui.confirm("Sure?", path);
		return undefined;
	});
	pi.registerCommand("to-start", {
		description: "for tests: to before the first answer",
		handler: async (_: string, c: any) => c.navigateTree(c.sessionManager.getBranch().find((e: any) => e.type === "message" && e.message.role === "user").id),
	});
	pi.registerCommand("reload-now", { description: "for tests", handler: async (_: string, c: any) => c.reload() });
}
