//go:build linux

package partyline

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"switchboard/e2e/model"
	"switchboard/e2e/rig"
)

// A party line reaches the union of all matches once, without its sender:
// idle recipients start a turn, busy ones get it with their other calls at the
// end of theirs. If one selector means nobody, nothing is sent.
func TestBroadcast(t *testing.T) {
	t.Parallel()
	w := rig.NewWorld(t)
	s := store(t, w)
	a := startAs(t, w, "a")
	b := startAs(t, w, "b")
	c := startAs(t, w, "c")
	publisher(t, w, `{"ticket": ["E-123", "E-124"]}`, "put", "b-id", "tracker")
	w.Model.Script("c", until("go"), model.Step{Text: "all read"})
	c.Prompt("work")
	c.Wait(rig.OfType("tool_execution_start"), rig.Watchdog)
	post(t, s, "c-id", "direct-01.")

	refused(t, "a selector that means nobody", call(t, w, a, broadcast("x-01.", "E-123", "E-999")), `"E-999"`, "nothing was sent")
	refused(t, "only the sender", call(t, w, a, broadcast("x-02.", "a-id", "a")), "only this session itself")
	refused(t, "no selector", call(t, w, a, broadcast("x-03.", " ")), "no destination")
	refused(t, "a blank message", call(t, w, a, broadcast(" \u200b ", "b")), "empty")

	o := call(t, w, a, broadcast("  standup-01.  ", "E-123", "E-124", "b-id", w.Dir, ""))
	if o.IsError {
		t.Fatal(o.Text)
	}
	ids := o.recipients()
	slices.Sort(ids)
	if !slices.Equal(ids, []string{"b-id", "c-id"}) || !o.Details.SelfExcluded {
		t.Errorf("recipients %v, self excluded %v", ids, o.Details.SelfExcluded)
	}
	for selector, n := range map[string]int{"E-123": 1, "E-124": 1, "b-id": 1, w.Dir: 3} {
		if got := o.count(selector); got != n {
			t.Errorf("%s matched %d, want %d", selector, got, n)
		}
	}
	contains(t, "the result", o.Text, "in 2 of 2 inboxes", "This session matches too")
	got := w.Model.WaitRequest(t, "b", 1, rig.Watchdog)
	contains(t, "b's model", got.Transcript(), `From "a", session a-id, on a party line`, "> standup-01.")
	if n := len(w.Model.Turns("c")); n != 1 {
		t.Errorf("%d requests of the busy session, want 1", n)
	}
	w.Write("go", "")
	c.Settled()
	last := w.Model.Turns("c")[1]
	if shown(last, "> direct-01.") != 1 || shown(last, "> standup-01.") != 1 || shown(last, "on a party line") != 1 {
		t.Errorf("the busy session's batch:\n%s", last.Transcript())
	}
	emptied(t, s, "b-id")
	emptied(t, s, "c-id")
	once(t, b.SessionFile(), "standup-01.")
	all, _ := received(t, c.SessionFile())
	if strings.Contains(all, "x-0") {
		t.Errorf("a refused broadcast arrived:\n%s", all)
	}
}

// Locators that together mean one session send; others say what each matched.
func TestSendByLocators(t *testing.T) {
	t.Parallel()
	w := rig.NewWorld(t)
	a := startAs(t, w, "a")
	b := startAs(t, w, "b")
	startAs(t, w, "c")
	publisher(t, w, `{"ticket": "E-1"}`, "put", "b-id", "tracker")
	publisher(t, w, `{"ticket": "E-1"}`, "put", "c-id", "tracker")
	if o := call(t, w, a, send("together-01.", "b", "b-id", fmt.Sprint(b.PID))); o.IsError {
		t.Error(o.Text)
	}
	refused(t, "two sessions", call(t, w, a, send("x-01.", "b", "E-1")), `"b" matches b (id b-id`, `"E-1" matches b (id b-id`, "c (id c-id")
	refused(t, "one that means nobody", call(t, w, a, send("x-02.", "b", "nope")), `"nope"`, `"b" matches b`)
	emptied(t, store(t, w), "b-id")
	once(t, b.SessionFile(), "together-01.")
}

// Sessions join and die while others broadcast: every reported delivery is in
// its recipient's transcript, once.
func TestBroadcastSoak(t *testing.T) {
	t.Parallel()
	sessions, rounds := 5, 50
	if n, err := strconv.Atoi(os.Getenv("SOAK")); err == nil && n > 0 {
		sessions, rounds = 20, 20*n
	}
	rnd := rand.New(rand.NewPCG(5, 4))
	w := rig.NewWorld(t)
	s := store(t, w)
	pis := make([]*rig.Pi, sessions)
	name := func(i int) string { return fmt.Sprintf("s%d", i) }
	for i := range pis {
		pis[i] = startAs(t, w, name(i))
		pis[i].Run("hello") // so that its file is there
	}
	reported := make(map[string][]string) // recipient to texts
	for round := range rounds {
		text := fmt.Sprintf("soak-%03d.", round)
		if rnd.IntN(6) == 0 { // one dies, and is back
			i := rnd.IntN(sessions)
			_ = syscall.Kill(pis[i].PID, syscall.SIGKILL)
			pis[i].WaitExit(rig.Watchdog)
			pis[i] = startAs(t, w, name(i))
		}
		i := rnd.IntN(sessions)
		selectors := []string{w.Dir}
		if rnd.IntN(2) == 0 {
			selectors = []string{name((i + 1) % sessions), name((i + 2) % sessions)}
		}
		rig.Eventually(t, rig.Watchdog, "a quiet sender", func() bool { return !pis[i].State().IsStreaming })
		w.Model.Script(name(i), model.Step{Tools: []model.Tool{broadcast(text, selectors...)}})
		mark := pis[i].Mark()
		pis[i].Send(map[string]any{"type": "prompt", "message": "call", "streamingBehavior": "steer"})
		rig.Eventually(t, rig.Watchdog, "the result", func() bool { return len(outcomes(t, pis[i].Since(mark))) > 0 })
		for _, to := range outcomes(t, pis[i].Since(mark))[0].recipients() {
			reported[to] = append(reported[to], text)
		}
		time.Sleep(time.Duration(rnd.IntN(50)) * time.Millisecond)
	}
	total := 0
	for i := range pis {
		emptied(t, s, name(i)+"-id")
		once(t, pis[i].SessionFile(), reported[name(i)+"-id"]...)
		total += len(reported[name(i)+"-id"])
	}
	if total < rounds {
		t.Errorf("only %d deliveries in %d rounds", total, rounds)
	}
	t.Logf("%d deliveries", total)
}
