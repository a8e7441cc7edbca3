//go:build linux

// Package overwrite tests the promise of the edit guard: no change that was
// allowed and reported done without a word is overwritten unseen. The sidecars
// are real; the test plays Pi and the extension for them.
package overwrite

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"switchboard/e2e/rig"
)

const (
	sessions = 8
	files    = 5
	// killEvery is how many rounds there are to one kill.
	killEvery = 20
	// rereads is how often a refused round reads again. Some of eight may
	// always be faster, but not for so long.
	rereads = 60
)

// Sessions add lines to shared files by whole-file writes while their sidecars
// are killed: a line that was added without a fault or a note stays, unless a
// round with a fault or a note went over it.
func TestNoSilentOverwriteSoak(t *testing.T) {
	rounds := 160
	if n, _ := strconv.Atoi(os.Getenv("SOAK")); n > 0 { // unset means no soak
		rounds = 40 * n
	}
	seed := rand.Uint64()
	if s := os.Getenv("SEED"); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatalf("SEED: %v", err)
		}
	}
	for _, mode := range []string{"standard", "strict"} {
		t.Run(mode, func(t *testing.T) { soak(t, mode, rounds, seed) })
	}
}

func soak(t *testing.T, mode string, rounds int, seed uint64) {
	t.Logf("repeat with SEED=%d", seed)
	w := rig.NewWorld(t)
	var shared []*file
	for i := range files {
		shared = append(shared, newFile(t, w, fmt.Sprintf("shared-%d.txt", i)))
	}
	players := make([]*player, sessions)
	for i := range players {
		players[i] = &player{
			session: join(t, w, fmt.Sprintf("s%d", i), "PI_TELECOM_GUARD="+mode),
			rnd:     rand.New(rand.NewPCG(seed, uint64(i))), known: make(map[*file]string),
		}
	}
	for _, p := range players {
		await(t, p.session, fmt.Sprintf("%d peers", sessions-1))
	}
	began := time.Now()
	var all sync.WaitGroup
	for _, p := range players {
		all.Go(func() {
			for n := range rounds / sessions {
				p.round(shared[p.rnd.IntN(files)], fmt.Sprintf("%s-%d", p.session.name, n))
			}
		})
	}
	all.Wait()
	took := time.Since(began)

	var l ledger
	for _, f := range shared {
		l.judge(t, f)
	}
	var kills, holds, unfinished int
	var refused [2]int
	for _, p := range players {
		kills, holds = kills+p.session.kills, holds+p.session.holds
		refused[0], refused[1], unfinished = refused[0]+p.stale, refused[1]+p.ahead, unfinished+p.unfinished
	}
	t.Logf("%s: %d rounds in %v, %d kills: %d acknowledged, %d given up after %d refusals; %d refusals as unread, %d as under way; %d waits for a peer",
		mode, l.acknowledged+l.excepted+unfinished, took.Round(time.Millisecond), kills, l.acknowledged, unfinished, rereads, refused[0], refused[1], holds)
	t.Logf("%d exceptions, of which %d were lost: %s", l.excepted, l.exceptedLost, counts(l.exceptions))
	t.Logf("acknowledged and lost: %d explained %s, %d not explained", l.explained, counts(l.explanations), l.silent)
	if l.acknowledged < rounds/4 || kills == 0 || refused[0] == 0 {
		t.Errorf("of %d rounds %d were acknowledged, with %d kills and %d refusals: that tests nothing", rounds, l.acknowledged, kills, refused[0])
	}
}

func counts(m map[string]int) string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		out = append(out, fmt.Sprintf("%d %s", m[k], k))
	}
	return "(" + strings.Join(out, ", ") + ")"
}

