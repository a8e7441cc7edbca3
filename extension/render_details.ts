// What the program says of a call, read from JSON that an older or a newer
// Switchboard may have written: whatever is missing or odd reads as absent.

export interface Party {
	id: string;
	name: string;
	pid: string;
	cwd: string;
	model: string;
	state: string;
	note: string;
	self: boolean;
	values: [key: string, values: string[]][];
}

/** A recipient and what became of the message to it. */
export interface Outcome {
	entry: Party;
	id: string; // of the message
	error: string;
}

export interface Incoming {
	id: string;
	partyLine: boolean;
	from: { session: string; name: string; pid: string; cwd: string; human: boolean };
	text: string;
	sent: string;
	selectors: string[];
}

type Bag = Record<string, unknown>;

export function bag(v: unknown): Bag {
	return typeof v === "object" && v !== null && !Array.isArray(v) ? (v as Bag) : {};
}

export function text(v: unknown): string {
	if (typeof v === "string") return v;
	return typeof v === "number" && Number.isFinite(v) ? String(v) : "";
}

export function list(v: unknown): unknown[] {
	return Array.isArray(v) ? v : [];
}

export function texts(v: unknown): string[] {
	return (Array.isArray(v) ? v : [v]).map(text).filter((s) => s.trim() !== "");
}

/** The locators of a call as one list, of arguments that may be half there. */
export function locators(args: unknown): string[] {
	const a = bag(args);
	return [...new Set([...texts(a.to), ...texts(a.selectors)])];
}

export function party(v: unknown): Party {
	const e = bag(v);
	return {
		id: text(e.id),
		name: text(e.name),
		pid: e.pid === 0 ? "" : text(e.pid),
		cwd: text(e.cwd),
		model: text(e.model),
		state: text(e.state),
		note: text(e.note),
		self: e.self === true,
		values: Object.entries(bag(e.values))
			.map(([key, values]): [string, string[]] => [key, texts(values)])
			.filter(([, values]) => values.length > 0)
			.sort(([a], [b]) => (a < b ? -1 : 1)),
	};
}

export function outcomes(v: unknown): Outcome[] {
	return list(v).map((o) => {
		const b = bag(o);
		return { entry: party(b.entry), id: text(b.id), error: text(b.error) };
	});
}

/** The calls of a message of ours; undefined when some can't be read, so that none is left out. */
export function incoming(details: unknown): Incoming[] | undefined {
	const calls = list(bag(details).calls);
	if (calls.length === 0) return undefined;
	const out: Incoming[] = [];
	for (const c of calls) {
		const b = bag(c);
		const from = bag(b.from);
		if (typeof b.text !== "string") return undefined;
		out.push({
			id: text(b.id),
			partyLine: b.kind === "party-line",
			from: {
				session: text(from.session),
				name: text(from.name),
				pid: from.pid === 0 ? "" : text(from.pid),
				cwd: text(from.cwd),
				human: from.human === true,
			},
			text: b.text,
			sent: text(b.sent),
			selectors: texts(b.selectors ?? []),
		});
	}
	return out;
}

/** The text of a message or of a tool's result. */
export function contentText(content: unknown): string {
	if (typeof content === "string") return content;
	return list(content)
		.map((c) => (bag(c).type === "text" ? text(bag(c).text) : ""))
		.filter((s) => s !== "")
		.join("\n");
}

export function count(n: number, one: string, many: string): string {
	return `${n} ${n === 1 ? one : many}`;
}

export function actionOf(args: unknown): string {
	return text(bag(args).action);
}

/** What the renderers need of Pi's contexts. All but `state` may be missing. */
export interface Hints {
	keyText?: (keybinding: "app.tools.expand") => string;
}

export interface ToolContext extends Hints {
	args?: unknown;
	state?: any;
	argsComplete?: boolean;
	expanded?: boolean;
	isPartial?: boolean;
	isError?: boolean;
	outputPad?: number;
}

export interface ToolResult {
	content?: unknown;
	details?: unknown;
}

/** The key that expands, as the human has it; "" when there is none. */
export function keyOf(hints: Hints): string {
	try {
		return text(hints.keyText?.("app.tools.expand")).trim();
	} catch {
		return "";
	}
}
