// The phonebook: a count, and expanded a table of what dials whom.
import type { Theme } from "@earendil-works/pi-coding-agent";
import type { Component } from "@earendil-works/pi-tui";
import { actionOf, bag, contentText, count, keyOf, list, locators, type Party, party, text, texts, type ToolContext, type ToolResult } from "./render_details.ts";
import { clean, cut, drawing, fill, flow, margin, oneLine, widest, wrap } from "./render_text.ts";

const TABLE = 60; // columns of the terminal below which there is none
const GAP = 2;

/** A call that is no message, in one line. */
export function renderListCall(args: unknown, theme: Theme, context: ToolContext): Component {
	return drawing(
		(width) => {
			const pad = margin(width, context.outputPad);
			const room = width - 2 * pad;
			const what = [oneLine(actionOf(args)), locators(args).map(oneLine).join(", ")].filter(Boolean).join(" ");
			const title = cut("touchtone", room);
			const line = room < 14 || what === "" ? theme.fg("toolTitle", theme.bold(title)) : `${theme.fg("toolTitle", theme.bold(title))} ${theme.fg("muted", cut(what, room - 10))}`;
			const lines = ["", line];
			if (context.isPartial) lines.push("");
			return boxed(lines, width, pad, theme, context);
		},
		() => "touchtone",
	);
}

export function renderListResult(result: ToolResult, options: { expanded: boolean; isPartial: boolean }, theme: Theme, context: ToolContext): Component {
	const details = bag(result.details);
	const full = () => contentText(result.content) || text(details.error);
	return drawing((width) => {
		if (options.isPartial) return [];
		const pad = margin(width, context.outputPad);
		const room = width - 2 * pad;
		const key = keyOf(context);
		const output = (s: string) => theme.fg("toolOutput", s);
		const dim = (s: string) => theme.fg("dim", s);
		let lines: string[];
		if (context.isError || text(details.error) !== "" || details.action !== "list") {
			const all = wrap(clean(full()).trim(), room);
			const shown = options.expanded || all.length <= 2 ? all : [...all.slice(0, 1), ...wrap(`(${[key, "expand for details"].filter(Boolean).join(" to ")})`, room).map(dim)];
			lines = shown.map(output);
		} else {
			const sessions = list(details.sessions).map(party);
			const unmatched = texts(details.unmatched ?? []).map(oneLine);
			const summary = `📒 Phonebook: ${count(sessions.length, "session", "sessions")}`;
			lines = wrap(summary, room).map(output);
			if (!options.expanded && key !== "" && sessions.length > 0 && width >= TABLE) lines[lines.length - 1] += dim(cut(` (${key} to expand)`, room - widest(lines.slice(-1))));
			if (unmatched.length > 0) lines.push(...wrap(`no live session matches ${unmatched.join(", ")}`, room).map((l) => theme.fg("warning", l)));
			if (options.expanded && width >= TABLE && sessions.length > 0) lines.push("", ...table(sessions, room, theme));
		}
		return boxed([...lines, ""], width, pad, theme, context);
	}, full);
}

/** Lines on the background that Pi gives its own tools. */
function boxed(lines: string[], width: number, pad: number, theme: Theme, context: ToolContext): string[] {
	const bg = context.isPartial ? "toolPendingBg" : context.isError ? "toolErrorBg" : "toolSuccessBg";
	return lines.map((line) => theme.bg(bg, fill(" ".repeat(pad) + line, width)));
}

/** A column: its head, and how a session fills it. */
interface Column {
	head: string;
	lines(s: Party): string[];
	least: number; // columns it needs; 0 for all that its values take, as they are exact or useless
}

const NAME: Column = { head: "NAME", least: 12, lines: (s) => [(oneLine(s.name) || "–") + (s.self ? " (self)" : "")] };
const STATE: Column = { head: "STATE", least: 0, lines: (s) => [[s.state, s.note].map(oneLine).filter(Boolean).join(", ")] };
const PID: Column = { head: "PID", least: 0, lines: (s) => [oneLine(s.pid)] };
const ID: Column = { head: "SESSION", least: 0, lines: (s) => [oneLine(s.id)] };
const CWD: Column = { head: "CWD", least: 24, lines: (s) => [oneLine(s.cwd)] };
const MORE: Column = { head: "ALSO DIALS", least: 24, lines: (s) => s.values.map(([key, values]) => `${oneLine(key)} ${values.map(oneLine).join(", ")}`) };

/** The layouts from the widest: columns, and what stands in lines below each session. */
const LAYOUTS: [columns: Column[], below: Column[]][] = [
	[[NAME, STATE, PID, ID, CWD, MORE], []],
	[[NAME, STATE, PID, ID, CWD], [MORE]],
	[[NAME, STATE, PID, ID], [CWD, MORE]],
	[[NAME, PID, ID], [STATE, CWD, MORE]],
];

function table(sessions: Party[], room: number, theme: Theme): string[] {
	const muted = (s: string) => theme.fg("muted", s);
	const output = (s: string) => theme.fg("toolOutput", s);
	const dim = (s: string) => theme.fg("dim", s);
	for (const [columns, below] of LAYOUTS) {
		const used = columns.filter((c) => sessions.some((s) => c.lines(s).join("") !== ""));
		const want = used.map((c) => widest([c.head, ...sessions.flatMap((s) => c.lines(s))]));
		const widths = shares(want, used.map((c) => c.least), room - GAP * (used.length - 1));
		if (!widths) continue;
		const row = (cells: string[][], paint: (s: string) => string) => beside(cells.map((lines, i) => [lines.flatMap((l) => wrap(l, widths[i] ?? 1)), widths[i] ?? 1, paint]));
		return [
			...row(used.map((c) => [c.head]), dim),
			...sessions.flatMap((s) => [
				...row(used.map((c) => c.lines(s)), output),
				...flow(below.flatMap((c) => c.lines(s)).filter(Boolean), " · ", room - 2).map((l) => `  ${muted(l)}`),
			]),
		];
	}
	// An id longer than any of ours.
	return sessions.flatMap((s, i) => [...(i > 0 ? [""] : []), ...[NAME, STATE, PID, ID, CWD, MORE].flatMap((c) => c.lines(s)).filter(Boolean).flatMap((l) => wrap(l, room)).map(output)]);
}

/** Divides `room` among columns: what they want, or at least what they need. */
function shares(want: number[], least: number[], room: number): number[] | undefined {
	const widths = want.map((w, i) => (least[i] ? Math.min(w, least[i]) : w));
	let free = room - widths.reduce((a, b) => a + b, 0);
	if (free < 0) return undefined;
	for (const [i, w] of want.entries()) {
		const more = Math.min(free, w - (widths[i] ?? 0));
		widths[i] = (widths[i] ?? 0) + more;
		free -= more;
	}
	return widths;
}

/** Cells of several lines each, side by side. */
function beside(cells: [lines: string[], width: number, paint: (s: string) => string][]): string[] {
	const height = Math.max(...cells.map(([lines]) => lines.length), 1);
	const out: string[] = [];
	for (let i = 0; i < height; i++) {
		const parts = cells.map(([lines, width, paint]) => {
			const s = fill(lines[i] ?? "", width);
			return s.trim() === "" ? s : paint(s);
		});
		out.push(parts.join(" ".repeat(GAP)).trimEnd());
	}
	return out;
}
