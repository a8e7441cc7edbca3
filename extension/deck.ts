// The handsets above the editor: calls that wait until the session is free.
import type { Theme } from "@earendil-works/pi-coding-agent";
import { type Component, visibleWidth } from "@earendil-works/pi-tui";
import { margin } from "./render_text.ts";

const KEY = "switchboard-deck";
const HANDSETS = 5;
const FRAME_MS = 400;
const DOTS = ["·  ", "·· ", "···"];

/** The part of Pi's UI that the row needs; `ctx.ui` is one. */
export interface DeckUI {
	setWidget(key: string, content: undefined | ((tui: { requestRender(): void }, theme: Theme) => Component & { dispose?(): void }), options?: { placement?: "aboveEditor" | "belowEditor" }): void;
}

/** A session's row. Gone at zero; it never throws, whatever became of the UI. */
export class Deck {
	private readonly ui: DeckUI;
	private readonly frozen: boolean;
	private count = 0;
	private shown: (() => void) | undefined; // redraws
	private timer: NodeJS.Timeout | undefined;
	private frame = 0;

	constructor(ui: DeckUI, env: NodeJS.ProcessEnv = process.env) {
		this.ui = ui;
		this.frozen = !["", "0"].includes(env.SWITCHBOARD_FREEZE ?? "");
		if (this.frozen) this.frame = DOTS.length - 1;
	}

	/** Shows that `count` calls wait. */
	set(count: number): void {
		const n = Number.isFinite(count) ? Math.max(0, Math.floor(count)) : 0;
		if (n === this.count && (n === 0 || this.shown)) return;
		this.count = n;
		try {
			if (n === 0) {
				this.stop();
				this.ui.setWidget(KEY, undefined);
			} else if (this.shown) this.shown();
			else this.ui.setWidget(KEY, (tui, theme) => this.row(tui, theme), { placement: "aboveEditor" });
		} catch {
			// the session is being replaced, and its widgets with it
		}
	}

	/** Takes the row away for good. */
	dispose(): void {
		this.set(0);
		this.stop();
	}

	private row(tui: { requestRender(): void }, theme: Theme): Component & { dispose(): void } {
		this.stop();
		const redraw = () => {
			try {
				tui.requestRender();
			} catch {
				this.stop();
			}
		};
		this.shown = redraw;
		if (!this.frozen) {
			this.timer = setInterval(() => {
				this.frame = (this.frame + 1) % DOTS.length;
				redraw();
			}, FRAME_MS);
			this.timer.unref();
		}
		const timer = this.timer;
		return {
			render: (width) => (this.count === 0 ? [] : deckRow(this.count, this.frame, width, theme)),
			invalidate() {},
			// Pi drops widgets when it reloads or changes the session.
			dispose: () => {
				clearInterval(timer);
				if (this.shown === redraw) this.stop();
			},
		};
	}

	private stop(): void {
		clearInterval(this.timer);
		this.timer = undefined;
		this.shown = undefined;
	}
}

/** Up to five handsets, as many as fit, and the number of the others. */
export function deckRow(count: number, frame: number, width: number, theme: Theme): string[] {
	const w = Math.floor(width);
	if (!(w >= 1)) return [];
	const pad = margin(w, 1);
	const dots = DOTS[frame % DOTS.length] ?? "";
	for (const tail of [dots, ""]) {
		for (let n = Math.min(count, HANDSETS); n > 0; n--) {
			const parts = [theme.fg("accent", "📞 ".repeat(n).trimEnd())];
			if (count > n) parts.push(theme.fg("accent", `+${count - n}`));
			if (tail !== "") parts.push(theme.fg("muted", tail));
			const line = " ".repeat(pad) + parts.join(" ");
			if (visibleWidth(line) <= w) return [line];
		}
	}
	const number = String(count);
	return [theme.fg("accent", number.length <= w ? number : "…")];
}
