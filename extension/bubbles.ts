// Calls as chat bubbles: ours on the right, theirs on the left.
import type { Theme } from "@earendil-works/pi-coding-agent";
import type { Component } from "@earendil-works/pi-tui";
import { renderListCall, renderListResult } from "./phonebook.ts";
import { actionOf, bag, contentText, count, type Hints, type Incoming, incoming, keyOf, list, locators, outcomes, type Party, party, text, type ToolContext, type ToolResult } from "./render_details.ts";
import { clean, cut, drawing, facts, fill, flow, margin, measure, oneLine, right, widest, wrap } from "./render_text.ts";

const LINES = 24; // of a bubble that is not expanded
const NAMES = 12; // recipients named in a summary
const DIAL = "📞";
const PARTY = "📣";
const TEAM = "📡";

type Paint = (s: string) => string;

/** White on the terminal's own blue: palette colours, whatever the theme. */
const blue: Paint = (s) => `\x1b[44;97m${s}\x1b[39;49m`;

/** A call of touchtone, from its first letter on. Wants `renderShell: "self"`. */
export function renderCall(args: unknown, theme: Theme, context: ToolContext): Component {
	const action = actionOf(args);
	const composing = context.isPartial === true && !context.argsComplete;
	if (action !== "send" && action !== "broadcast") {
		// What it becomes shows with the first letters, so nothing is drawn that changes its shape.
		if (composing && action !== "list") return drawing(() => [], () => "");
		return renderListCall(args, theme, context);
	}
	const row = bag(context.state); // filled by renderResult, which Pi calls after this and before drawing
	return drawing(
		(width) => {
			const pad = margin(width, context.outputPad);
			const party = action === "broadcast";
			const dialled = locators(args).map(oneLine).join(", ");
			const whom = party ? dialled : text(row.name) || dialled;
			const lines = [right(theme.fg("muted", label(party ? PARTY : DIAL, whom, width - 2 * pad)), width, pad)];
			let body = clean(bag(args).message).trim();
			if (body === "" && composing) body = "…";
			if (body === "") return lines;
			const failed = typeof row.failed === "boolean" ? row.failed : context.isError === true;
			const b = bubble(body, width, pad, context.expanded === true, context);
			const paint: Paint = failed ? (s) => theme.bg("toolErrorBg", theme.fg("text", s)) : blue;
			lines.push(...b.lines.map((l) => right(paint(l), width, pad)));
			lines.push(...b.rest.map((l) => right(theme.fg("dim", l), width, pad)));
			return lines;
		},
		() => text(bag(args).message),
	);
}

/** What became of a call of touchtone. */
export function renderResult(result: ToolResult, options: { expanded: boolean; isPartial: boolean }, theme: Theme, context: ToolContext): Component {
	const details = bag(result.details);
	const action = text(details.action) || actionOf(context.args);
	if (action !== "send" && action !== "broadcast") return renderListResult(result, options, theme, context);
	// A broadcast that reached somebody, or may have, is told by its summary.
	const reached = action === "broadcast" && list(details.delivered).length + list(details.indeterminate).length > 0;
	const failed = !reached && (context.isError === true || text(details.error) !== "");
	const to = party(details.to);
	if (context.state && typeof context.state === "object") Object.assign(context.state, { failed, name: oneLine(to.name) });
	const full = () => contentText(result.content) || text(details.error);

	return drawing((width) => {
		if (options.isPartial) return [];
		const pad = margin(width, context.outputPad);
		const room = width - 2 * pad;
		/** Lines as one block against the right edge. */
		const block = (lines: string[], paint: Paint) => {
			const w = widest(lines);
			return lines.map((l) => right(paint(fill(l, w)), width, pad));
		};
		/** Each line against the right edge. */
		const ragged = (s: string, paint: Paint) => wrap(clean(s).replace(/\s+/g, " "), Math.min(room, measure(width))).map((l) => right(paint(l), width, pad));
		const dim: Paint = (s) => theme.fg("dim", s);
		const error: Paint = (s) => theme.fg("error", s);

		/** Writes that did not come off, or may not have. */
		const writes = () => [
			...outcomes(details.failed).flatMap((o) => ragged(`✗ not written to ${nameOf(o.entry)}: ${o.error || "no reason given"}`, error)),
			...outcomes(details.indeterminate).flatMap((o) => ragged(`? may or may not have reached ${nameOf(o.entry)}: ${o.error || "no reason given"}`, (s) => theme.fg("warning", s))),
		];
		const exact = () => {
			const rows = (title: string, all: { entry: Party; id: string }[]) =>
				all.flatMap((o) => ["", ...facts([[title, o.entry.name || o.entry.id], ["session", o.entry.id], ["message", o.id], ["pid", o.entry.pid], ["cwd", o.entry.cwd]], room)]);
			return block([...rows("delivered", outcomes(details.delivered)), ...rows("failed", outcomes(details.failed)), ...rows("unknown", outcomes(details.indeterminate))], dim);
		};

		if (failed) {
			const hint = options.expanded ? "" : ` (${[keyOf(context), "expand for details"].filter(Boolean).join(" to ")})`;
			const lines = room < 14 + hint.length ? ragged(`Not delivered${hint}`, error) : [right(error("Not delivered") + dim(hint), width, pad)];
			if (action === "broadcast") lines.push(...writes());
			if (!options.expanded) return lines;
			lines.push("", ...block(wrap(clean(full()).trim(), Math.min(room, measure(width))), (s) => theme.fg("toolOutput", s)));
			return lines;
		}
		if (action === "broadcast") {
			const delivered = outcomes(details.delivered);
			const names = delivered.slice(0, NAMES).map((o) => nameOf(o.entry));
			if (delivered.length > NAMES) names.push(`${delivered.length - NAMES} more`);
			const notes = list(details.matches).map((m) => `${oneLine(bag(m).selector)} matched ${Number(bag(m).count) || 0}`);
			if (details.selfExcluded === true) notes.push("this session left out");
			const lines = ragged(`${PARTY} Delivered to ${count(delivered.length, "session", "sessions")}${names.length > 0 ? `: ${names.join(", ")}` : ""}`, (s) => theme.fg("muted", s));
			if (notes.length > 0) lines.push(...flow(notes, " · ", Math.min(room, measure(width))).map((l) => right(dim(l), width, pad)));
			lines.push(...writes());
			return options.expanded ? [...lines, ...exact()] : lines;
		}
		const lines = [right(dim(cut("Sent", room)), width, pad)];
		if (options.expanded) lines.push(...block(facts([["session", to.id], ["message", text(details.id)], ["pid", to.pid], ["cwd", to.cwd]], room), dim));
		return lines;
	}, full);
}

