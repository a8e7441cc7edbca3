package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"switchboard/e2e/model"
	"switchboard/e2e/rig"
)

// extension is the path of one of the bench's own extensions.
func (l *lab) extension(name string) string {
	return filepath.Join(l.programs.module, "bench", "testdata", name)
}

// ours is the extension that is measured.
func (l *lab) ours() string { return filepath.Join(l.programs.module, "extension") }

// agent is a Pi whose extensions write down when things happened.
type agent struct {
	*rig.Pi
	stamps string // file
}

// startPi starts a Pi with these extensions, in this order, and no others.
func (l *lab) startPi(t testing.TB, w *rig.World, session string, env []string, extensions ...string) agent {
	t.Helper()
	a := agent{stamps: filepath.Join(w.Home, session+".stamps")}
	a.Pi = w.StartPi(t, rig.Options{
		Session: session, NoExtension: true, ExtensionPaths: extensions,
		Args: []string{"--name", session},
		Env: append([]string{
			"SWITCHBOARD_BIN=" + l.programs.switchboard, "BENCH_ECHO=" + l.programs.echo, "BENCH_STAMPS=" + a.stamps,
		}, env...),
	})
	return a
}

// stamped returns the times of what happened, in milliseconds and in order.
func (a agent) stamped(t testing.TB, what string) samples {
	t.Helper()
	raw, err := os.ReadFile(a.stamps)
	if err != nil {
		t.Fatal(err)
	}
	var out samples
	for line := range bytes.Lines(raw) {
		var s struct {
			What string
			At   int64
		}
		if err := json.Unmarshal(line, &s); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if s.What == what {
			out = append(out, ms(time.Duration(s.At)))
		}
	}
	return out
}

// apart returns how long after each of one list that of the other came,
// without the first few, which come before the code is warm.
func apart(t testing.TB, from, to samples, warmup int) samples {
	t.Helper()
	if len(from) != len(to) {
		t.Fatalf("%d beginnings and %d ends were noted", len(from), len(to))
	}
	out := make(samples, 0, len(from))
	for i := range from {
		out = append(out, to[i]-from[i])
	}
	return out[min(warmup, len(out)):]
}

// messageInPi: from the tool call of one Pi's model to the message_start in
// another, which is at rest.
func messageInPi(l *lab) (figures []figure, err error) {
	n, warmup := l.rounds(200, 5), l.rounds(10, 1)
	err = l.withRig(func(t testing.TB) {
		w := rig.NewWorld(t)
		notes := l.extension("post.ts")
		a := l.startPi(t, w, "a", nil, l.ours(), notes)
		b := l.startPi(t, w, "b", nil, l.ours(), notes)
		socket := func(name string) string { return filepath.Join(w.Home, name+".sock") }
		bare := func(own, peer string) agent {
			return l.startPi(t, w, own, []string{"BENCH_SOCKET=" + socket(own), "BENCH_PEER=" + socket(peer)}, l.extension("bare-post.ts"), notes)
		}
		c, d := bare("c", "d"), bare("d", "c")
		for _, p := range []agent{a, b, c, d} {
			p.State() // it is ready
		}
		rig.Eventually(t, rig.Watchdog, "both on the roster", func() bool {
			out, _, _ := w.Switchboard("list", "--json")
			var list struct{ Sessions []json.RawMessage }
			return json.Unmarshal([]byte(out), &list) == nil && len(list.Sessions) == 2
		})
		round := func(from, to agent, call model.Tool) {
			w.Model.Script(from.Session, model.Step{Tools: []model.Tool{call}})
			to.Mark()
			from.Run("tell them")
			to.Settled()
		}
		for range n + warmup {
			if l.ctx.Err() != nil {
				t.Fatal(l.ctx.Err())
			}
			round(a, b, model.Tool{Name: "touchtone", Args: map[string]any{"action": "send", "to": "b", "message": text}})
			round(c, d, model.Tool{Name: "bare_send", Args: map[string]any{"message": text}})
		}
		figures = []figure{{
			what: "message in Pi", unit: "ms",
			ours:   apart(t, a.stamped(t, "called"), b.stamped(t, "came"), warmup),
			floor:  apart(t, c.stamped(t, "called"), d.stamped(t, "came"), warmup),
			budget: []limit{p50Within(1.5), under(15, "ms")},
		}}
	})
	return figures, err
}

// hookInPi: how long Pi's tool_call hooks take for a read.
func hookInPi(l *lab) (figures []figure, err error) {
	const inRun = 20
	runs, warmup := l.rounds(50, 1), l.rounds(20, 2)
	err = l.withRig(func(t testing.TB) {
		w := rig.NewWorld(t)
		between := func(session, extension string) agent {
			return l.startPi(t, w, session, nil, l.extension("before.ts"), extension, l.extension("after.ts"))
		}
		ours, bare := between("ours", l.ours()), between("bare", l.extension("bare-hook.ts"))
		for _, p := range []agent{ours, bare} {
			p.State() // it is ready
		}
		for range runs {
			for _, p := range []agent{ours, bare} {
				if l.ctx.Err() != nil {
					t.Fatal(l.ctx.Err())
				}
				for range inRun {
					w.Model.Script(p.Session, model.Step{Tools: []model.Tool{{Name: "read", Args: map[string]any{"path": "a.txt"}}}})
				}
				p.Run("read it")
			}
		}
		figures = []figure{{
			what: "hook in Pi", unit: "ms",
			ours:   apart(t, ours.stamped(t, "began"), ours.stamped(t, "ended"), warmup),
			floor:  apart(t, bare.stamped(t, "began"), bare.stamped(t, "ended"), warmup),
			budget: []limit{p50Within(1.5), p99Within(1.5)},
		}}
	})
	return figures, err
}

// startOfPi: what we add to the time until Pi takes commands.
func startOfPi(l *lab) (figures []figure, err error) {
	err = l.withRig(func(t testing.TB) {
		w := rig.NewWorld(t)
		started := 0
		start := func(extension string) func() (float64, error) {
			return func() (float64, error) {
				started++
				began := time.Now()
				p := l.startPi(t, w, fmt.Sprintf("p%d", started), nil, extension)
				p.State()
				took := ms(time.Since(began))
				if code := p.Quit(); code != 0 {
					return 0, fmt.Errorf("the Pi ended with %d: %s", code, p.Stderr())
				}
				return took, nil
			}
		}
		ours, bare := start(l.ours()), start(l.extension("bare-hook.ts"))
		// Pi keeps compiled extensions: the first start is another matter.
		_, _, err := l.inTurns(1, ours, bare)
		if err != nil {
			t.Fatal(err)
		}
		o, f, err := l.inTurns(l.rounds(25, 1), ours, bare)
		if err != nil {
			t.Fatal(err)
		}
		added := figure{what: "  of it added by us", unit: "ms", budget: []limit{under(50, "ms")}}
		for i := range o {
			added.ours = append(added.ours, o[i]-f[i])
		}
		figures = []figure{{what: "start of Pi", unit: "ms", ours: o, floor: f}, added}
	})
	return figures, err
}
