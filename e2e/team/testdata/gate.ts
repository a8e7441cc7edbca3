// Another extension that lets writes of gated files run only once there is a
// file called go.
import { existsSync } from "node:fs";
import { join } from "node:path";

export default function (pi: any) {
	pi.on("tool_call", async (e: any, c: any) => {
		if (e.toolName !== "write" || !String(e.input?.path).includes("gated")) return undefined;
		while (!existsSync(join(c.cwd, "go"))) await new Promise((resolve) => setTimeout(resolve, 20));
		return undefined;
	});
}