/** A message of ours in the conversation: the calls that came in together. */
export function renderIncoming(message: { content?: unknown; details?: unknown }, options: { expanded: boolean; outputPad?: number } & Hints, theme: Theme): Component {
	const calls = incoming(message.details);
	const more = Number(bag(message.details).more) || 0;
	return drawing(
		(width) => {
			const pad = margin(width, options.outputPad ?? 1);
			const room = width - 2 * pad;
			const indent = " ".repeat(pad);
			const dim: Paint = (s) => theme.fg("dim", s);
			const paint: Paint = (s) => theme.bg("customMessageBg", theme.fg("text", s));
			const lines: string[] = [];
			const put = (head: string, body: string) => {
				if (lines.length > 0) lines.push("");
				const b = bubble(clean(body).trimEnd() || " ", width, pad, options.expanded, options);
				lines.push(indent + head, ...b.lines.map((l) => indent + paint(l)), ...b.rest.map((l) => indent + dim(l)));
			};
			const { team, calls: raw } = bag(message.details);
			const unread = !calls && list(raw).length > 0; // then its text must tell it all
			if (typeof team === "string" && team !== "" && !unread) put(theme.fg("customMessageLabel", label(TEAM, "Telecom", room)), team.replace(/^📡 Telecom: /, ""));
			else if (!calls) put(theme.fg("customMessageLabel", label(DIAL, "Switchboard", room)), contentText(message.content));
			for (const call of calls ?? []) {
				put(sender(call, theme, room), call.text);
				if (options.expanded) lines.push(...facts(about(call), room - inset(width)).map((l) => indent + " ".repeat(inset(width)) + dim(l)));
			}
			if (more > 0) {
				const note = `${count(more, "more call waits and follows", "more calls wait and follow")} at the end of this turn`;
				lines.push("", ...wrap(note, room).map((l) => indent + dim(l)));
			}
			return lines;
		},
		() => contentText(message.content),
	);
}

function label(glyph: string, whom: string, width: number): string {
	return cut(whom === "" ? glyph : `${glyph} ${whom}`, width);
}

function nameOf(p: Party): string {
	return oneLine(p.name) || oneLine(p.id) || "an unnamed session";
}

/** Who calls. A person is marked in a colour that no name can have. */
function sender(call: Incoming, theme: Theme, width: number): string {
	const glyph = call.partyLine ? PARTY : DIAL;
	const paint: Paint = (s) => theme.fg("customMessageLabel", s);
	const name = oneLine(call.from.name);
	if (!call.from.human) return paint(label(glyph, name || oneLine(call.from.session) || "an unnamed session", width));
	const mark: Paint = (s) => theme.fg("success", theme.bold(s));
	if (name === "" || width < 16) return mark(label(glyph, "a human", width));
	return mark(`${glyph} a human`) + paint(cut(` · ${name}`, width - 10));
}

function about(call: Incoming): [string, string][] {
	return [
		["session", call.from.session],
		["message", call.id],
		["sent", when(call.sent)],
		["cwd", call.from.cwd],
		["pid", call.from.pid],
		["dialled", call.selectors.join(", ")],
	];
}

/** A time as the clock on the wall shows it. */
function when(iso: string): string {
	const t = new Date(iso);
	if (Number.isNaN(t.getTime())) return iso;
	const two = (n: number) => String(n).padStart(2, "0");
	return `${t.getFullYear()}-${two(t.getMonth() + 1)}-${two(t.getDate())} ${two(t.getHours())}:${two(t.getMinutes())}:${two(t.getSeconds())}`;
}

/** Columns of a bubble beside its text, on each side. */
function inset(width: number): number {
	return width >= 12 ? 1 : 0;
}

/** The lines of a bubble, all of one width and not yet painted, and a note on those left out. */
function bubble(body: string, width: number, pad: number, expanded: boolean, hints: Hints): { lines: string[]; rest: string[] } {
	const outer = Math.min(measure(width), width - 2 * pad);
	let lines = wrap(body, outer - 2 * inset(width));
	const rest: string[] = [];
	if (!expanded && lines.length > LINES + 1) {
		const key = keyOf(hints);
		rest.push(cut(`… ${lines.length - LINES} more lines${key === "" ? "" : ` (${key} to expand)`}`, width - 2 * pad));
		lines = lines.slice(0, LINES);
	}
	const side = " ".repeat(inset(width));
	const inner = widest(lines);
	return { lines: lines.map((l) => side + fill(l, inner) + side), rest };
}
