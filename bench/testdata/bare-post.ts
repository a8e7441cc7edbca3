// The floor of a message in Pi: a tool that writes to a socket, and a socket
// that starts a turn with what it is sent. Nothing is kept or promised.
import { connect, createServer, type Server, type Socket } from "node:net";

export default function (pi: any): void {
	const own = process.env.BENCH_SOCKET as string;
	const peer = process.env.BENCH_PEER as string;
	let server: Server | undefined;
	let line: Socket | undefined;

	pi.on("session_start", () => {
		server = createServer((s) => {
			s.setEncoding("utf8");
			s.on("data", (content: string) => pi.sendMessage({ customType: "bench", content, display: true, details: {} }, { triggerTurn: true }));
			s.on("error", () => {});
		}).listen(own);
	});
	pi.on("session_shutdown", () => {
		line?.destroy();
		server?.close();
	});
	pi.registerTool({
		name: "bare_send",
		label: "Send",
		description: "Sends a message",
		parameters: { type: "object", properties: { message: { type: "string" } }, required: ["message"] },
		async execute(_id: string, params: any) {
			line ??= connect(peer).on("error", () => {});
			line.write(params.message);
			return { content: [{ type: "text", text: "Sent." }], details: {} };
		},
	});
}
