//go:build linux

package partyline

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"switchboard/e2e/model"
	"switchboard/e2e/rig"
)

// heard is a line of the test extension: an event of the deck, or the start of
// a session.
type heard struct {
	Start string
	Count *int
	Keys  string // of the event
	Filed int    // messages in the session file at that moment
}

// deck follows what waits for a session, from all sides.
type deck struct {
	t       *testing.T
	w       *rig.World
	session string
	log     string   // what the extension heard
	posted  []string // texts
}

func newDeck(t *testing.T, w *rig.World, session string) *deck {
	return &deck{t: t, w: w, session: session, log: filepath.Join(w.Home, session+".deck")}
}

// options let a Pi report its deck.
func (d *deck) options(args ...string) rig.Options {
	return rig.Options{
		Session: "b", Args: append([]string{"--session-id", d.session, "--model", "rig/scripted-small"}, args...),
		ExtensionPaths: []string{testdata(d.t, "deck.ts")}, Env: []string{"DECK_LOG=" + d.log},
	}
}

func (d *deck) post() {
	d.t.Helper()
	text := fmt.Sprintf("deck-%02d.", len(d.posted)+1)
	post(d.t, store(d.t, d.w), d.session, text)
	d.posted = append(d.posted, text)
}

// heard lists what the extension wrote so far.
func (d *deck) heard() (out []heard) {
	d.t.Helper()
	data, err := os.ReadFile(d.log)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		d.t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		if !strings.HasSuffix(line, "\n") {
			break
		}
		var h heard
		if err := json.Unmarshal([]byte(line), &h); err != nil {
			d.t.Fatalf("%v in %q", err, line)
		}
		out = append(out, h)
	}
	return out
}

// counts are the events since the start of the nth session, counted from 0.
func (d *deck) counts() (since [][]int) {
	d.t.Helper()
	for _, h := range d.heard() {
		if h.Start != "" {
			since = append(since, nil)
		} else if h.Count != nil && len(since) > 0 {
			since[len(since)-1] = append(since[len(since)-1], *h.Count)
		}
	}
	return since
}

// file is the session's, "" before it is written.
func (d *deck) file() string {
	found, _ := filepath.Glob(filepath.Join(d.w.AgentDir, "sessions", "*", "*"+d.session+"*.jsonl"))
	if len(found) == 0 {
		return ""
	}
	return found[0]
}

// missing is how many posted messages are not in the transcript.
func (d *deck) missing() int {
	n := len(d.posted)
	if file := d.file(); file != "" {
		_, ids := received(d.t, file)
		n -= len(ids)
	}
	return n
}

// agree waits until the event, the file and the transcript say that so many
// messages wait, in a session that is the nth to start.
func (d *deck) agree(step string, nth, want int) {
	d.t.Helper()
	rig.Eventually(d.t, rig.Watchdog, fmt.Sprintf("%s: %d on deck (heard %v)", step, want, d.counts()), func() bool {
		all := d.counts()
		if len(all) != nth+1 || len(all[nth]) == 0 || all[nth][len(all[nth])-1] != want {
			return false
		}
		return onDeck(d.t, d.w, d.session) == want && d.missing() == want
	})
}

// history checks all events from the beginning. A session may begin with what
// waits or, when its calls have come in at once, any number on the way.
func (d *deck) history(want ...[]int) {
	d.t.Helper()
	if got := d.counts(); fmt.Sprint(got) != fmt.Sprint(want) {
		d.t.Errorf("events by session start %v, want %v", got, want)
	}
	for _, h := range d.heard() {
		if h.Count != nil && h.Keys != "count" {
			d.t.Errorf("an event has the fields %q", h.Keys)
		}
	}
	if last := d.heard()[len(d.heard())-1]; *last.Count == 0 && last.Filed != len(d.posted) {
		d.t.Errorf("the last event says that all reached the model, with %d of %d in the session file", last.Filed, len(d.posted))
	}
	if _, err := os.Stat(filepath.Join(root(d.w), "on-deck", d.session+".json")); !errors.Is(err, fs.ErrNotExist) {
		d.t.Errorf("on-deck file after delivery: %v", err)
	}
}