// With the guard off the schedule that it is there for loses a change; with it
// on the second write is refused, and the change made on top of the first.
func TestGuardOffLosesOne(t *testing.T) {
	for _, mode := range []string{"off", "standard"} {
		t.Run(mode, func(t *testing.T) {
			w := rig.NewWorld(t)
			f := newFile(t, w, "shared.txt")
			var players []*player
			for _, name := range []string{"ann", "bob"} {
				players = append(players, &player{
					session: join(t, w, name, "PI_TELECOM_GUARD="+mode),
					rnd:     rand.New(rand.NewPCG(1, 1)), known: make(map[*file]string),
				})
			}
			ann, bob := players[0], players[1]
			await(t, ann.session, "1 peer")
			await(t, bob.session, "1 peer")

			first, second := &round{by: "ann", token: "ann's line"}, &round{by: "bob", token: "bob's line"}
			bobs := bob.read(second, f)
			if refusal := ann.write(first, f, ann.read(first, f)); refusal != "" || first.fault != "" {
				t.Fatalf("ann's write: refused %q, fault %q", refusal, first.fault)
			}
			refusal := bob.write(second, f, bobs)
			if mode == "off" {
				if refusal != "" || second.fault != "" {
					t.Fatalf("bob's write: refused %q, fault %q", refusal, second.fault)
				}
				var l ledger
				if lost := l.lost(t, f); len(lost) != 1 || lost[0].token != first.token {
					t.Errorf("lost %v, want ann's line: the ledger sees no loss", lost)
				}
				return
			}
			if !strings.HasPrefix(refusal, "Not done: alpha changed shared.txt") && !strings.HasPrefix(refusal, "Not done: bravo changed shared.txt") {
				t.Fatalf("bob's write over ann's: refused %q, fault %q", refusal, second.fault)
			}
			if refusal := bob.write(second, f, bob.read(second, f)); refusal != "" || second.fault != "" {
				t.Fatalf("bob's second write: refused %q, fault %q", refusal, second.fault)
			}
			var l ledger
			if lost := l.lost(t, f); len(lost) != 0 {
				t.Errorf("lost %v", lost)
			}
		})
	}
}

// await waits until a session's footer shows something.
func await(t *testing.T, s *session, what string) {
	t.Helper()
	rig.Eventually(t, rig.Watchdog, s.name+" to have "+what, func() bool { return strings.Contains(s.footer(), what) })
}

// player is a model that adds lines to files.
type player struct {
	session *session
	rnd     *rand.Rand
	calls   int
	known   map[*file]string // what it last saw of a file, or wrote

	stale, ahead int // refusals: over an unread change, and beside one under way
	unfinished   int // rounds that were always refused
}

// round is one change.
type round struct {
	by, token string
	fault     string // why it is none that the guard answers for; empty if it is
	base      string // what was read for it
	readFrom  time.Time
	readTo    time.Time
	trace     []string
}

func (r *round) String() string { return r.by + "'s " + r.token }

func (r *round) note(format string, args ...any) {
	r.trace = append(r.trace, time.Now().Format("05.000000 ")+fmt.Sprintf(format, args...))
}

func (r *round) except(kind string) {
	if r.fault == "" {
		r.fault = kind
	}
	r.note("%s", kind)
}

// round adds a line to a file.
func (p *player) round(f *file, token string) {
	r := &round{by: p.session.name, token: token}
	if p.rnd.IntN(killEvery) == 0 {
		// Now and then between two rounds, mostly within this one.
		time.AfterFunc(p.upTo(60*time.Millisecond), p.session.kill)
	}
	// Models are slow: the sidecar that was killed, or was late, is mostly there
	// again. Late it may be for long, and it is no fault of the test's then.
	if p.rnd.IntN(4) > 0 {
		for deadline := time.Now().Add(10 * time.Second); !p.session.ready() && time.Now().Before(deadline); {
			time.Sleep(time.Millisecond)
		}
	}
	for n := range rereads {
		text, seen := p.known[f]
		if n == 0 && seen && p.rnd.IntN(6) == 0 {
			r.base = text
			r.note("goes by what it knows")
		} else {
			text = p.read(r, f)
		}
		p.pause()
		if p.write(r, f, text) == "" {
			return
		}
		p.pause()
	}
	p.unfinished++
}

