// A command that reloads Pi's extensions, as /reload does in the terminal.
export default function (pi: any) {
	pi.registerCommand("reload-now", { description: "reload", handler: async (_args: string, ctx: any) => ctx.reload() });
}
