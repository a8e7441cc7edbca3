// Loaded after what is measured: notes when the hook is over.
import { ended } from "./hook.ts";
import { writeAtRest } from "./stamps.ts";

export default function (pi: any): void {
	pi.on("tool_call", ended);
	writeAtRest(pi);
}
