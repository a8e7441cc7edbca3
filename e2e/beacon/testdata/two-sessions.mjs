// A host that runs two Pi sessions in one process. Lines on standard input:
// "prompt N" gives session N a prompt and waits, "begin N" doesn't wait,
// "name N X" names it, "dispose N" drops it without a word.
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
for await (const line of createInterface({ input: process.stdin })) {
	const [what, n, name] = line.split(" ");
	const session = sessions[n - 1];
	if (what === "prompt") await session.prompt(`prompt for ${n}`);
	if (what === "begin") void session.prompt(`prompt for ${n}`);
	if (what === "name") session.setSessionName(name);
	if (what === "dispose") session.dispose();
	console.log(`did ${line}`);
}
process.exit(0);
