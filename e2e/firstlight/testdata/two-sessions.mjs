// A host that runs two Pi sessions in one process. Lines on standard input:
// "prompt N" gives session N a prompt, "dispose N" drops it without a word.
import { createInterface } from "node:readline";
const { createAgentSession, DefaultResourceLoader, SessionManager, getAgentDir } = await import(process.env.PI_PACKAGE);

const sessions = [];
for (const id of ["inner-1", "inner-2"]) {
	const resourceLoader = new DefaultResourceLoader({ cwd: process.cwd(), agentDir: getAgentDir(), additionalExtensionPaths: [process.env.EXTENSION] });
	await resourceLoader.reload();
	const { session } = await createAgentSession({ resourceLoader, sessionManager: SessionManager.create(process.cwd(), undefined, { id }) });
	await session.bindExtensions({});
	sessions.push(session);
}
console.log("ready");
for await (const line of createInterface({ input: process.stdin })) {
	const [what, n] = line.split(" ");
	if (what === "prompt") await sessions[n - 1].prompt(`prompt for ${n}`);
	if (what === "dispose") sessions[n - 1].dispose();
	console.log(`did ${line}`);
}
process.exit(0);
