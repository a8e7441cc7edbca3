// An extension that takes its time with each prompt.
export default function (pi: any) {
	pi.on("input", () => new Promise((done) => setTimeout(done, 1500)));
}