// A call that waits, then Esc, a reload, a compaction, and a second call after
// each of them: at every step the event, the file and the transcript agree.
func TestOnDeck(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("lorem ipsum dolor ", 900)
	for _, c := range []struct {
		second string
		want   [][]int // events
	}{
		{"while busy", [][]int{{0, 1, 2}, {2, 0}}},
		{"after Esc", [][]int{{0, 1, 2, 0}, {0}}},
		{"after the reload", [][]int{{0, 1}, {1, 2, 0}}},
		{"while compacting", [][]int{{0, 1}, {1, 2, 0}}},
		{"never", [][]int{{0, 1}, {1, 0}}},
	} {
		t.Run(c.second, func(t *testing.T) {
			t.Parallel()
			w := rig.NewWorld(t)
			w.Settings(map[string]any{"compaction": map[string]any{"enabled": false, "reserveTokens": 4000, "keepRecentTokens": 2000}})
			d := newDeck(t, w, "b-id")
			p := start(t, w, d.options())
			d.agree("at the start", 0, 0)
			w.Model.Script("b", model.Step{Text: long}, model.Step{Hang: true})
			p.Run("hello")

			waits := 0
			call := func(step string, nth int) {
				d.post()
				waits++
				d.agree(step, nth, waits)
			}
			p.Prompt("work")
			w.Model.WaitRequest(t, "b", 2, rig.Watchdog)
			call("a call for a busy session", 0)
			if c.second == "while busy" {
				call("a second call", 0)
			}
			p.Abort()
			p.Settled()
			d.agree("after Esc", 0, waits)
			if c.second == "after Esc" {
				d.post() // wakes, and brings the first along
				waits = 0
				d.agree("a second call after Esc", 0, 0)
				rig.Eventually(t, rig.Watchdog, "rest before the reload", func() bool { return !p.State().IsStreaming })
			}
			p.Send(map[string]any{"type": "prompt", "message": "/reload-now"})
			d.agree("after the reload", 1, waits)
			if c.second == "after the reload" {
				d.post()
				waits = 0
				d.agree("a second call after the reload", 1, 0)
			}

			gate := make(chan struct{})
			w.Model.ScriptSummary("b", model.Step{Text: "## Goal\nsummary", Wait: gate})
			compacting := p.Mark()
			rig.Eventually(t, rig.Watchdog, "rest before the compaction", func() bool { return !p.State().IsStreaming })
			p.Send(map[string]any{"type": "compact"})
			rig.Eventually(t, rig.Watchdog, "a compaction", func() bool { return len(w.Model.Requests("b")) > len(w.Model.Turns("b")) })
			d.agree("while compacting", 1, waits)
			if c.second == "while compacting" {
				call("a second call while compacting", 1)
			}
			close(gate)
			p.Wait(func(e rig.Event) bool { return e.Type == "response" && e.Str("command") == "compact" }, rig.Watchdog)
			for _, e := range p.Since(compacting) {
				if e.Type == "response" && e.Str("command") == "compact" && e.Get("success") != true {
					t.Errorf("compact: %s", e)
				}
			}
			if c.second == "while compacting" {
				waits = 0
			}
			d.agree("after the compaction", 1, waits)
			if waits > 0 { // held since Esc: they come with the human's next prompt
				p.Run("go on")
				d.agree("after the next prompt", 1, 0)
			}
			once(t, d.file(), d.posted...)
			d.history(c.want...)
		})
	}
}

// The same by the keys of a human in a terminal.
func TestOnDeckKeys(t *testing.T) {
	t.Parallel()
	w := rig.NewWorld(t)
	w.Settings(map[string]any{"compaction": map[string]any{"enabled": false, "reserveTokens": 4000, "keepRecentTokens": 2000}})
	d := newDeck(t, w, "keys-id")
	u := w.StartTUI(t, d.options(), 100, 30)
	onRoster(t, w, "keys-id")
	d.agree("at the start", 0, 0)
	w.Model.Script("b", model.Step{Text: strings.Repeat("lorem ipsum dolor ", 900)}, model.Step{Hang: true})
	u.Submit("hello")
	w.Model.WaitRequest(t, "b", 1, rig.Watchdog)
	rig.Eventually(t, rig.Watchdog, "rest", func() bool {
		s, err := store(t, w).Session(key("keys-id"))
		return err == nil && s.State == "idle" && d.file() != ""
	})
	u.Submit("work")
	w.Model.WaitRequest(t, "b", 2, rig.Watchdog)
	d.post()
	d.post()
	d.agree("two calls for a busy session", 0, 2)
	row := func() bool { return strings.Contains(u.Capture(), "📞 📞") }
	rig.Eventually(t, rig.Watchdog, "two handsets", row)
	u.Keys("Escape")
	u.WaitScreen("aborted", rig.Watchdog)
	d.agree("after Esc", 0, 2)
	u.Submit("/reload")
	d.agree("after /reload", 1, 2)
	rig.Eventually(t, rig.Watchdog, "two handsets after /reload", row)
	w.Model.ScriptSummary("b", model.Step{Text: "## Goal\nsummary"})
	u.Submit("/compact")
	u.WaitScreen("ompacted", rig.Watchdog)
	d.agree("after /compact", 1, 2)
	rig.Eventually(t, rig.Watchdog, "two handsets after /compact", row)
	d.post()
	d.agree("after a third call, which wakes", 1, 0)
	rig.Eventually(t, rig.Watchdog, "no row", func() bool { return !row() })
	once(t, d.file(), d.posted...)
	if all := d.counts(); !slices.Equal(all[1], []int{2, 3, 0}) {
		t.Errorf("events after /reload %v", all[1])
	}
}

// A new session in the same Pi begins with its own count; one that is resumed
// with what waited for it.
func TestOnDeckOfAnotherSession(t *testing.T) {
	t.Parallel()
	w := rig.NewWorld(t)
	d := newDeck(t, w, "b-id")
	p := start(t, w, d.options())
	w.Model.Script("b", model.Step{Text: "ok"}, model.Step{Hang: true})
	p.Run("hello")
	p.Prompt("work")
	w.Model.WaitRequest(t, "b", 2, rig.Watchdog)
	d.post()
	d.agree("a call that waits", 0, 1)
	p.Abort()
	p.Settled()
	if r := p.Cmd(map[string]any{"type": "new_session"}, rig.Watchdog); !r.Success {
		t.Fatal(r.Error)
	}
	rig.Eventually(t, rig.Watchdog, "an empty deck in the new session", func() bool {
		all := d.counts()
		return len(all) == 2 && slices.Equal(all[1], []int{0})
	})
	p.Quit()
	p = start(t, w, d.options())
	d.agree("after the resume", 2, 1) // its human stopped it: nothing wakes it by itself
	p.Run("go on")
	d.agree("after the next prompt", 2, 0)
	once(t, d.file(), d.posted...)
}
