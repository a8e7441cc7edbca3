// The floor of a hook: the same question, answered by a child that repeats it.
import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";

export default function (pi: any): void {
	let child: ChildProcessWithoutNullStreams | undefined;
	let answered: (() => void) | undefined;

	pi.on("session_start", () => {
		child = spawn(process.env.BENCH_ECHO as string, [], { stdio: ["pipe", "pipe", "pipe"] });
		child.on("error", () => {});
		child.stdin.on("error", () => {});
		child.stdout.setEncoding("utf8");
		child.stdout.on("data", (text: string) => {
			if (text.endsWith("\n")) answered?.();
		});
		child.stdin.write(`${JSON.stringify({ hello: process.pid })}\n`);
	});
	pi.on("session_shutdown", () => child?.stdin.end());
	pi.on("tool_call", (e: any) => {
		const answer = new Promise<void>((resolve) => {
			answered = resolve;
		});
		child?.stdin.write(`${JSON.stringify({ tool: e.toolName, callId: e.toolCallId })}\n`);
		return answer;
	});
}
