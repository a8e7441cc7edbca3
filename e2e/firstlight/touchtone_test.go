//go:build linux

package firstlight

import (
	"fmt"
	"strings"
	"testing"

	"switchboard/e2e/model"
	"switchboard/e2e/rig"
)

func TestListThenSendByEachLocator(t *testing.T) {
	t.Parallel()
	for _, by := range []string{"id", "name", "cwd", "pid"} {
		t.Run(by, func(t *testing.T) {
			t.Parallel()
			w := rig.NewWorld(t)
			cwd := w.Repo("beta")
			b := start(t, w, rig.Options{Session: "b", Cwd: cwd, Args: []string{"--name", "builder"}})
			a := start(t, w, rig.Options{Session: "a", Args: []string{"--name", "asker"}})
			locator := map[string]string{
				"id": b.SessionID(), "name": "builder", "cwd": cwd, "pid": fmt.Sprint(b.PID),
			}[by]
			w.Model.Script("a", touchtone(map[string]any{"action": "list"}), send(locator, "The parser is ready."), model.Step{Text: "told them"})
			a.Run("tell the builder")

			list := w.Model.Turns("a")[1].Last().Text
			for _, want := range []string{"2 live sessions", "builder", b.SessionID(), fmt.Sprintf("pid %d", b.PID), cwd, "(this session)", fmt.Sprintf("selectors [%q,", b.SessionID())} {
				if !strings.Contains(list, want) {
					t.Errorf("the list lacks %q:\n%s", want, list)
				}
			}
			if sent := w.Model.Turns("a")[2].Last().Text; !strings.Contains(sent, "Sent to builder") {
				t.Errorf("the result of send = %q", sent)
			}
			got := w.Model.WaitRequest(t, "b", 1, rig.Watchdog).Transcript()
			for _, want := range []string{"> The parser is ready.", `From "asker", session ` + a.SessionID()} {
				if !strings.Contains(got, want) {
					t.Errorf("b's model lacks %q:\n%s", want, got)
				}
			}
			b.Settled()
			if n := len(w.Model.Turns("b")); n != 1 {
				t.Errorf("the call cost b %d requests, want 1", n)
			}
		})
	}
}

// Ten messages for a session that is busy in a tool: nothing is injected until
// the turn ends, then one request holds them all.
func TestBusySessionGetsOneBatch(t *testing.T) {
	t.Parallel()
	w := rig.NewWorld(t)
	b := start(t, w, rig.Options{Session: "b"})
	s := store(t, w)
	w.Model.Script("b", bash("until [ -e go ]; do sleep 0.02; done"), model.Step{Text: "all read"})
	b.Prompt("work")
	b.Wait(rig.OfType("tool_execution_start"), rig.Watchdog)
	want := texts("batch", 10)
	for _, text := range want {
		post(t, s, b.SessionID(), text)
	}
	if n := len(w.Model.Turns("b")); n != 1 {
		t.Fatalf("%d requests while the tool ran, want 1", n)
	}
	if n := waiting(t, s, b.SessionID()); n != 10 {
		t.Errorf("%d messages wait while the tool runs, want 10", n)
	}
	w.Write("go", "")
	b.Settled()
	turns := w.Model.Turns("b")
	if len(turns) != 2 {
		t.Fatalf("%d requests, want 2: the tool's and the batch's", len(turns))
	}
	once(t, turns[1], want)
	emptied(t, s, b.SessionID())
	handedOver(t, b.SessionFile(), want)
}

// A message that comes during a run's last turn costs one more turn; one for an
// idle session costs exactly one.
func TestLastTurnAndIdle(t *testing.T) {
	t.Parallel()
	w := rig.NewWorld(t)
	b := start(t, w, rig.Options{Session: "b"})
	s := store(t, w)
	gate := make(chan struct{})
	w.Model.Script("b", model.Step{Text: "last words", Wait: gate}, model.Step{Text: "read it"}, model.Step{Text: "and that"})
	b.Prompt("work")
	w.Model.WaitRequest(t, "b", 1, rig.Watchdog)
	post(t, s, b.SessionID(), "late-01.")
	close(gate)
	b.Settled()
	once(t, w.Model.WaitRequest(t, "b", 2, rig.Watchdog), []string{"late-01."})
	emptied(t, s, b.SessionID())

	post(t, s, b.SessionID(), "idle-01.")
	once(t, w.Model.WaitRequest(t, "b", 3, rig.Watchdog), []string{"late-01.", "idle-01."})
	emptied(t, s, b.SessionID())
	if n := len(w.Model.Turns("b")); n != 3 {
		t.Errorf("%d requests, want 3", n)
	}
}

