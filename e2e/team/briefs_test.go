//go:build linux

package team

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"switchboard/e2e/model"
	"switchboard/e2e/rig"
)

// stint is what came of one prompt.
type stint struct {
	before   model.Request // the last one before it; zero if there was none
	requests []model.Request
}

// work gives an idle Pi a prompt and lets its model go through steps. After a
// tool call at the end it says "ok".
func work(t *testing.T, w *rig.World, p *rig.Pi, prompt string, steps ...model.Step) stint {
	t.Helper()
	s := begin(w, p)
	want := len(steps)
	if want == 0 || len(steps[want-1].Tools) > 0 {
		steps = append(steps[:want:want], ok)
		want++
	}
	w.Model.Script(p.Session, steps...)
	p.Run(prompt)
	s.end(w, p)
	if len(s.requests) != want {
		t.Fatalf("%q made %s send %d requests, want %d", prompt, p.Session, len(s.requests), want)
	}
	return s
}

// begin takes note of where a Pi is before a stint.
func begin(w *rig.World, p *rig.Pi) (s stint) {
	if turns := w.Model.Turns(p.Session); len(turns) > 0 {
		s.before, s.requests = turns[len(turns)-1], turns
	}
	return s
}

// end takes what came since.
func (s *stint) end(w *rig.World, p *rig.Pi) {
	s.requests = w.Model.Turns(p.Session)[len(s.requests):]
}

// added lists the messages that a request, counted from 0, adds to the one
// before.
func (s stint) added(i int) []model.Message {
	before := s.before
	if i > 0 {
		before = s.requests[i-1]
	}
	return s.requests[i].Messages[min(len(before.Messages), len(s.requests[i].Messages)):]
}

// told is what a request tells of the team, and the one before did not: the
// first is what came with the prompt.
func (s stint) told(i int) string {
	var out []string
	for _, m := range s.added(i) {
		if m.Role == "user" && strings.Contains(m.Text, "📡") {
			out = append(out, m.Text)
		}
	}
	return strings.Join(out, "\n")
}

// answers are the results of the tool calls, in order.
func (s stint) answers() (out []string) {
	for i := range s.requests {
		for _, m := range s.added(i) {
			if m.Role == "tool" {
				out = append(out, m.Text)
			}
		}
	}
	return out
}

// has checks that a text has all parts.
func has(t *testing.T, what, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%s lacks %q:\n%s", what, part, text)
		}
	}
}

// lacks checks that a text has none of the parts.
func lacks(t *testing.T, what, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if strings.Contains(text, part) {
			t.Errorf("%s has %q:\n%s", what, part, text)
		}
	}
}

// silent checks that nothing was told.
func silent(t *testing.T, what, text string) {
	t.Helper()
	if text != "" {
		t.Errorf("%s carries:\n%s", what, text)
	}
}

// foot waits for a footer.
func foot(t *testing.T, p *rig.Pi, want string) {
	t.Helper()
	rig.Eventually(t, rig.Watchdog, p.Session+" to show "+want, func() bool { return footer(p) == want })
}

// pair starts alpha and bravo, who see each other.
func pair(t *testing.T, w *rig.World, a, b rig.Options) (alpha, bravo *rig.Pi) {
	t.Helper()
	a.Session, b.Session = "alpha", "bravo"
	alpha = start(t, w, a)
	bravo = start(t, w, b)
	foot(t, alpha, "📡 alpha · 1 peer")
	foot(t, bravo, "📡 bravo · 1 peer")
	return alpha, bravo
}

