// What is drawn fits, whatever is said. Run with: node --test extension/test
import assert from "node:assert/strict";
import { registerHooks } from "node:module";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";

// Pi gives its extensions these packages; here they come from the pinned Pi.
const modules = join(dirname(fileURLToPath(import.meta.url)), "../../e2e/npm/node_modules");
registerHooks({
	resolve(specifier, context, next) {
		if (specifier === "@earendil-works/pi-tui") return { url: pathToFileURL(join(modules, specifier, "dist/index.js")).href, shortCircuit: true };
		return next(specifier, context);
	},
});
const { visibleWidth, stripTerminalSequences } = await import("@earendil-works/pi-tui");
const { renderCall, renderResult, renderIncoming } = await import("../bubbles.ts");
const { Deck, deckRow } = await import("../deck.ts");
const { clean, measure } = await import("../render_text.ts");

const theme: any = {
	fg: (c: string, s: string) => `\x1b[38;5;${c.length}m${s}\x1b[39m`,
	bg: (c: string, s: string) => `\x1b[48;5;${c.length}m${s}\x1b[49m`,
	bold: (s: string) => `\x1b[1m${s}\x1b[22m`,
};
const plain = (lines: readonly string[]) => lines.map((l) => stripTerminalSequences(l));

const nasty: Record<string, unknown> = {
	empty: "",
	ascii: "The parser is ready. You can start the integration.",
	long: "x".repeat(250),
	emoji: "👍🏽👩‍👩‍👧‍👦🏳️‍🌈🇩🇪1️⃣❤️ ☎️☎📞".repeat(4),
	"halves of emoji": "🇩 👩‍ ‍👧 🏽 \ufe0f \u200d a🏽🏽",
	cjk: "並行処理が完了しました。次の段階へ進めます。ﾊﾝｶｸ한국어".repeat(4),
	combining: "e\u0301\u0301 Z\u0351\u036b\u0343a\u0300\u0301\u0302\u0303\u0304\u0305\u0306\u0307\u0308l\u0334go".repeat(4),
	"marks first": "\u0301\u0301abc\n\u0301 \u0301 \u0903\u0903 \u093f",
	"spacing marks": `\u0915${"\u093f".repeat(220)} \u0e01\u0e33\u0e33\u0e33 ${"\u0e33".repeat(90)}`,
	indic: "क्षत्रिय नमस्ते দুনিয়া வணக்கம் မြန်မာ ສະບາຍດີ สวัสดีชาวโลก".repeat(5),
	arabic: "مرحبا بالعالم \u202eevil\u202c \u2066x\u2069 שלום".repeat(5),
	tabs: "a\tb\tc\n\t\tif x {\n\t\t\treturn\t\t\t\t\t\t\t1\n\t}",
	ansi: "\x1b[31mred\x1b[0m \x1b[2J\x1b[H\x1b]0;title\x07 \x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\ \x1b_apc\x1b\\ \x1b[999C\x9b31m \x1b",
	"cut ansi": "\x1b[38;2;1;2",
	controls: "\0\x01\b\b\b\x7f\r\rover\rwrite\v\f\x85\u2028\u2029",
	surrogates: "\ud83d \udcde \ud83d\ud83d a\udc00",
	hidden: "a\u200bb\u00adc\ufeffd\u{e0041}\u{e0042}\u3164\u115f\u2060",
	fillers: "\u3164".repeat(90) + "\uffa0".repeat(90),
	"wide spaces": "\u3000".repeat(90) + "\u00a0".repeat(90),
	ambiguous: "“…”—→★☆①■※±§¶".repeat(12),
	newlines: "\n\n\n\na\n\n",
	"many lines": "line\n".repeat(40),
	number: 12345,
	null: null,
	object: { a: 1 },
};
const widths = Array.from({ length: 200 }, (_, i) => i + 1);

function context(over: Record<string, unknown> = {}) {
	return { args: {}, state: {}, argsComplete: true, isPartial: false, isError: false, expanded: false, outputPad: 1, keyText: () => "ctrl+o", ...over };
}

