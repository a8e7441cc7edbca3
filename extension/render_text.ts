// Text that others wrote, made safe to draw, and lines that always fit. What
// is drawn is what a human judges an agent's words by, so nothing a text
// contains may move the cursor, change colours or hide.
import { type Component, sliceByColumn, visibleWidth, wrapTextWithAnsi } from "@earendil-works/pi-tui";

const TAB = 4;

/** Shares of a line that a bubble may take. The one place that says so. */
export function measure(width: number): number {
	return Math.max(1, Math.floor(width * 0.72));
}

/** The text without colours, other controls made visible, tabs as spaces. */
export function clean(text: unknown): string {
	return asText(text)
		.replace(/\p{Surrogate}/gu, "\ufffd")
		.replace(/\x1b\[[0-9;:]*m/g, "")
		.replace(/\r\n?|[\x0b\x0c\x85\u2028\u2029]/g, "\n")
		.replace(/[\x00-\x08\x0e-\x1f]/g, (c) => String.fromCharCode(0x2400 + c.charCodeAt(0)))
		.replace(/[\x7f-\x9f]/g, "\ufffd")
		// Takes room in some terminals, none in others, or reorders the line.
		.replace(/[\xad\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\u{e0000}-\u{e0fff}]/gu, "")
		.replace(/(\p{M}{6})\p{M}+/gu, "$1")
		.replace(/(^|\s)(?=\p{M})/gmu, "$1\u25cc") // a mark with nothing to sit on
		.split("\n")
		.map(untab)
		.join("\n");
}

/** The text as one line. */
export function oneLine(text: unknown): string {
	return clean(text).replace(/\s+/gu, " ").trim();
}

function asText(v: unknown): string {
	if (typeof v === "string") return v;
	return typeof v === "number" || typeof v === "boolean" ? String(v) : "";
}

function untab(line: string): string {
	if (!line.includes("\t")) return line;
	return line.replace(/([^\t]*)\t/g, (_, before: string) => before + " ".repeat(TAB - (visibleWidth(before) % TAB)));
}

/** Clean text in lines of at most `width` columns; never empty. */
export function wrap(text: string, width: number): string[] {
	const lines: string[] = [];
	for (const line of wrapTextWithAnsi(text, width)) {
		if (fits(line, width)) lines.push(line);
		else lines.push(...wrapTextWithAnsi(plain(line), width));
	}
	return lines;
}

/** One line of clean text, cut with an ellipsis to at most `width` columns. */
export function cut(text: string, width: number): string {
	if (fits(text, width)) return text;
	const short = `${sliceByColumn(text, 0, width - 1, true).trimEnd()}…`;
	return fits(short, width) ? short : `${plain(text).slice(0, width - 1)}…`;
}

/** Whether a line takes at most `width` columns, alone and between spaces. */
function fits(line: string, width: number): boolean {
	return visibleWidth(line) <= width && visibleWidth(` ${line} `) <= width + 2;
}

/** The text in characters of one column each. For what has no other way to fit. */
function plain(text: string): string {
	return text.replace(/[^\x20-\x7e]/gu, "\ufffd");
}

/** `line` with spaces behind it, up to `width` columns. */
export function fill(line: string, width: number): string {
	return line + " ".repeat(Math.max(0, width - visibleWidth(line)));
}

/** `line` moved to the right edge of `width` columns, `pad` columns off it. */
export function right(line: string, width: number, pad: number): string {
	return " ".repeat(Math.max(0, width - pad - visibleWidth(line))) + line;
}

/** The margin at the edge of the terminal: none where columns are precious. */
export function margin(width: number, pad: unknown): number {
	const n = typeof pad === "number" && pad > 0 ? Math.floor(pad) : 0;
	return width >= 12 && n * 4 < width ? n : 0;
}

/**
 * A component of what `draw` returns for a width. Whatever `draw` does, each
 * line fits; when it fails, the lines of `fallback` are shown.
 */
export function drawing(draw: (width: number) => string[], fallback: () => string): Component {
	let lines: string[] | undefined;
	let drawn = 0;
	return {
		render(width: number): string[] {
			const w = Math.floor(width);
			if (!(w >= 1)) return [];
			if (lines && drawn === w) return lines;
			drawn = w;
			try {
				lines = draw(w).map((line) => held(line, w));
			} catch {
				lines = wrap(clean(safely(fallback)), w);
			}
			return lines;
		},
		invalidate() {
			lines = undefined;
		},
	};
}

function held(line: string, width: number): string {
	if (visibleWidth(line) <= width) return line;
	return cut(clean(line).replaceAll("\n", " "), width);
}

function safely(f: () => string): string {
	try {
		return f();
	} catch {
		return "";
	}
}

/** Columns that the widest of lines takes. */
export function widest(lines: string[]): number {
	return lines.reduce((w, line) => Math.max(w, visibleWidth(line)), 0);
}

/**
 * Rows of a name and a value, not coloured. A value that doesn't fit beside its
 * name goes below it, so that an id stays in one piece as long as it can.
 */
export function facts(rows: [key: string, value: string][], width: number): string[] {
	const known = rows.map(([key, value]): [string, string] => [key, oneLine(value)]).filter(([, value]) => value !== "");
	const keys = widest(known.map(([key]) => key)) + 2;
	return known.flatMap(([key, value]) => {
		if (keys + visibleWidth(value) <= width) return [fill(key, keys) + value];
		return [cut(key, width), ...wrap(value, width)];
	});
}

/** Phrases in lines, broken between them where that is possible. */
export function flow(phrases: string[], separator: string, width: number): string[] {
	const lines: string[] = [];
	for (const phrase of phrases) {
		const last = lines.at(-1);
		const joined = last === undefined ? phrase : last + separator + phrase;
		if (last !== undefined && visibleWidth(joined) <= width) lines[lines.length - 1] = joined;
		else lines.push(...wrap(phrase, width));
	}
	return lines;
}
