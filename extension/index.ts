// Switchboard for Pi: forwards Pi's events to a sidecar, applies what it
// answers, draws what it says. Rules live in the sidecar.
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { ExtensionAPI, ExtensionContext } from "@earendil-works/pi-coding-agent";
import { findBinary } from "./binary.ts";
import { renderCall, renderIncoming, renderResult } from "./bubbles.ts";
import { Deck } from "./deck.ts";
import { Link } from "./link.ts";

const PROTOCOL = 1;
const MESSAGE = "switchboard"; // custom type of our messages in a session
const STATUS = "switchboard";
const CHOICE = "switchboard-telecom"; // custom type of what the human chose with /telecom
const ON_DECK = "touchtone:on-deck"; // on Pi's event bus, for other extensions
/** How our tools are drawn; one without an entry gets Pi's own look. */
const DRAWING: Record<string, object> = { touchtone: { renderShell: "self", renderCall, renderResult } };
const LOOK_MS = 1000;
const HELLO_MS = 10_000;
const PROMPT_MS = 3000; // how long a prompt may take to become a run; another extension may swallow it
const PROMPT_CHARS = 2000; // of a prompt: enough to see what it is about
const TOOL_MS = 10_000; // how long a call of our tool may hang with a helper that does not respond

/** What begins with an event, by the event that ends it. */
const ENDS: Record<string, string> = {
	session_compact: "session_before_compact",
	session_compact_failed: "session_before_compact",
	session_tree: "session_before_tree",
	tool_execution_end: "tool_execution_start",
	ui_prompt_end: "ui_prompt_start",
};
const BEGINS = new Set(Object.values(ENDS));

interface Handover {
	batch: number;
	message: { customType: string; content: string; display: boolean; details: { ids: string[] } };
	continue?: boolean;
}