// testdata is an extension of ours beside the tests.
func testdata(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// compact has a Pi compact its conversation.
func compact(t *testing.T, w *rig.World, p *rig.Pi) {
	t.Helper()
	w.Model.ScriptSummary(p.Session, model.Step{Text: "## Goal\nthe summary"})
	rig.Eventually(t, rig.Watchdog, "rest before the compaction", func() bool { return !p.State().IsStreaming })
	if r := p.Cmd(map[string]any{"type": "compact"}, rig.Watchdog); !r.Success {
		t.Fatalf("compact: %s", r.Error)
	}
}

// long is an answer that leaves a compaction something to do.
var long = model.Step{Text: strings.Repeat("lorem ipsum dolor ", 900)}

// small lets a Pi compact a short conversation.
func small(w *rig.World) rig.Options {
	w.Settings(map[string]any{"compaction": map[string]any{"enabled": false, "reserveTokens": 4000, "keepRecentTokens": 2000}})
	return rig.Options{Args: []string{"--model", "rig/scripted-small"}}
}

// A prompt without news carries nothing. After a compaction the team is
// described again, once.
func TestBriefAfterCompaction(t *testing.T) {
	t.Parallel()
	w := rig.NewWorld(t)
	alpha, bravo := pair(t, w, small(w), rig.Options{})
	const full = "you are alpha. 1 other agent works in this repository"
	has(t, "the first prompt", work(t, w, alpha, "hello", long).told(0), full, "• bravo [idle] on main")
	work(t, w, bravo, "write the session migration")
	has(t, "the second prompt", work(t, w, alpha, "again").told(0), "bravo now works on: write the session migration")
	silent(t, "a prompt without news", work(t, w, alpha, "and again").told(0))

	compact(t, w, alpha)
	whole := work(t, w, alpha, "go on").requests[0].Transcript()
	has(t, "the request after the compaction", whole, "the summary", full, "• bravo [", "task: write the session migration")
	if n := strings.Count(whole, "you are alpha. "); n != 1 {
		t.Errorf("the request after the compaction holds %d briefs, want the new one alone:\n%s", n, whole)
	}
	silent(t, "the prompt after that", work(t, w, alpha, "and on").told(0))
}

// A file read before a compaction gives no notice, and one read since does. The
// guard knows both.
func TestNoticesAfterCompaction(t *testing.T) {
	t.Parallel()
	w := rig.NewWorld(t)
	alpha, bravo := pair(t, w, small(w), rig.Options{})
	w.Write("old.txt", "one\ntwo\n")
	w.Write("new.txt", "one\ntwo\n")
	work(t, w, alpha, "read the old one", read("old.txt"))
	work(t, w, alpha, "hello", long)
	compact(t, w, alpha)
	work(t, w, alpha, "read the new one", read("new.txt"))
	work(t, w, bravo, "change both", edit("old.txt", "one", "ONE"), edit("new.txt", "one", "ONE"))

	s := work(t, w, alpha, "write both", write("old.txt", "alpha\n"), write("new.txt", "alpha\n"))
	has(t, "the prompt", s.told(0), "📡 bravo changed a file you work with", "• new.txt: 1 edit from line 1; you read it")
	lacks(t, "the prompt", s.told(0), "old.txt")
	for i, file := range []string{"old.txt", "new.txt"} {
		has(t, "the answer to a stale write", s.answers()[i], "Not done: bravo changed "+file, "since you read it")
		if got := fileText(t, inWorld(w, file)); got != "ONE\ntwo\n" {
			t.Errorf("%s is %q", file, got)
		}
	}

	// Read again it is in the context, as any other.
	work(t, w, alpha, "read it again", read("old.txt"))
	work(t, w, bravo, "change it again", edit("old.txt", "two", "TWO"))
	has(t, "the prompt after reading again", work(t, w, alpha, "go on").told(0), "• old.txt: 1 edit from line 2; you read it")
}

// to navigates to the answer with a text.
func to(t *testing.T, p *rig.Pi, text string) {
	t.Helper()
	n := len(p.Notifications())
	p.Prompt("/to " + text)
	rig.Eventually(t, rig.Watchdog, "to be at "+text, func() bool {
		for _, note := range p.Notifications()[n:] {
			if note.Text == "went to "+text {
				return true
			}
		}
		return false
	})
}

// What /tree leaves behind is told again with the next prompt.
func TestBriefAfterTree(t *testing.T) {
	t.Parallel()
	w := rig.NewWorld(t)
	alpha := start(t, w, rig.Options{Session: "alpha", ExtensionPaths: []string{testdata(t, "tree.ts")}})
	silent(t, "a prompt while alone", work(t, w, alpha, "hello", model.Step{Text: "alone here"}).told(0))
	bravo := start(t, w, rig.Options{Session: "bravo"})
	foot(t, alpha, "📡 alpha · 1 peer")
	const full = "you are alpha. 1 other agent works in this repository"
	s := work(t, w, alpha, "who is there", model.Step{Text: "bravo is there"})
	has(t, "the first brief", s.told(0), full)
	lacks(t, "the first brief", s.told(0), "session migration")
	work(t, w, bravo, "write the session migration")
	has(t, "the news", work(t, w, alpha, "what is new").told(0), "bravo now works on: write the session migration")
	silent(t, "a prompt without news", work(t, w, alpha, "and now").told(0))

	to(t, alpha, "alone here")
	whole := work(t, w, alpha, "start over").requests[0].Transcript()
	has(t, "the request after /tree to the beginning", whole, full, "task: write the session migration")
	if strings.Contains(whole, "bravo is there") || strings.Count(whole, "📡") != 1 {
		t.Errorf("the request after /tree is not on another branch with one brief:\n%s", whole)
	}
	silent(t, "the prompt after that", work(t, w, alpha, "and on").told(0))

	// To where the brief is in the context, and the news after it is not.
	to(t, alpha, "bravo is there")
	whole = work(t, w, alpha, "once more").requests[0].Transcript()
	has(t, "the request after /tree to the middle", whole, full, "bravo is there", "write the session migration")
	silent(t, "the prompt after that", work(t, w, alpha, "and on").told(0))
}

// When /tree leaves a change notice behind, and what was read stays in the
// context, the brief says that the file was changed; the guard holds a stale
// write back.
func TestNoticeAfterTree(t *testing.T) {
	t.Parallel()
	w := rig.NewWorld(t)
	alpha, bravo := pair(t, w, rig.Options{ExtensionPaths: []string{testdata(t, "tree.ts")}}, rig.Options{})
	work(t, w, alpha, "read it", read("a.txt"), model.Step{Text: "read once"})
	work(t, w, bravo, "change it", edit("a.txt", "one", "ONE"))
	has(t, "the prompt", work(t, w, alpha, "go on").told(0), "• a.txt: 1 edit from line 1; you read it")

	to(t, alpha, "read once")
	s := work(t, w, alpha, "go on from there", write("a.txt", "alpha\n"))
	has(t, "the request after /tree", s.requests[0].Transcript(), "changed: a.txt (", "yours too", "Call read on a file they changed before you edit it.")
	has(t, "the answer to the stale write", s.answers()[len(s.answers())-1], "Not done: bravo changed a.txt")
}

// What was read on a branch that /tree left is not read on this one: a write
// from what the context holds would undo the peer's change.
func TestStaleWriteAfterTree(t *testing.T) {
	t.Parallel()
	w := rig.NewWorld(t)
	alpha, bravo := pair(t, w, rig.Options{ExtensionPaths: []string{testdata(t, "tree.ts")}}, rig.Options{})
	work(t, w, alpha, "read it", read("a.txt"), model.Step{Text: "read once"})
	work(t, w, bravo, "change it", edit("a.txt", "one", "ONE"))
	work(t, w, alpha, "read it again", read("a.txt"), model.Step{Text: "read twice"})

	to(t, alpha, "read once")
	s := work(t, w, alpha, "write it", write("a.txt", "one\ntwo\nalpha\n"))
	if whole := s.requests[0].Transcript(); strings.Contains(whole, "ONE") {
		t.Fatalf("the context knows of the change:\n%s", whole)
	}
	has(t, "the answer to the stale write", s.answers()[len(s.answers())-1], "Not done: bravo changed a.txt")
	if got := fileText(t, inWorld(w, "a.txt")); got != "ONE\ntwo\nthree\n" {
		t.Errorf("the file is %q: bravo's change is lost", got)
	}
}

// Who joins or leaves while an agent is in a run is told in that run, and not
// again. An idle agent is not woken by it, and hears it with its next prompt.
func TestPresenceInARun(t *testing.T) {
	t.Parallel()
	w := rig.NewWorld(t)
	alpha := start(t, w, rig.Options{Session: "alpha"})
	bravo := start(t, w, rig.Options{Session: "bravo"})
	idle := start(t, w, rig.Options{Session: "charlie"})
	foot(t, alpha, "📡 alpha · 2 peers")
	foot(t, idle, "📡 charlie · 2 peers")
	has(t, "alpha's first prompt", work(t, w, alpha, "hello").told(0), "• bravo [idle] on main", "• charlie [idle] on main")
	has(t, "charlie's first prompt", work(t, w, idle, "hello").told(0), "• alpha [", "• bravo [idle] on main")
	idleRequests := len(w.Model.Requests("charlie"))

	s := begin(w, alpha)
	n := len(s.requests)
	joined, left, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	first, second := read("a.txt"), read("b.txt")
	first.Wait, second.Wait = joined, left
	w.Model.Script("alpha", first, second, model.Step{Text: "ok", Wait: done})
	alpha.Prompt("work on")
	w.Model.WaitRequest(t, "alpha", n+1, rig.Watchdog)

	peers := func(p *rig.Pi, want string) { // who is busy changes by itself
		t.Helper()
		rig.Eventually(t, rig.Watchdog, p.Session+" to have "+want, func() bool { return strings.Contains(footer(p), want) })
	}
	start(t, w, rig.Options{Session: "delta"})
	peers(alpha, "3 peers")
	peers(idle, "3 peers")
	close(joined)
	w.Model.WaitRequest(t, "alpha", n+2, rig.Watchdog)
	bravo.Quit()
	peers(alpha, "2 peers")
	peers(idle, "2 peers")
	close(left)
	w.Model.WaitRequest(t, "alpha", n+3, rig.Watchdog)
	close(done)
	alpha.Settled()
	s.end(w, alpha)
	if len(s.requests) != 3 {
		t.Fatalf("the run made %d requests, want 3", len(s.requests))
	}
	silent(t, "the prompt", s.told(0))
	has(t, "the turn after the join", s.told(1), "📡 Telecom: news of your team (you are alpha)\n• joined: delta [idle] on main")
	lacks(t, "the turn after the join", s.told(1), "left", "you are alpha.")
	if got := s.told(2); got != "📡 Telecom: news of your team (you are alpha)\n• bravo left" {
		t.Errorf("the turn after the departure carries:\n%s", got)
	}
	silent(t, "alpha's next prompt", work(t, w, alpha, "go on").told(0))

	if got := len(w.Model.Requests("charlie")); got != idleRequests {
		t.Errorf("charlie, idle, made %d requests", got-idleRequests)
	}
	s = work(t, w, idle, "what is new")
	has(t, "charlie's next prompt", s.told(0), "• bravo left\n• joined: delta [idle] on main")
	silent(t, "charlie's prompt after that", work(t, w, idle, "and now").told(0))
}

// Of five others a brief describes those near one's work; the rest share a
// line. Who comes near is described then, with what was left out until then.
func TestNearAndAway(t *testing.T) {
	t.Parallel()
	w := rig.NewWorld(t)
	w.Write("near.txt", "one\ntwo\n")
	alpha := start(t, w, rig.Options{Session: "alpha", ExtensionPaths: []string{testdata(t, "tree.ts")}})
	peers := map[string]*rig.Pi{}
	for _, name := range []string{"bravo", "charlie", "delta", "echo", "foxtrot"} {
		peers[name] = start(t, w, rig.Options{Session: name})
		if got := callsign(peers[name]); got != name {
			t.Fatalf("%s is called %s", name, got)
		}
	}
	foot(t, alpha, "📡 alpha · 5 peers")
	const nobodyNear = "you are alpha. 5 other agents work in this repository.\n" +
		"Away from your work so far: bravo [idle]; charlie [idle]; delta [idle]; echo [idle]; foxtrot [idle]\n"
	s := work(t, w, alpha, "read it", read("near.txt"), model.Step{Text: "nobody is near"})
	has(t, "the first brief", s.told(0), nobodyNear)
	lacks(t, "the first brief", s.told(0), "•")

	work(t, w, peers["delta"], "mend the build")
	silent(t, "a prompt after a task of one that is away", work(t, w, alpha, "go on").told(0))

	work(t, w, peers["bravo"], "change what alpha reads", edit("near.txt", "one", "ONE"))
	s = work(t, w, alpha, "go on")
	has(t, "the prompt after bravo's change", s.told(0),
		"• now near your work: bravo [", "task: change what alpha reads", "changed: near.txt (", "yours too)")
	lacks(t, "the prompt after bravo's change", s.told(0), "charlie", "delta", "echo", "foxtrot", "you are alpha. ")
	silent(t, "the prompt after that", work(t, w, alpha, "go on").told(0))

	work(t, w, peers["bravo"], "write the session migration")
	has(t, "the prompt after a task of one that is near", work(t, w, alpha, "go on").told(0), "• bravo now works on: write the session migration")

	work(t, w, alpha, "read it again", read("near.txt"))
	work(t, w, peers["delta"], "change it as well", edit("near.txt", "two", "TWO"))
	s = work(t, w, alpha, "go on")
	has(t, "the prompt after delta's change", s.told(0), "• now near your work: delta [", "task: change it as well", "changed: near.txt (")
	lacks(t, "the prompt after delta's change", s.told(0), "near your work: bravo", "charlie", "echo", "foxtrot")

	// A whole brief says the same at once.
	to(t, alpha, "nobody is near")
	whole := work(t, w, alpha, "start over").requests[0].Transcript()
	has(t, "the whole brief", whole, "5 other agents work in this repository, 2 of them near your work:\n• ", "• bravo [idle", "• delta [idle",
		"Away from your work so far: charlie [idle]; echo [idle]; foxtrot [idle]\n")
	lacks(t, "the whole brief", whole, "• charlie", "• echo", "• foxtrot")
}

// An idle agent hears of changes with its next prompt and is not woken. A file
// gives one notice until it is read again; a peer's edits at once are one.
func TestNoticesToAnIdleAgent(t *testing.T) {
	t.Parallel()
	w := rig.NewWorld(t)
	alpha, bravo := pair(t, w, rig.Options{}, rig.Options{})
	w.Write("never.txt", "one\n")
	work(t, w, alpha, "read them", read("a.txt"), read("b.txt"))
	n := len(w.Model.Requests("alpha"))

	at := model.Step{}
	for _, s := range []model.Step{edit("a.txt", "one", "ONE"), edit("a.txt", "two", "TWO"), edit("b.txt", "four", "FOUR"), edit("never.txt", "one", "ONE")} {
		at.Tools = append(at.Tools, s.Tools...)
	}
	work(t, w, bravo, "change them", at)
	// Whoever joins after the change is seen after the change.
	start(t, w, rig.Options{Session: "charlie"})
	foot(t, alpha, "📡 alpha · 2 peers")
	if got := len(w.Model.Requests("alpha")); got != n {
		t.Errorf("alpha, idle, made %d requests", got-n)
	}
	s := work(t, w, alpha, "go on")
	got := s.told(0)
	has(t, "the prompt", got, "📡 bravo changed 2 files you work with:\n", "• a.txt: 2 edits from line 1; you read it\n    -one\n", "• b.txt: 1 edit from line 1; you read it\n    -four\n    +FOUR\n")
	if strings.Count(got, "📡 bravo changed") != 1 || strings.Contains(got, "never.txt") {
		t.Errorf("the prompt carries more than one notice, or one of a file that alpha never read:\n%s", got)
	}
	if got := len(w.Model.Requests("alpha")); got != n+1 {
		t.Errorf("alpha made %d requests, want the prompt's", got-n)
	}

	work(t, w, bravo, "continue", edit("a.txt", "three", "THREE"))
	silent(t, "a prompt after a second change", work(t, w, alpha, "go on").told(0))
	work(t, w, alpha, "read it", read("a.txt"))
	work(t, w, bravo, "continue", edit("a.txt", "THREE", "three"))
	has(t, "a prompt after reading again and a third change", work(t, w, alpha, "go on").told(0), "• a.txt: 1 edit from line 3; you read it")
}

// A busy agent hears of changes at the end of a turn, and edits at once in one
// notice. The last turn stays the last.
func TestNoticesToABusyAgent(t *testing.T) {
	t.Parallel()
	w := rig.NewWorld(t)
	alpha, bravo := pair(t, w, rig.Options{}, rig.Options{})
	work(t, w, bravo, "change files") // its task from now on: one word makes none
	work(t, w, alpha, "read them", read("a.txt"), read("b.txt"))

	s := begin(w, alpha)
	n := len(s.requests)
	// A notice is held until it is a second old, so that more edits join it: the
	// run goes on until it was told.
	gate := make(chan struct{})
	step := read("src/main.go")
	step.Wait = gate
	w.Model.Script("alpha", step)
	alpha.Prompt("work on")
	w.Model.WaitRequest(t, "alpha", n+1, rig.Watchdog)
	work(t, w, bravo, "continue", edit("a.txt", "one", "ONE"), edit("a.txt", "two", "TWO"))
	told := 0
	for i := n + 2; told == 0; i++ {
		next := make(chan struct{})
		step := tool("bash", map[string]any{"command": "sleep 0.2"})
		step.Wait = next
		w.Model.Script("alpha", step)
		close(gate)
		gate = next
		if r := w.Model.WaitRequest(t, "alpha", i, rig.Watchdog); strings.Contains(r.Transcript(), "📡 bravo changed") {
			told = i - n - 1
		} else if i > n+300 {
			t.Fatalf("not told in %d turns", i-n)
		}
	}
	close(gate)
	alpha.Settled()
	s.end(w, alpha)
	if len(s.requests) != told+2 {
		t.Errorf("told with request %d of the run, which made %d", told+1, len(s.requests))
	}
	has(t, "the turn", s.told(told), "📡 bravo changed a file you work with:\n• a.txt: 2 edits from line 1; you read it\n")
	if last := s.added(told); last[len(last)-1].Role != "user" || last[len(last)-2].Role != "tool" {
		t.Errorf("the notice did not come at the end of the turn: %+v", last)
	}
	silent(t, "the turn after that", s.told(told+1))
	silent(t, "the prompt after that", work(t, w, alpha, "go on").told(0))

	// While the model gives its last answer.
	s = begin(w, alpha)
	n = len(s.requests)
	gate = make(chan struct{})
	w.Model.Script("alpha", model.Step{Text: "ok", Wait: gate})
	alpha.Prompt("finish")
	w.Model.WaitRequest(t, "alpha", n+1, rig.Watchdog)
	work(t, w, bravo, "continue", edit("b.txt", "four", "FOUR"))
	start(t, w, rig.Options{Session: "charlie"})
	foot(t, alpha, "📡 alpha · 2 peers") // and so it knows of the change
	close(gate)
	alpha.Settled()
	s.end(w, alpha)
	if len(s.requests) != 1 {
		t.Errorf("a change during the last answer made %d more requests", len(s.requests)-1)
	}
	has(t, "the next prompt", work(t, w, alpha, "go on").told(0), "• b.txt: 1 edit from line 1; you read it", "joined: charlie")
	if got := len(w.Model.Requests("alpha")); got != n+2 {
		t.Errorf("alpha made %d requests, want 2", got-n)
	}
	if errs := alpha.ExtensionErrors(); len(errs) > 0 {
		t.Error(fmt.Sprint("errors in Pi: ", errs))
	}
}