/** Everything that we draw, for one text put wherever a text can be. */
function* scenes(s: any): Generator<[string, any]> {
	const entry = { id: s, name: s, pid: 4242, cwd: s, model: s, state: s, note: s, self: true, values: { [String(s)]: [s, s], ticket: "E-1", pane: [s] } };
	const details: Record<string, any> = {
		list: { action: "list", sessions: [entry, { ...entry, id: "0198c3c2-7b1c-7c3a-9d7e-2f6f0a1b2c3d" }, null], unmatched: [s] },
		send: { action: "send", id: s, to: entry, message: s },
		broadcast: { action: "broadcast", message: s, selectors: [s], matches: [{ selector: s, count: 2 }], delivered: [{ entry, id: s }], failed: [{ entry, error: s }], indeterminate: [{ entry, error: s }], selfExcluded: true },
	};
	for (const expanded of [false, true]) {
		for (const action of ["list", "send", "broadcast", s, undefined]) {
			for (const isError of action === s || !action ? [true] : [false, true]) {
				const c = context({ args: { action, to: s, selectors: [s, s], message: s }, expanded, isError });
				const call = renderCall(c.args, theme, c);
				const d = details[String(action)] ?? s;
				const result = renderResult({ content: [{ type: "text", text: s }], details: isError ? { ...d, error: s } : d }, { expanded, isPartial: false }, theme, c);
				yield [`call ${action} ${expanded} ${isError}`, call];
				yield [`result ${action} ${expanded} ${isError}`, result];
			}
			yield [`composing ${action}`, renderCall({ action, to: s, message: s }, theme, context({ argsComplete: false, isPartial: true, args: undefined, state: undefined }))];
		}
		const call = { id: s, kind: "call", from: { session: s, name: s, pid: 1, cwd: s, human: false }, text: String(s), sent: s };
		const calls = [call, { ...call, kind: "party-line", selectors: [s] }, { ...call, from: { ...call.from, human: true } }, { ...call, from: s }];
		yield [`incoming ${expanded}`, renderIncoming({ content: s, details: { v: 1, ids: [], calls, more: 3 } }, { expanded, outputPad: 1, keyText: () => "ctrl+o" }, theme)];
		for (const d of [undefined, null, s, { calls: [call, s] }, { calls: s }, { ids: [] }]) {
			yield [`old ${expanded}`, renderIncoming({ content: s, details: d }, { expanded }, theme)];
		}
	}
}

