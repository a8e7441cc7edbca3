// An extension that takes its time with each prompt.
export default function (pi: any) {
	pi.on("input", (_e: any, c: any) => {
		c.ui.notify("thinking", "info");
		return new Promise((done) => setTimeout(done, 1500));
	});
}