func TestSendRefusals(t *testing.T) {
	t.Parallel()
	w := rig.NewWorld(t)
	twin := w.Repo("twins")
	one := start(t, w, rig.Options{Session: "one", Cwd: twin, Args: []string{"--name", "first"}})
	two := start(t, w, rig.Options{Session: "two", Cwd: twin})
	dead := start(t, w, rig.Options{Session: "dead", Args: []string{"--name", "ghost"}})
	a := start(t, w, rig.Options{Session: "a"})
	deadID := dead.SessionID()
	dead.Kill(9)
	dead.WaitExit(rig.Watchdog)

	for _, c := range []struct {
		name string
		call model.Step
		want []string
	}{
		{"nobody", send("no-such", "hi"), []string{`"no-such"`, `{"action":"list"}`}},
		{"nobody, of a list", touchtone(map[string]any{"action": "send", "to": []any{"x", "z"}, "message": "y"}), []string{`"x", "z"`}},
		{"nobody, by number", touchtone(map[string]any{"action": "send", "to": 1, "message": "y"}), []string{`"1"`}},
		{"no locator at all", touchtone(map[string]any{"action": "send", "to": map[string]any{"id": "x"}, "message": "y"}), []string{`no live session matches "{\"id\"`}},
		{"just died", send(deadID, "hi"), []string{deadID, "no live session"}},
		{"several", send(twin, "hi"), []string{"2 sessions", one.SessionID(), two.SessionID(), "first", fmt.Sprintf(`{"action":"send","to":%q,"message":"hi"}`, one.SessionID())}},
		{"blank", send(one.SessionID(), " \n\t "), []string{"empty"}},
		{"no destination", touchtone(map[string]any{"action": "send", "message": "hi"}), []string{"destination"}},
		{"oneself", send(a.SessionID(), "hi"), []string{"this session itself"}},
		{"too large", send(one.SessionID(), strings.Repeat("x", 33<<10)), []string{"33,792 bytes, at most 32,768"}},
		{"quotes", send(one.SessionID(), strings.Repeat(`"`, 32<<10)), []string{"more than 65,536 once stored"}},
		{"unknown action", touchtone(map[string]any{"action": "shout"}), []string{`no action "shout"`}},
		{"no action", touchtone(map[string]any{}), []string{"action is missing"}},
	} {
		w.Model.Script("a", c.call, model.Step{Text: "ok"})
		a.Run(c.name)
		turns := w.Model.Turns("a")
		got := turns[len(turns)-1].Last().Text
		for _, want := range append(c.want, "Not ", "Example of a call that works: touchtone {") {
			if !strings.Contains(got, want) {
				t.Errorf("%s: the answer lacks %q: %s", c.name, want, got)
			}
		}
	}
	s := store(t, w)
	for _, id := range []string{one.SessionID(), two.SessionID(), deadID} {
		if n := waiting(t, s, id); n != 0 {
			t.Errorf("%d messages were written to %s by refused calls", n, id)
		}
	}
	// A locator that names one of the twins goes through, number or not.
	w.Model.Script("a", touchtone(map[string]any{"action": "send", "selectors": []any{fmt.Sprint(two.PID), two.SessionID()}, "message": "to two"}), model.Step{Text: "ok"})
	a.Run("try again")
	once(t, w.Model.WaitRequest(t, "two", 1, rig.Watchdog), []string{"> to two"})
}

// Print and JSON modes: on the roster while they run, they take messages at a
// boundary that comes anyway, start no turn of their own, and end.
func TestPrintAndJSON(t *testing.T) {
	t.Parallel()
	for _, mode := range []rig.Mode{rig.Print, rig.JSON} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			w := rig.NewWorld(t)
			s := store(t, w)
			id := "oneshot-" + string(mode)
			w.Model.Script("p", bash("until [ -e go ]; do sleep 0.02; done"), bash("until [ -e end ]; do sleep 0.02; done"), model.Step{Text: "final answer"})
			p := w.StartPi(t, rig.Options{Session: "p", Mode: mode, Args: []string{"--session-id", id, "work"}})
			listed(t, w, id)
			w.Model.WaitRequest(t, "p", 1, rig.Watchdog)
			post(t, s, id, "inside-01.")
			w.Write("go", "")
			once(t, w.Model.WaitRequest(t, "p", 2, rig.Watchdog), []string{"inside-01."})
			w.Write("end", "")
			w.Model.WaitRequest(t, "p", 3, rig.Watchdog)
			if code := p.WaitExit(rig.Watchdog); code != 0 {
				t.Errorf("exit %d", code)
			}
			if !strings.Contains(p.Output(), "final answer") {
				t.Errorf("output = %q", p.Output())
			}
			if n := len(w.Model.Turns("p")); n != 3 {
				t.Errorf("%d requests, want 3", n)
			}
			rig.Eventually(t, rig.Watchdog, "an empty roster", func() bool { return len(roster(t, w)) == 0 })
		})
	}
}

// The calls of one message arrive in the order in which the model wrote them.
func TestOrderOfParallelCalls(t *testing.T) {
	t.Parallel()
	w := rig.NewWorld(t)
	a := start(t, w, rig.Options{Session: "a"})
	b := start(t, w, rig.Options{Session: "b", Args: []string{"--session-id", "b-id"}})
	listed(t, w, a.SessionID(), "b-id")
	w.Model.Script("b", bash("sleep 1"), model.Step{Text: "ok"})
	b.Prompt("work")
	b.Wait(rig.OfType("tool_execution_start"), rig.Watchdog)
	parts := texts("part", 6)
	var calls model.Step
	for _, p := range parts {
		calls.Tools = append(calls.Tools, send("b-id", p).Tools...)
	}
	w.Model.Script("a", calls, model.Step{Text: "ok"})
	a.Run("send the parts")
	r := w.Model.WaitRequest(t, "b", 2, rig.Watchdog)
	once(t, r, parts)
	at := -1
	for _, p := range parts {
		i := strings.Index(r.Transcript(), p)
		if i < at {
			t.Fatalf("%s is before its time:\n%s", p, r.Transcript())
		}
		at = i
	}
}
