// Notes when a tool that sends is called, and when a message comes in. Both
// are measured alike, whoever brings the message.
import { stamp, writeAtRest } from "./stamps.ts";

export default function (pi: any): void {
	pi.on("tool_call", () => stamp("called"));
	pi.on("message_start", (e: any) => {
		if (e.message.role === "custom") stamp("came");
	});
	writeAtRest(pi);
}
