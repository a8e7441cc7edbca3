// A command that reloads Pi's extensions, as /reload does in the terminal, and
// says when it begins.
export default function (pi: any) {
	pi.registerCommand("reload-now", {
		description: "reload",
		handler: async (_args: string, ctx: any) => {
			ctx.ui.notify("reloading");
			await ctx.reload();
		},
	});
}
