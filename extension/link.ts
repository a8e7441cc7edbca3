// The line to the sidecar: one child process, JSON-RPC 2.0, one message a
// line. It never throws, never waits longer than it says, and starts the
// child again when it dies.
import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";

/** How long Pi may be held up for the sidecar within one assistant message. */
export const PATIENCE_MS = 300;
const HOLD_MS = 2000; // the longest wait for a peer that is at the same file
const PAUSES_MS = [50, 200, 800, 2000, 5000];
const HEALTHY_MS = 10_000; // a child that lived this long was not a failed start
const MAX_BACKLOG = 4 << 20; // bytes queued for a child that does not read

/** What the next child is asked again when one dies over it: a file is about to
 *  be changed, or has been. */
const AGAIN = new Set(["toolCall", "toolDone"]);
const DIED = Symbol("died");

type Json = Record<string, unknown>;
type Pending = { resolve: (value: any) => void; method: string };

export interface LinkEvents {
	/** A new child runs: introduce yourself. */
	started(): void;
	/** The sidecar says something; what is returned answers it if it asked. */
	told(method: string, params: any): unknown;
	/** Something is wrong. Each kind is worth telling once. */
	fault(kind: "died" | "deaf" | "spawn", text: string): void;
}

export class Link {
	private child?: ChildProcessWithoutNullStreams;
	private pending = new Map<number, Pending>();
	private seq = 0;
	private failures = 0;
	private timer?: NodeJS.Timeout;
	private closed = false;
	private patience = PATIENCE_MS;
	private deaf = false;
	private next: (() => void)[] = []; // who waits for the next child
	private holds = new Map<string, (ms: number) => void>(); // by call, what makes its answer wait longer

	constructor(
		private readonly binary: string,
		private readonly events: LinkEvents,
	) {}

	start(): void {
		if (this.closed) return;
		const born = Date.now();
		let lastWords = "";
		// Of its own process group, so that Ctrl+Z in the terminal does not
		// stop it while it holds a lock.
		const child = spawn(this.binary, ["attach"], { stdio: ["pipe", "pipe", "pipe"], detached: true });
		this.child = child;
		child.stdin.on("error", () => {}); // its exit says it better
		child.stdout.on("error", () => {});
		child.stderr.on("error", () => {});
		child.stderr.setEncoding("utf8");
		child.stderr.on("data", (text: string) => {
			lastWords = (lastWords + text).slice(-2000);
		});
		let over = false;
		const gone = (kind: "died" | "spawn", text: string) => {
			if (over) return;
			over = true;
			if (this.child !== child) return;
			this.child = undefined;
			for (const p of this.pending.values()) p.resolve(DIED);
			this.pending.clear();
			if (this.closed) return;
			this.events.fault(kind, text);
			if (Date.now() - born > HEALTHY_MS) this.failures = 0;
			const pause = PAUSES_MS[Math.min(this.failures++, PAUSES_MS.length - 1)];
			this.timer = setTimeout(() => this.guarded(() => this.start()), pause);
		};
		child.on("error", (err) => this.guarded(() => gone("spawn", `${this.binary} cannot be started: ${err.message}`)));
		child.on("exit", () => this.guarded(() => gone("died", lastWords.trim().split("\n").pop() ?? "")));
		this.readLines(child);
		this.events.started();
		for (const go of this.next.splice(0)) go();
	}

	/** Ends the conversation. The child reads the end of its input and leaves. */
	close(): void {
		this.closed = true;
		clearTimeout(this.timer);
		const child = this.child;
		if (!child) return;
		child.stdin.end();
		// Only now: Pi would exit in the middle of a run while a hook waits for
		// a child that does not count.
		child.unref();
		for (const pipe of [child.stdin, child.stdout, child.stderr]) (pipe as any).unref?.();
	}

	/** A new assistant message may hold Pi up anew. */
	refresh(): void {
		this.patience = PATIENCE_MS;
	}

	notify(method: string, params: Json): void {
		if ((this.child?.stdin.writableLength ?? 0) < MAX_BACKLOG) this.write({ jsonrpc: "2.0", method, params });
	}

	/** Asks, and waits until the answer, the child's death or the time limit (undefined). */
	async request(method: string, params: Json, waitMs: number, signal?: AbortSignal): Promise<any> {
		const { id, answer } = this.send(method, params, signal);
		const value = await this.within(waitMs, id, answer);
		return value === DIED ? undefined : value;
	}

	/** Asks, and waits only as long as Pi may be held up: then undefined. */
	async ask(method: string, params: Json, signal?: AbortSignal): Promise<any> {
		for (;;) {
			if (this.deaf || this.patience <= 0 || signal?.aborted) return undefined;
			if (!(await this.alive(AGAIN.has(method)))) return undefined;
			const value = await this.askOnce(method, params, signal);
			if (value !== DIED) return value;
		}
	}