// upTo is a random time.
func (p *player) upTo(most time.Duration) time.Duration {
	return time.Duration(p.rnd.Int64N(int64(most)))
}

// pause is mostly short, so that calls meet.
func (p *player) pause() {
	switch p.rnd.IntN(8) {
	case 0:
		time.Sleep(p.upTo(30 * time.Millisecond))
	case 1, 2, 3:
		time.Sleep(p.upTo(3 * time.Millisecond))
	}
}

// begin begins a tool call, in a message of its own.
func (p *player) begin(tool string) (m *message, call string) {
	p.calls++
	call = fmt.Sprintf("%s-call-%d", p.session.name, p.calls)
	p.session.event("tool_execution_start", call, tool)
	return p.session.message(), call
}

// end ends a write's call, and the turn.
func (p *player) end(m *message, call string) {
	p.session.event("tool_execution_end", call, "")
	var nothing any
	_ = m.ask("boundary", fields{"at": "turn-end", "closed": true, "now": snapshot}, &nothing) // late or not, the turn ends
}

type verdict struct {
	Block  bool   `json:"block"`
	Reason string `json:"reason"`
}

type note struct {
	Text string `json:"text"`
}

// read is a call of the tool read.
func (p *player) read(r *round, f *file) string {
	m, call := p.begin("read")
	var v verdict
	if fault := m.ask("toolCall", fields{"tool": "read", "callId": call, "path": f.name}, &v); fault != "" {
		r.note("read's call: %s", fault)
		p.unfailed(fault)
	}
	if v.Block {
		p.session.t.Errorf("a read was refused: %s", v.Reason)
	}
	p.pause()
	r.readFrom = time.Now()
	text, err := readTool(f.path)
	if err != nil {
		p.session.t.Errorf("read: %v", err)
	}
	r.readTo, r.base = time.Now(), text
	p.pause()
	var n note
	fault := m.ask("toolDone", fields{"tool": "read", "callId": call, "path": f.name, "failed": false}, &n)
	p.unfailed(fault)
	r.note("read %d lines %s", strings.Count(text, "\n"), fault)
	p.session.event("tool_execution_end", call, "")
	p.known[f] = text
	return text
}

// write is a call of the tool write, with the round's line added to what was
// there. It returns why it was refused; the file is as it was then.
func (p *player) write(r *round, f *file, text string) (refusal string) {
	m, call := p.begin("write")
	asked := p.session.current()
	var v verdict
	fault := m.ask("toolCall", fields{"tool": "write", "callId": call, "path": f.name}, &v)
	p.unfailed(fault)
	switch {
	case fault != "":
		r.except("without a verdict: " + string(fault))
	case v.Block:
		r.note("refused: %s", v.Reason)
		p.end(m, call) // Pi tells no tool_result of a tool that did not run
		if strings.HasPrefix(v.Reason, "Not written:") {
			p.ahead++
		} else {
			p.stale++
		}
		return v.Reason
	default:
		r.note("allowed")
	}
	p.pause()
	text += r.token + "\n"
	slowly := time.Duration(0)
	if p.rnd.IntN(4) == 0 {
		slowly = p.upTo(3 * time.Millisecond)
	}
	if err := f.write(r, text, slowly); err != nil {
		p.session.t.Errorf("write: %v", err)
	}
	p.known[f] = text
	p.pause()
	var n note
	if fault = m.ask("toolDone", fields{"tool": "write", "callId": call, "path": f.name, "failed": false}, &n); fault != "" {
		p.unfailed(fault)
		r.except("its end not answered: " + string(fault))
	}
	if asked != p.session.current() {
		r.except("another sidecar since its verdict")
	}
	if n.Text != "" {
		r.except("noted: " + kindOf(n.Text))
		r.note("%s", n.Text)
	}
	r.note("done")
	p.end(m, call)
	return ""
}

// unfailed fails the test for an answer that is an error: the extension would
// let the tool run without a word to anybody.
func (p *player) unfailed(f fault) {
	if strings.HasPrefix(string(f), string(failed)) {
		p.session.t.Errorf("%s's sidecar answered with an %s", p.session.name, f)
	}
}

