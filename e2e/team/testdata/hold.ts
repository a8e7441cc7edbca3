// For tests: another extension that holds a write, after Switchboard was asked
// about it: until the run is stopped, or until its human says something. The path
// says how.
export default function (pi: any) {
	pi.on("tool_call", async (e: any, c: any) => {
		if (e.toolName !== "write") return undefined;
		const path = String(e.input?.path ?? "");
		const stopped = () => new Promise((done) => (c.signal.aborted ? done(undefined) : c.signal.addEventListener("abort", done, { once: true })));
		if (path.includes("held")) await stopped();
		if (path.includes("forbidden")) {
			await stopped();
			return { block: true, reason: "another extension says no" };
		}
		if (path.includes("dialog") && !(await c.ui.confirm("Sure?", path, { signal: c.signal }))) return { block: true, reason: "its human says no" };
		return undefined;
	});
}
