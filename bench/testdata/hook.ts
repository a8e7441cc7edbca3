// The two ends of a tool_call hook. Each extension has its own copy of this
// module, so what they share is in the process.
import { stamp } from "./stamps.ts";

const key = Symbol.for("switchboard.bench.hook");

export function began(): void {
	(globalThis as any)[key] = process.hrtime.bigint();
}

export function ended(): void {
	const now = process.hrtime.bigint();
	stamp("began", (globalThis as any)[key]);
	stamp("ended", now);
}