func kindOf(note string) string {
	switch {
	case strings.Contains(note, "which you still haven't read"):
		return "third attempt"
	case strings.Contains(note, "while this write was under way"):
		return "changed meanwhile"
	}
	return note
}

// file is a shared file and all that was written to it. Its lock orders the
// writes for the ledger; what reads, and what decides who may write, does not
// take it.
type file struct {
	name, path string

	mu      sync.Mutex
	history []version
}

// version is one write.
type version struct {
	by           *round // nil for the first
	began, ended time.Time
	text         string
}

func newFile(t *testing.T, w *rig.World, name string) *file {
	f := &file{name: name, path: filepath.Join(w.Dir, name), history: []version{{text: name + "\n"}}}
	w.Write(name, f.history[0].text)
	return f
}

func (f *file) write(r *round, text string, slowly time.Duration) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	r.note("writes %d lines", strings.Count(text, "\n"))
	v := version{by: r, began: time.Now(), text: text}
	err := writeTool(f.path, text, slowly)
	v.ended = time.Now()
	f.history = append(f.history, v)
	return err
}

// ledger counts what became of the rounds that wrote.
type ledger struct {
	acknowledged int
	excepted     int
	exceptions   map[string]int
	exceptedLost int
	explained    int // acknowledged and lost, by the fault of another
	explanations map[string]int
	silent       int // acknowledged and lost
}

// lost lists the rounds whose line is not in the file.
func (l *ledger) lost(t *testing.T, f *file) (out []*round) {
	final, err := readTool(f.path)
	if err != nil {
		t.Fatal(err)
	}
	if last := f.history[len(f.history)-1].text; final != last {
		t.Errorf("%s is not what was written last:\n%s\nwant:\n%s", f.name, final, last)
	}
	for _, v := range f.history[1:] {
		if !has(final, v.by) {
			out = append(out, v.by)
		}
	}
	return out
}

func has(text string, r *round) bool { return strings.Contains("\n"+text, "\n"+r.token+"\n") }

// judge counts a file's rounds, and fails the test for each that was lost
// without an explanation.
func (l *ledger) judge(t *testing.T, f *file) {
	if l.exceptions == nil {
		l.exceptions, l.explanations = make(map[string]int), make(map[string]int)
	}
	for _, v := range f.history[1:] {
		if v.by.fault == "" {
			l.acknowledged++
		} else {
			l.excepted++
			l.exceptions[v.by.fault]++
		}
	}
	for _, r := range l.lost(t, f) {
		if r.fault != "" {
			l.exceptedLost++
			continue
		}
		over, why := f.overwriter(r)
		if why != "" {
			l.explained++
			l.explanations[why]++
			continue
		}
		l.silent++
		t.Errorf("%s is lost from %s without a word.\n%s:\n  %s\noverwritten by %s:\n  %s",
			r, f.name, r, strings.Join(r.trace, "\n  "), over, strings.Join(over.trace, "\n  "))
	}
}

// overwriter finds the write that dropped a round's line, and what explains
// that: its own exception, or that it read what one with an exception had
// written by half.
func (f *file) overwriter(lost *round) (by *round, why string) {
	i := slices.IndexFunc(f.history, func(v version) bool { return v.by == lost })
	for i++; i < len(f.history); i++ {
		if !has(f.history[i].text, lost) {
			break
		}
	}
	if i == len(f.history) {
		return &round{by: "nobody"}, ""
	}
	by = f.history[i].by
	if by.fault != "" {
		return by, "by one " + by.fault
	}
	whole := slices.ContainsFunc(f.history, func(v version) bool { return v.text == by.base })
	for _, v := range f.history[1:] {
		if !whole && v.by.fault != "" && v.began.Before(by.readTo) && v.ended.After(by.readFrom) {
			return by, "after a look at half a write by one " + v.by.fault
		}
	}
	return by, ""
}
