// Kills its own Pi the way a crash would, at the n-th time of an event:
// KILL_AT="turn_end:2". Loaded after Switchboard, so it acts after it.
export default function (pi: any) {
	const [name, nth] = (process.env.KILL_AT ?? ":").split(":");
	if (!name) return;
	let seen = 0;
	pi.on(name, (e: any) => {
		if (name.startsWith("message_") && e.message.role !== "custom") return;
		if (++seen === Number(nth)) process.kill(process.pid, "SIGKILL");
	});
}
