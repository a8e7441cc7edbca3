// Loaded before what is measured: notes when the hook begins.
import { began } from "./hook.ts";

export default function (pi: any): void {
	pi.on("tool_call", began);
}
