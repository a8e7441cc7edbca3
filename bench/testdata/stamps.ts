// When something happened, on the clock that all processes of a machine share.
// Kept in memory and written when a run is over, where it delays nothing that
// is measured.
import { appendFileSync } from "node:fs";

const lines: string[] = [];

export function stamp(what: string, at = process.hrtime.bigint()): void {
	lines.push(`${JSON.stringify({ what, at: Number(at) })}\n`);
}

export function writeAtRest(pi: any): void {
	pi.on("agent_settled", () => {
		if (lines.length > 0) appendFileSync(process.env.BENCH_STAMPS as string, lines.splice(0).join(""));
	});
}