export default function switchboard(pi: ExtensionAPI): void {
	if (!["", "0"].includes(process.env.SWITCHBOARD_DISABLE ?? "")) return;

	// All state belongs to this instance: a host may run several in one process.
	let ctx: ExtensionContext | undefined; // of the latest event; undefined outside a session
	let link: Link | undefined;
	let deck: Deck | undefined; // the row of waiting calls
	let ready = false; // start-up is over, so a turn may be triggered
	let hooks = new Set<string>();
	let commands: { name: string; what: string }[] = []; // what may follow /telecom
	let handed = new Set<string>(); // given to Pi, not yet seen in its entries
	let looked = ""; // what the last look found
	let open = new Map<string, Record<string, unknown>>(); // events that began something which has not ended
	let retries: Record<string, unknown>[] = []; // events of a run that is being repeated
	let prompted = 0; // when a prompt came in that has not become a run yet
	let starting = 0; // when a run was being prepared that has not begun yet
	let resting = true; // what Pi was last seen to be
	let turned = Date.now(); // when it became that
	let looking: NodeJS.Timeout | undefined;
	let before: Promise<unknown> = Promise.resolve(); // the call of a tool of ours that goes first
	const told = new Set<string>();

	/** Runs f; whatever it throws is told once and goes no further. */
	function safely<T>(f: () => T): T | undefined {
		try {
			return f();
		} catch (err) {
			tellOnce("internal", `switchboard: internal fault, Pi goes on: ${err}`);
			return undefined;
		}
	}

	function tell(text: string, level: "info" | "warning"): void {
		try {
			ctx?.ui.notify(text, level);
		} catch {
			// the session is being replaced
		}
	}

	function tellOnce(kind: string, text: string): void {
		if (told.has(kind)) return;
		told.add(kind);
		tell(text, "warning");
	}

	function fault(kind: string, detail: string): void {
		if (kind === "deaf") tellOnce(kind, `switchboard: its helper does not respond (${detail}); Pi goes on without it until it does`);
		else tellOnce("died", `switchboard: its helper stopped${detail ? ` (${detail})` : ""}; Pi goes on, and it is being started again`);
	}

	/** Ids of our messages that the conversation holds, of those wanted. */
	function inEntries(wanted?: Set<string>): string[] {
		const ids: string[] = [];
		for (const entry of ctx?.sessionManager.getEntries() ?? []) {
			if (entry.type !== "custom_message" || entry.customType !== MESSAGE) continue;
			for (const id of (entry.details as { ids?: unknown[] } | undefined)?.ids ?? []) {
				if (typeof id === "string" && (!wanted || wanted.has(id))) ids.push(id);
			}
		}
		return ids;
	}

	/** What the human chose last on this branch of the conversation. */
	function choice(): { off: boolean } | undefined {
		const kept = ctx?.sessionManager.getBranch().findLast((e: any) => e.type === "custom" && e.customType === CHOICE) as any;
		return typeof kept?.data?.off === "boolean" ? { off: kept.data.off } : undefined;
	}

	/** The calls of hooked tools that this branch of the conversation holds. */
	function hookedCalls(): string[] {
		const results = (ctx?.sessionManager.getBranch() ?? []).map((e: any) => (e.type === "message" ? e.message : undefined));
		return results.filter((m) => m?.role === "toolResult" && hooks.has(m.toolName)).map((m) => m.toolCallId);
	}

	function modelName(): string | undefined {
		const model = ctx?.model;
		// Pi has a stand-in of this name while none is chosen.
		return model && model.provider !== "unknown" ? `${model.provider}/${model.id}` : undefined;
	}

	/** Whether Pi is at rest. When two prompts came at once and the second was
	 *  refused it calls itself idle before and in the middle of the run, which
	 *  has a signal once it began. */
	function atRest(c: ExtensionContext): boolean {
		const rests = c.isIdle() && !c.signal && Date.now() - starting > PROMPT_MS;
		if (rests !== resting) {
			resting = rests;
			turned = Date.now();
		}
		return rests;
	}

	function hello(): void {
		const line = link;
		const c = ctx;
		if (!line || !c) return;
		const sm = c.sessionManager;
		void line
			.request("hello", {
				protocol: PROTOCOL,
				version: ownVersion(),
				session: { id: sm.getSessionId(), file: sm.getSessionFile(), name: sm.getSessionName() },
				cwd: c.cwd,
				model: modelName(),
				mode: c.mode,
				pid: process.pid,
				idle: atRest(c),
				since: turned,
				inContext: [...new Set([...inEntries(), ...handed])],
				startedAt: Math.round(Date.now() - process.uptime() * 1000),
				now: snapshot(),
				open: [...retries, ...open.values()].sort((a: any, b: any) => a.at - b.at),
				retry: pi.getSettings?.().retry ?? {},
				choice: choice(),
				limits: typeof sm.getLeafEntry === "function" ? "" : "this Pi does not tell when it repeats a request: that shows as working",
			}, HELLO_MS)
			.then((w) => {
				if (!w || link !== line) return;
				hooks = new Set(w.hooks ?? []);
				commands = w.commands ?? [];
				if (w.problem) {
					tellOnce("problem", `switchboard is off: ${w.problem}`);
					ctx?.ui.setStatus(STATUS, "📞 off");
				}
			})
			.catch((err) => tellOnce("internal", `switchboard: internal fault, Pi goes on: ${err}`));
	}

	function event(type: string, fields: Record<string, unknown> = {}): void {
		const e = { type, at: Date.now(), ...fields };
		if (ctx) atRest(ctx);
		looked = "";
		remember(e);
		link?.notify("event", e);
	}

	/** Keeps what a sidecar that is started in the middle of things must know. */
	function remember(e: Record<string, any>): void {
		if (BEGINS.has(e.type)) open.set(`${e.type} ${e.callId ?? ""}`, e);
		else if (ENDS[e.type]) open.delete(`${ENDS[e.type]} ${e.callId ?? ""}`);
		if (e.type === "agent_settled" || (e.type === "agent_end" && !e.error)) retries = [];
		else if (e.type === "agent_end" || (retries.length > 0 && (e.type === "agent_start" || e.after))) retries.push(e);
		if (e.type === "agent_settled" || (e.type === "look" && e.idle)) {
			for (const key of open.keys()) if (!key.startsWith("ui_prompt_start")) open.delete(key);
		}
	}

	/** What Pi says of itself now, and no event tells. */
	function snapshot(): Record<string, unknown> {
		const usage = ctx?.getContextUsage();
		return {
			pending: !!ctx?.hasPendingMessages(),
			usage: { tokens: usage?.tokens ?? null, contextWindow: usage?.contextWindow ?? null, percent: usage?.percent ?? null },
		};
	}

	/** Reports whether Pi is idle: closes what Pi ends without an event. */
	function look(after?: string, message?: string): void {
		if (!ctx) return;
		let idle: boolean;
		let pending: boolean;
		try {
			idle = atRest(ctx);
			pending = ctx.hasPendingMessages();
		} catch {
			leave("quit"); // the session was dropped without a word
			return;
		}
		if (`${idle} ${pending}` === looked && !after) return;
		event("look", { idle, now: snapshot(), ...(after ? { after, message, leaf: ctx.sessionManager.getLeafEntry?.()?.type } : {}) });
		looked = `${idle} ${pending}`;
	}

	function leave(reason: string): void {
		link?.notify("bye", { reason });
		link?.close();
		safely(() => deck?.dispose());
		deck = undefined;
		clearInterval(looking);
		link = undefined;
		ctx = undefined;
		ready = false;
	}

	/** Forwards an event of Pi's that wants no answer. */
	function forward(name: string, pick: (e: any) => Record<string, unknown> = () => ({}), lookAfter = false): void {
		(pi.on as any)(name, (e: any, c: ExtensionContext) => {
			safely(() => {
				ctx = c;
				event(name, pick(e));
				// Inside the handler Pi still counts as busy with it.
				if (lookAfter) setImmediate(() => safely(() => look()));
			});
		});
	}

	/** Asks what is due. Undefined when nothing is, or when Pi may not wait. */
	async function due(at: string, fields: Record<string, unknown>, c: ExtensionContext): Promise<Handover | undefined> {
		try {
			ctx = c;
			looked = "";
			const h: Handover | undefined = await link?.ask("boundary", { at, ...fields, now: snapshot() }, c.signal);
			if (!h) return undefined;
			if (c.signal?.aborted) {
				link?.notify("declined", { batch: h.batch });
				return undefined;
			}
			for (const id of h.message.details.ids) handed.add(id);
			return h;
		} catch (err) {
			tellOnce("internal", `switchboard: internal fault, Pi goes on: ${err}`);
			return undefined;
		}
	}

	/** Starts a turn with what the sidecar hands over, if Pi is at rest. */
	function wake(h: Handover): void {
		let accepted = false;
		let idle = true;
		if (ctx && ready) {
			// Pi would refuse the prompt that others still look at, if we ran first.
			idle = atRest(ctx) && Date.now() - prompted > PROMPT_MS;
			if (idle && (ctx.mode === "tui" || ctx.mode === "rpc")) {
				pi.sendMessage(h.message, { triggerTurn: true });
				idle = ctx.isIdle();
				accepted = !idle;
				if (accepted) for (const id of h.message.details.ids) handed.add(id);
			}
		}
		link?.notify("woken", { batch: h.batch, accepted, idle });
	}

	/** Does what the sidecar says; what a newer one may say is ignored. */
	function obey(method: string, params: any): unknown {
		switch (method) {
			case "snapshot":
				return snapshot();
			case "wake":
				wake(params);
				return undefined;
			case "hold":
				link?.extend(params.callId, params.ms);
				return undefined;
			case "tell":
				tell(params.text, params.level);
				return undefined;
			case "deck":
				pi.events.emit(ON_DECK, { count: params.count });
				deck?.set(params.count);
				return undefined;
			case "status":
				ctx?.ui.setStatus(STATUS, params.text || undefined);
				return undefined;
		}
		return undefined;
	}

	safely(() => pi.registerMessageRenderer(MESSAGE, renderIncoming as any));
	safely(() =>
		pi.registerCommand("telecom", {
			description: "Take part in the team of this repository, or not",
			getArgumentCompletions: (prefix) =>
				commands.filter((c) => c.name.startsWith(prefix) && c.name !== prefix).map((c) => ({ value: c.name, label: c.name, description: c.what })),
			handler: async (args, c) => {
				ctx = c;
				const r = await link?.request("command", { args }, TOOL_MS);
				if (!r) return tell("switchboard's helper does not respond; try again in a moment", "warning");
				if (r.keep) pi.appendEntry(CHOICE, r.keep);
				tell(r.text, r.bad ? "warning" : "info");
			},
		}),
	);

	pi.on("session_start", (_e, c) => {
		safely(() => {
			ctx = c;
			const here = dirname(fileURLToPath(import.meta.url));
			const found = findBinary(here, process.env);
			if ("problem" in found) {
				tellOnce("missing", `switchboard: ${found.problem}`);
				pi.events.emit(ON_DECK, { count: 0 });
				return;
			}
			registerTools(here);
			deck = new Deck(c.ui);
			link = new Link(found.path, { started: hello, told: obey, fault });
			link.start();
			looking = setInterval(() => safely(() => look()), LOOK_MS);
			looking.unref();
		});
	});
	pi.on("resources_discover", () => {
		setTimeout(() => {
			ready = true;
		}, 0);
		return undefined;
	});
	pi.on("session_shutdown", (e) => {
		safely(() => leave(e.reason));
	});

	forward("session_info_changed", (e) => ({ name: e.name ?? "" }));
	forward("model_select", () => ({ model: modelName() }));
	pi.on("input", (_e, c) => {
		safely(() => {
			ctx = c;
			if (atRest(c)) prompted = Date.now();
		});
		return undefined;
	});
	forward("agent_start", () => {
		prompted = starting = 0;
		return {};
	});
	forward("turn_start");
	forward("session_before_compact", (e) => ({ reason: e.reason, willRetry: !!e.willRetry }));
	forward("session_compact", (e) => ({ willRetry: !!e.willRetry, now: snapshot() }), true);
	forward("session_compact_failed", (e) => ({ aborted: !!e.aborted, willRetry: !!e.willRetry }), true);
	forward("session_before_tree", (e) => ({ summary: !!e.preparation?.userWantsSummary }), true);
	forward("session_tree", () => ({ choice: choice(), calls: hookedCalls() }), true);
	forward("tool_execution_start", (e) => ({ callId: e.toolCallId, tool: e.toolName }));
	forward("tool_execution_end", (e) => ({ callId: e.toolCallId }));
	forward("ui_prompt_start");
	forward("ui_prompt_end");
	forward("agent_end", (e) => {
		const last = e.messages.at(-1);
		const error = last?.stopReason === "error";
		// Whether Pi will repeat it shows only after this event is over.
		if (error) setImmediate(() => safely(() => look("agent_end", last.errorMessage)));
		return { error };
	});
	forward(
		"agent_settled",
		(e) => {
			const inContext = handed.size ? inEntries(handed) : [];
			handed = new Set(); // the rest did not make it, and is offered again
			return { aborted: !!e.aborted, inContext, now: snapshot() };
		},
		true,
	);
	pi.on("message_end", (e) => {
		if (e.message.role === "assistant") link?.refresh();
	});

	pi.on("before_agent_start", async (e: any, c) => {
		starting = Date.now();
		atRest(c); // no longer, from now on
		link?.refresh();
		// What was due came with the wake that starts this run.
		if (e.messageType === "custom" && e.message?.customType === MESSAGE) return undefined;
		const byHuman = e.messageType !== "custom";
		const h = await due("before-run", { byHuman, prompt: byHuman ? String(e.prompt ?? "").slice(0, PROMPT_CHARS) : undefined }, c);
		return h && { message: h.message };
	});
	pi.on("turn_end", async (e, c) => {
		const closed = e.outcome !== "completed" || !!c.signal?.aborted;
		const h = await due("turn-end", { closed, open: e.toolResults.length > 0 || e.continue }, c);
		return h && { entries: [...e.entries, { type: "custom_message" as const, ...h.message }], ...(h.continue ? { continue: true } : {}) };
	});
	pi.on("agent_before_settle", async (e, c) => {
		const h = await due("before-settle", { closed: e.outcome !== "completed", open: e.continue }, c);
		return h && { entries: [...e.entries, { type: "custom_message" as const, ...h.message }], ...(h.continue ? { continue: true } : {}) };
	});
	pi.on("tool_call", async (e, c) => {
		try {
			ctx = c;
			if (!hooks.has(e.toolName)) return undefined;
			const verdict = await link?.ask("toolCall", { tool: e.toolName, callId: e.toolCallId, path: pathOf(e.input) }, c.signal);
			return verdict?.block ? { block: true, reason: String(verdict.reason) } : undefined;
		} catch (err) {
			tellOnce("internal", `switchboard: internal fault, Pi goes on: ${err}`);
			return undefined; // a throw would block the tool
		}
	});

	pi.on("tool_result", async (e, c) => {
		try {
			ctx = c;
			if (!hooks.has(e.toolName)) return undefined;
			// Not given up on Esc: the file is changed all the same.
			const note = await link?.ask("toolDone", { tool: e.toolName, callId: e.toolCallId, path: pathOf(e.input), failed: !!e.isError });
			return note?.text ? { content: [...e.content, { type: "text" as const, text: String(note.text) }] } : undefined;
		} catch (err) {
			tellOnce("internal", `switchboard: internal fault, Pi goes on: ${err}`);
			return undefined;
		}
	});

	/** Makes the calls of one message one after another, as the model wrote them. */
	function inTurn<T>(f: () => Promise<T> | undefined): Promise<T | undefined> {
		const mine = before.then(f);
		before = mine.catch(() => undefined);
		return mine;
	}

	/** Offers our tools under names that nobody has taken. */
	function registerTools(here: string): void {
		const specs = JSON.parse(readFileSync(join(here, "tools.json"), "utf8")) as Record<string, any>;
		const taken = new Set(pi.getAllTools().map((t) => t.name));
		const wanted = (process.env.SWITCHBOARD_TOOLS ?? Object.keys(specs).join()).split(",").map((t) => t.trim());
		for (const [name, spec] of Object.entries(specs)) {
			if (!wanted.includes(name)) continue;
			if (taken.has(name)) {
				tellOnce(`taken ${name}`, `switchboard: another extension already offers a tool named ${name}, so ours stays out of its way; remove one of them (see: switchboard doctor)`);
				continue;
			}
			pi.registerTool({
				...spec,
				name,
				prepareArguments: loosen,
				...DRAWING[name],
				async execute(callId: string, params: unknown, signal?: AbortSignal) {
					const r = await inTurn(() => link?.request("tool", { tool: name, callId, params: params as any }, TOOL_MS, signal));
					if (!r) throw new Error(signal?.aborted ? "cancelled" : "switchboard's helper does not respond: go on without it, and repeat the call later if it matters");
					return { content: [{ type: "text" as const, text: r.text }], details: r.details, isError: !!r.isError };
				},
			});
		}
	}
}

/** The file that a tool of Pi's works on. */
function pathOf(input: any): string | undefined {
	return typeof input?.path === "string" ? input.path : undefined;
}

/** Lets through what models mix up, so that the sidecar can answer it in its own words. */
function loosen(args: unknown): any {
	const a: Record<string, unknown> = { ...((args as object | null) ?? {}) };
	const list = (v: unknown) => (Array.isArray(v) ? v : v === undefined || v === null ? [] : [v]);
	const text = (v: unknown) => (typeof v === "string" ? v : JSON.stringify(v));
	if (Array.isArray(a.to)) {
		a.selectors = [...a.to, ...list(a.selectors)];
		delete a.to;
	}
	if (a.to !== undefined && a.to !== null) a.to = text(a.to);
	else delete a.to;
	for (const key of ["selectors", "paths"]) if (a[key] !== undefined) a[key] = list(a[key]).map(text);
	return a;
}

function ownVersion(): string {
	try {
		const here = dirname(fileURLToPath(import.meta.url));
		return JSON.parse(readFileSync(join(here, "package.json"), "utf8")).version;
	} catch {
		return "unknown";
	}
}