	private async askOnce(method: string, params: Json, signal?: AbortSignal): Promise<any> {
		const began = Date.now();
		const waitMs = this.patience;
		const { id, answer } = this.send(method, { ...params, waitMs, sentAt: began }, signal);
		let held = 0; // a wait that was announced is no fault
		const call = method === "toolCall" ? String(params.callId) : "";
		const value = await this.within(waitMs, id, answer, (extend) => {
			if (call) this.holds.set(call, (ms) => extend((held = Math.min(ms, HOLD_MS) + PATIENCE_MS)));
		});
		this.holds.delete(call);
		if (!held) this.patience -= Date.now() - began;
		// The rest of an announced wait is the next child's.
		else if (value === DIED) this.patience = Math.max(this.patience, held - (Date.now() - began));
		return value;
	}

	/** Whether there is a child, or will be while Pi may be held up. */
	private async alive(wait: boolean): Promise<boolean> {
		if (this.child || !wait || this.closed) return !!this.child;
		const began = Date.now();
		let timer: NodeJS.Timeout | undefined;
		await new Promise<void>((resolve) => {
			timer = setTimeout(resolve, this.patience);
			this.next.push(resolve);
		});
		clearTimeout(timer);
		this.patience -= Date.now() - began;
		return !!this.child && this.patience > 0;
	}

	/** The answer about a call takes longer: a peer is at the same file. */
	extend(call: string, ms: number): void {
		this.holds.get(call)?.(ms);
	}

	private async within(waitMs: number, id: number, answer: Promise<any>, extendable?: (extend: (ms: number) => void) => void): Promise<any> {
		let timer: NodeJS.Timeout | undefined;
		const late = new Promise((resolve) => {
			const wait = (ms: number) => {
				clearTimeout(timer);
				timer = setTimeout(() => {
					this.pending.delete(id); // an answer that still comes is declined
					this.deaf = true;
					this.events.fault("deaf", `no answer within ${ms} ms`);
					resolve(undefined);
				}, ms);
			};
			wait(waitMs);
			extendable?.(wait);
		});
		const value = await Promise.race([answer, late]);
		clearTimeout(timer);
		return value;
	}

	private send(method: string, params: Json, signal?: AbortSignal): { id: number; answer: Promise<any> } {
		const id = ++this.seq;
		if (!this.child || signal?.aborted) return { id, answer: Promise.resolve(undefined) };
		const answer = new Promise<any>((resolve) => {
			const onAbort = () => {
				this.pending.delete(id);
				resolve(undefined);
			};
			signal?.addEventListener("abort", onAbort, { once: true });
			this.pending.set(id, {
				method,
				resolve: (value) => {
					signal?.removeEventListener("abort", onAbort);
					resolve(value);
				},
			});
		});
		this.write({ jsonrpc: "2.0", id, method, params });
		return { id, answer };
	}

	private write(message: Json): void {
		if (this.child?.stdin.writable) this.child.stdin.write(`${JSON.stringify(message)}\n`);
	}

	private readLines(child: ChildProcessWithoutNullStreams): void {
		let chunks: string[] = [];
		child.stdout.setEncoding("utf8");
		child.stdout.on("data", (text: string) =>
			this.guarded(() => {
				const parts = text.split("\n");
				if (parts.length === 1) {
					chunks.push(text);
					return;
				}
				parts[0] = chunks.join("") + parts[0];
				const rest = parts.pop() as string;
				chunks = rest ? [rest] : [];
				// A child that is no longer the current one has nothing to say.
				for (const line of parts) if (line && this.child === child && !this.closed) this.read(line);
			}),
		);
	}

	private read(line: string): void {
		let m: any;
		try {
			m = JSON.parse(line);
		} catch {
			return; // not a message
		}
		this.deaf = false;
		if (m.method !== undefined) {
			const result = this.events.told(m.method, m.params) ?? null;
			if (m.id !== undefined) this.write({ jsonrpc: "2.0", id: m.id, result: result as any });
			return;
		}
		const p = this.pending.get(m.id);
		this.pending.delete(m.id);
		// A tool that runs without a verdict is worth a word.
		if (p?.method === "toolCall" && m.error) this.events.fault("deaf", String(m.error.message));
		if (p) p.resolve(m.result ?? undefined);
		else if (m.result?.batch) this.notify("declined", { batch: m.result.batch });
	}

	/** Nothing may escape from a callback: it would end Pi. */
	private guarded(f: () => void): void {
		try {
			f();
		} catch (err) {
			try {
				this.events.fault("died", String(err));
			} catch {
				// there is nobody left to tell
			}
		}
	}
}