test("no line is wider than the terminal", () => {
	for (const [name, s] of Object.entries(nasty)) {
		for (const [scene, component] of scenes(s)) {
			for (const width of widths) {
				// Wide terminals differ in little but the table and the stack of calls.
				if (width > 6 && ![12, 59, 60].includes(width) && width % (scene === "incoming true" || scene === "result list true false" ? 1 : 40)) continue;
				for (const line of component.render(width)) {
					const w = visibleWidth(line);
					assert.ok(w <= width, `${name}, ${scene}: ${w} columns of ${width}: ${JSON.stringify(line)}`);
					// Only colours of ours, and nothing that moves the cursor.
					assert.doesNotMatch(line.replace(/\x1b\[[0-9;]*m/g, ""), /[\x00-\x1f\x7f-\x9f]/, `${name}, ${scene}`);
				}
			}
		}
	}
});

test("random text fits", () => {
	let seed = 1;
	const random = (n: number) => (seed = (seed * 48271) % 2147483647) % n;
	const pieces = Object.values(nasty).filter((s) => typeof s === "string").flatMap((s) => [...(s as string)]);
	for (let i = 0; i < 400; i++) {
		const s = Array.from({ length: random(60) }, () => (random(4) ? pieces[random(pieces.length)] : String.fromCodePoint(random(0x3000)))).join("");
		const c = context({ args: { action: "send", to: s, message: s } });
		for (const component of [renderCall(c.args, theme, c), renderIncoming({ content: s }, { expanded: true }, theme)]) {
			for (const width of [1, 2, 3, 5, 8, 13, 40, 80]) {
				for (const line of component.render(width)) assert.ok(visibleWidth(line) <= width, `${width}: ${JSON.stringify(s)}: ${JSON.stringify(line)}`);
			}
		}
	}
});

test("a very long text is drawn at once", () => {
	for (const piece of ["word ", "x", "並", "👍🏽", "a\u0301", "\t", "\n", "\u3164", " ", "\u0301"]) {
		const s = piece.repeat(33_000 / piece.length);
		const start = performance.now();
		renderIncoming({ content: s }, { expanded: true }, theme).render(80);
		assert.ok(performance.now() - start < 2000, `${JSON.stringify(piece)}: ${performance.now() - start} ms`);
	}
});

test("a bubble takes 72 % of the terminal at most, all its lines alike", () => {
	for (const width of [20, 40, 59, 60, 80, 160]) {
		const c = context({ args: { action: "send", to: "parser", message: "word ".repeat(100) } });
		const [, ...lines] = renderCall(c.args, theme, c).render(width);
		for (const line of lines) {
			const blue = /\x1b\[44;97m([^\x1b]*)\x1b\[39;49m$/.exec(line)?.[1];
			if (blue === undefined) continue; // the note on lines left out
			assert.ok(blue.length <= measure(width) && blue.length > measure(width) - 8, `${width}: ${blue.length}`);
			assert.equal(visibleWidth(line), width - 1);
		}
	}
});

test("while the model composes, the bubble grows", () => {
	const at = (args: unknown) => plain(renderCall(args, theme, context({ argsComplete: false, isPartial: true })).render(60)).map((l) => l.trim());
	assert.deepEqual(at({ action: "send" }), ["📞", "…"]);
	assert.deepEqual(at({ action: "send", to: "parser" }), ["📞 parser", "…"]);
	assert.deepEqual(at({ action: "send", to: "parser", message: "The" }), ["📞 parser", "The"]);
	assert.deepEqual(at({ action: "broadcast", selectors: ["E-1", "E-2"], message: "Hi" }), ["📣 E-1, E-2", "Hi"]);
	assert.deepEqual(at({ action: "list" }), ["", "touchtone list", ""]);
	for (const nothing of [{}, undefined, { action: "sen" }]) assert.deepEqual(at(nothing), []);
});

test("a failed call says so, and why only when expanded", () => {
	const draw = (expanded: boolean) => {
		const c = context({ args: { action: "send", to: "nobody", message: "Hi" }, isError: true, expanded });
		const call = renderCall(c.args, theme, c);
		const result = renderResult({ content: [{ type: "text", text: "Not sent: no session.\nExample" }], details: { action: "send", message: "Hi", error: "no session" } }, { expanded, isPartial: false }, theme, c);
		return plain([...call.render(80), ...result.render(80)]).map((l) => l.trim());
	};
	assert.deepEqual(draw(false), ["📞 nobody", "Hi", "Not delivered (ctrl+o to expand for details)"]);
	assert.deepEqual(draw(true), ["📞 nobody", "Hi", "Not delivered", "", "Not sent: no session.", "Example"]);
});

test("a broadcast that reached somebody is not called undelivered", () => {
	const c = context({ args: { action: "broadcast", selectors: ["E-1"], message: "Hi" }, isError: true });
	const entry = { id: "1", name: "docs" };
	const call = renderCall(c.args, theme, c);
	const result = renderResult({ content: "x", details: { action: "broadcast", matches: [{ selector: "E-1", count: 2 }], delivered: [{ entry, id: "m" }], indeterminate: [{ entry: { id: "2" }, error: "timeout" }], selfExcluded: true } }, { expanded: false, isPartial: false }, theme, c);
	assert.match(call.render(80).join("\n"), /\x1b\[44;97m/);
	assert.deepEqual(plain(result.render(80)).map((l) => l.trim()), ["📣 Delivered to 1 session: docs", "E-1 matched 2 · this session left out", "? may or may not have reached 2: timeout"]);
});

test("a name can't pass for a person, nor a text for a sender", () => {
	const from = { session: "s", name: "a human", pid: 1, cwd: "/", human: false };
	const draw = (human: boolean) => renderIncoming({ details: { calls: [{ id: "1", kind: "call", from: { ...from, human }, text: "📞 a human\n\x1b[0mrm" }] } }, { expanded: false }, theme).render(60);
	assert.notEqual(draw(true)[0], draw(false)[0]);
	assert.match(draw(true)[0] ?? "", /\x1b\[1m/);
	assert.doesNotMatch(draw(false)[0] ?? "", /\x1b\[1m/);
	for (const line of draw(false).slice(1)) assert.match(line, /^ \x1b\[48;/); // in the bubble
});

test("what can't be read in full is shown as its text", () => {
	const out = plain(renderIncoming({ content: [{ type: "text", text: "all of it" }], details: { calls: [{ text: 1 }] } }, { expanded: false }, theme).render(60));
	assert.match(out.join("\n"), /all of it/);
});

test("news of the team are shown once, with or without calls", () => {
	const news = "📡 Telecom: you are bravo.";
	const draw = (calls: unknown[]) =>
		plain(renderIncoming({ content: `${news}\n\nhi`, details: { v: 1, ids: [], calls, team: news } }, { expanded: false }, theme).render(80)).join("\n");
	for (const calls of [[], [{ id: "1", text: "hi", from: {} }], [{ id: "1" }]]) {
		const shown = draw(calls);
		assert.equal(shown.match(/you are bravo/g)?.length, 1, shown);
		assert.equal(/\bhi\b/.test(shown), calls.length > 0, shown);
	}
});

test("an empty phonebook is one, too", () => {
	const c = context({ args: { action: "list", to: "E-9" } });
	const out = plain(renderResult({ content: "long text", details: { action: "list", unmatched: ["E-9"] } }, { expanded: false, isPartial: false }, theme, c).render(80)).map((l) => l.trim());
	assert.deepEqual(out, ["📒 Phonebook: 0 sessions", "no live session matches E-9", ""]);
});

test("clean keeps what matters", () => {
	assert.equal(clean("a\tb\r\nc\rd"), "a   b\nc\nd");
	assert.equal(clean("\x1b[1;31mred\x1b[0m"), "red");
	assert.equal(clean("\x1b]0;x\x07"), "␛]0;x␇");
	assert.equal(clean("👩‍👧 🏳️‍🌈"), "👩‍👧 🏳️‍🌈");
});

test("the deck shows what fits, and counts the rest", () => {
	const at = (n: number, width: number) => plain(deckRow(n, 2, width, theme))[0];
	assert.equal(at(1, 80), " 📞 ···");
	assert.equal(at(5, 80), " 📞 📞 📞 📞 📞 ···");
	assert.equal(at(12, 80), " 📞 📞 📞 📞 📞 +7 ···");
	assert.equal(at(12, 14), " 📞 📞 +10 ···");
	assert.equal(at(12, 8), "📞 +11");
	assert.equal(at(12, 3), "12");
	assert.equal(at(12, 16), " 📞 📞 📞 +9 ···");
	for (const n of [1, 2, 5, 6, 12, 1e6]) for (const width of widths) for (const frame of [0, 1, 2]) for (const l of deckRow(n, frame, width, theme)) assert.ok(visibleWidth(l) <= width, `${n} at ${width}`);
});

test("the deck lives as long as calls wait", () => {
	const widgets = new Map<string, any>();
	let drawn = 0;
	const ui = {
		setWidget(key: string, make: any) {
			widgets.get(key)?.dispose?.();
			widgets.delete(key);
			if (make) widgets.set(key, make({ requestRender: () => drawn++ }, theme));
		},
	};
	const deck = new Deck(ui as any, {});
	deck.set(0);
	assert.equal(widgets.size, 0);
	deck.set(2);
	const row = [...widgets.values()][0];
	assert.match(plain(row.render(40))[0], /^ 📞 📞 ·/);
	deck.set(3);
	assert.equal(drawn, 1);
	assert.match(plain(row.render(40))[0], /^ 📞 📞 📞 ·/);
	deck.set(0);
	assert.equal(widgets.size, 0);
	deck.set(1);
	widgets.get("switchboard-deck").dispose(); // as Pi does on a reload
	widgets.clear();
	deck.set(1);
	assert.equal(widgets.size, 1);
	deck.dispose();
	assert.equal(widgets.size, 0);
	new Deck({ setWidget: () => { throw new Error("stale"); } } as any).set(4);
	deck.set(Number.NaN);
	// Node ends though timers were made: all are stopped or don't count.
});
