package agent_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"switchboard/internal/agent"
	"switchboard/internal/exchange"
	"switchboard/internal/guard"
	"switchboard/internal/lifecycle"
	"switchboard/internal/team"
)

// crew is a team with one journal and one disk. A change of a file is a word
// that is added to it, so that lost ones can be counted.
type crew struct {
	t       failer
	mode    guard.Mode
	now     time.Time
	seq     uint64
	journal []exchange.Entry
	whole   []exchange.Entry    // the same, never made shorter
	disk    map[string][]string // words of each file; nil if there is none
	members []*hand
	words   int
	done    map[string]bool // words whose call was reported done
	silent  int             // writes that went over unread words without a note
}

// failer is a test, or one round of a property.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
	Errorf(format string, args ...any)
}

// hand is one session: its agent, what a sidecar does for it, and its model.
type hand struct {
	c       *crew
	id      string
	brain   *agent.Agent // nil while the process is dead
	events  []agent.Event
	read    uint64 // how far of the journal
	record  exchange.Record
	memory  []byte
	stays   int
	req     agent.Request
	answers map[agent.Request]any
	calls   map[string]*call
	knows   map[string][]string // words of each file that the model has seen
	alone   []string            // words that it added while nobody else had ever been there, until somebody comes
	branch  []step              // the calls that the conversation holds
	other   []step              // those of the branch that it was on before
	deaf    bool                // does not hear rings, only what it looks up itself
}

// call is one call of a tool.
type call struct {
	id   string
	op   agent.Op
	path team.Path
	req  agent.Request // for its verdict
	word string        // that it added
	ran  bool
	lost []string // what it went over
	// forgotten: it began while nobody else was there, which only the helper
	// knew that died since.
	forgotten bool
}

// step is a call in a conversation, and what the model knew of its file then.
type step struct {
	call, file string
	words      []string
}

func newCrew(t failer, mode guard.Mode, n int) *crew {
	c := &crew{t: t, mode: mode, now: t0, disk: make(map[string][]string), done: make(map[string]bool)}
	for range n {
		c.add()
	}
	return c
}

// add has one more session join.
func (c *crew) add() {
	h := &hand{c: c, id: fmt.Sprint("s", len(c.members)), knows: make(map[string][]string)}
	c.members = append(c.members, h)
	h.start(false)
}

func at(name string) team.Path { return team.Path{File: "/repo/" + name, Root: "/repo", Rel: name} }

func (c *crew) hash(p team.Path) string {
	if c.disk[p.Rel] == nil {
		return ""
	}
	return strings.Join(c.disk[p.Rel], " ")
}

// start starts a session's process, or its helper again if it continues.
func (h *hand) start(continues bool) {
	h.brain, h.events, h.read = agent.New(), nil, 0
	h.answers = make(map[agent.Request]any)
	h.stays++
	h.handle(agent.Described{Session: agent.Session{Key: exchange.SessionKey{Host: "pi", ID: h.id}, Cwd: "/repo", Guard: h.c.mode, Wakes: true}})
	h.handle(agent.Placed{Place: agent.Place{Team: "team", Checkout: agent.Checkout{Root: "/repo"}}})
	if !continues {
		h.calls = make(map[string]*call)
	}
	for _, id := range slices.Sorted(maps.Keys(h.calls)) { // the host says what runs
		h.calls[id].forgotten = !h.c.announced(h, h.calls[id])
		h.handle(agent.Lived{Fact: lifecycle.ToolBegan{CallID: id}})
	}
	h.handle(agent.Owned{Memory: h.memory, Continues: continues, Incarnation: fmt.Sprint(h.id, ".", h.stays)})
	h.catchUp(true)
	h.handle(agent.InboxRead{})
}

// catchUp reads the journal.
func (h *hand) catchUp(always bool) {
	var fresh []exchange.Entry
	for _, e := range h.c.journal {
		if e.Seq > h.read {
			fresh = append(fresh, e)
		}
	}
	h.read = h.c.seq
	if len(fresh) > 0 || always {
		h.handle(agent.JournalRead{Entries: fresh})
	}
	if len(h.brain.Peers()) > 0 {
		h.acknowledge(true)
		h.alone = nil
	}
}

// acknowledge says whether others can know of what was made alone: not while
// its author is away.
func (h *hand) acknowledge(known bool) {
	for _, w := range h.alone {
		h.c.done[w] = known
	}
}

// gone ends a session's process.
func (h *hand) gone() {
	h.brain = nil
	h.acknowledge(false)
}

func (h *hand) handle(ev agent.Event) {
	h.events = append(h.events, ev)
	if len(h.events) > 1 {
		return
	}
	for len(h.events) > 0 {
		for _, effect := range h.brain.Handle(h.events[0], h.c.now) {
			h.do(effect)
		}
		h.events = h.events[1:]
	}
}

func (h *hand) do(effect agent.Effect) {
	switch e := effect.(type) {
	case agent.Reply:
		h.answers[e.Req] = e.Value
	case agent.Publish:
		h.record = e.Record
	case agent.Remember:
		h.memory = e.Memory
	case agent.Append:
		for _, entry := range e.Entries {
			h.c.seq++
			entry.Seq, entry.Wall = h.c.seq, h.c.now
			h.c.journal, h.c.whole = append(h.c.journal, entry), append(h.c.whole, entry)
		}
		h.catchUp(false)
		if !e.Quiet {
			for _, o := range h.c.members {
				o.rung(h)
			}
		}
	case agent.LookUp:
		for _, o := range h.c.members {
			if o.id == e.Session {
				h.handle(agent.PeerSeen{Session: o.id, Gone: o.brain == nil, Record: exchange.Session{Record: o.record}})
			}
		}
	case agent.Ring:
		for _, o := range h.c.members {
			if slices.Contains(e.Sessions, o.id) {
				o.rung(h)
			}
		}
	case agent.Check:
		h.handle(agent.Checked{CallID: e.CallID, Hash: h.c.hash(e.Path)})
	case agent.Inspect:
		h.handle(agent.Inspected{CallID: e.CallID, Session: e.Session, Path: e.Path, File: agent.File{Hash: h.c.hash(e.Path)}})
	case agent.Next:
		h.handle(e.Event)
	case agent.CatchUp:
		h.catchUp(true)
	}
}

// rung looks at what another wrote.
func (h *hand) rung(by *hand) {
	if h != by && h.brain != nil && !h.deaf && len(h.events) == 0 {
		h.catchUp(false)
	}
}

// miss has a session look in vain for another that is dead.
func (h *hand) miss(o *hand) {
	h.catchUp(false)
	h.handle(agent.PeerSeen{Session: o.id, Gone: true})
}

// pass lets time pass.
func (c *crew) pass(d time.Duration) {
	c.now = c.now.Add(d)
	for _, h := range c.members {
		if h.brain != nil {
			h.catchUp(false)
			h.handle(agent.Ticked{})
		}
	}
}

func (h *hand) ask() agent.Request {
	h.req++
	return h.req
}

// begin asks whether a call may run.
func (h *hand) begin(id string, op agent.Op, p team.Path) *call {
	k := &call{id: id, op: op, path: p, req: h.ask()}
	h.calls[id] = k
	h.catchUp(false)
	h.handle(agent.ToolAbout{Req: k.req, CallID: id, Tool: string(op), Op: op, Path: p, Hash: h.c.hash(p)})
	return k
}

// verdict is what a call was answered; ok is false while it waits.
func (h *hand) verdict(k *call) (v agent.Verdict, ok bool) {
	v, ok = h.answers[k.req].(agent.Verdict)
	return v, ok
}

// end runs a call that may run, and returns the note in its result.
func (h *hand) end(k *call) string {
	if !k.ran {
		h.run(k)
	}
	return h.tell(k, false)
}

// run does what the tool does, and notes the words of others that it went over
// unread. One whose call was not reported done is nobody's loss.
func (h *hand) run(k *call) {
	disk := h.c.disk[k.path.Rel]
	k.ran = true
	defer func() { h.branch = append(h.branch, step{k.id, k.path.Rel, h.knows[k.path.Rel]}) }()
	switch k.op {
	case agent.Reads:
		h.knows[k.path.Rel] = slices.Clone(disk)
	default:
		h.c.words++
		k.word = fmt.Sprint(h.id, "-", h.c.words)
		h.knows[k.path.Rel] = append(slices.Clone(h.knows[k.path.Rel]), k.word)
		if k.op == agent.Edits {
			h.c.disk[k.path.Rel] = append(slices.Clone(disk), k.word)
			return
		}
		for _, w := range disk {
			if !k.forgotten && h.c.done[w] && !strings.HasPrefix(w, h.id+"-") && !slices.Contains(h.knows[k.path.Rel], w) {
				k.lost = append(k.lost, w)
			}
		}
		h.c.disk[k.path.Rel] = slices.Clone(h.knows[k.path.Rel])
	}
}

// tell says that a call ended, and returns the note for its model.
func (h *hand) tell(k *call, failed bool) string {
	req := h.ask()
	h.catchUp(false)
	h.handle(agent.ToolDone{Req: req, CallID: k.id, Op: k.op, Path: k.path, Failed: failed, File: agent.File{Hash: h.c.hash(k.path)}})
	h.handle(agent.Lived{Fact: lifecycle.ToolEnded{CallID: k.id}})
	delete(h.calls, k.id)
	h.c.done[k.word] = true
	if len(h.c.members) == 1 {
		h.alone = append(h.alone, k.word)
	}
	note, _ := h.answers[req].(agent.Note)
	if len(k.lost) > 0 && note.Text == "" {
		h.c.silent++
	}
	return note.Text
}

// goTo has the conversation go on from the end of another branch.
func (h *hand) goTo(branch []step) {
	h.other, h.branch = h.branch, slices.Clone(branch)
	clear(h.knows)
	var calls []string
	for _, s := range h.branch {
		h.knows[s.file] = slices.Clone(s.words)
		calls = append(calls, s.call)
	}
	h.handle(agent.Rewound{Calls: calls})
}

// drop ends a call that was refused.
func (h *hand) drop(k *call) {
	h.handle(agent.Lived{Fact: lifecycle.ToolEnded{CallID: k.id}})
	delete(h.calls, k.id)
}

// did makes a whole call and says what came of it.
func (h *hand) did(id string, op agent.Op, p team.Path) outcome {
	k := h.begin(id, op, p)
	v, answered := h.verdict(k)
	switch {
	case !answered:
		h.c.t.Fatalf("%s %s of %s waits", h.id, op, p.Rel)
	case v.Block:
		h.drop(k)
		return block
	}
	if h.end(k) != "" {
		return noted
	}
	return pass
}

// newResponse begins a new response of the session's model.
func (h *hand) newResponse() {
	h.handle(agent.BoundaryReached{Req: h.ask(), At: agent.TurnEnd, Open: true})
}

// open lists the edits that have begun and not ended.
func (c *crew) open() (out []team.Open) {
	var t team.Team
	agent.Fold(&t, c.journal)
	for _, h := range c.members {
		out = append(out, t.OpenEdits(h.id)...)
	}
	return out
}

// told counts the changes that the journal tells of.
func (c *crew) told() (n int) {
	for _, e := range c.whole {
		if team.Kind(e.Kind) == team.EditDone {
			n++
		}
	}
	return n
}

// announced reports whether the journal tells that a call has begun: not one
// that began while nobody else was there.
func (c *crew) announced(h *hand, k *call) bool {
	return slices.ContainsFunc(c.open(), func(o team.Open) bool { return o.Session == h.id && o.ID == k.id })
}

// outcome is what came of a call.
type outcome string

const (
	pass  outcome = "pass"
	noted outcome = "note"
	block outcome = "block"
)

// table is the guard's (spec: telecom, The edit guard): what comes of an
// operation of a session that does not know what another did before.
func table(mode guard.Mode, op, before agent.Op) outcome {
	switch {
	case mode == guard.Off, op == agent.Reads, before == agent.Reads:
		return pass
	case op == agent.Writes, mode == guard.Strict:
		return block
	}
	return noted
}

// Both orders of every pair of operations on one file by two sessions that have
// read it, overlapping in every way.
func TestPairs(t *testing.T) {
	ops := []agent.Op{agent.Reads, agent.Edits, agent.Writes}
	lost := make(map[guard.Mode]int)
	for _, mode := range []guard.Mode{guard.Standard, guard.Strict, guard.Off} {
		for _, first := range ops {
			for _, second := range ops {
				// When each begins and ends: a and b, A and B.
				for _, order := range []string{"aAbB", "abAB", "abBA", "bBaA", "baBA", "baAB"} {
					name := fmt.Sprintf("%s: %s and %s, %s", mode, first, second, order)
					c := newCrew(t, mode, 2)
					p := at("x")
					c.disk["x"] = []string{"old"}
					for i, h := range c.members {
						h.did(fmt.Sprint("read", i), agent.Reads, p)
					}
					ops := map[byte]agent.Op{'a': first, 'b': second}
					who := map[byte]*hand{'a': c.members[0], 'b': c.members[1]}
					calls, got, due := map[byte]*call{}, map[byte]outcome{}, []byte(nil)
					end := func(x byte) (ended bool) {
						v, answered := who[x].verdict(calls[x])
						switch {
						case !answered:
							return false
						case v.Block:
							who[x].drop(calls[x])
							got[x] = block
						case who[x].end(calls[x]) != "":
							got[x] = noted
						default:
							got[x] = pass
						}
						return true
					}
					for _, step := range []byte(order) {
						if step >= 'a' {
							calls[step] = who[step].begin(string(step), ops[step], p)
							// Only who comes second, to a change that is under way, waits.
							_, answered := who[step].verdict(calls[step])
							waits := step != order[0] && order[1] == step && mode != guard.Off && first != agent.Reads && second != agent.Reads
							if answered == waits {
								t.Errorf("%s: the %s of %c was answered: %v", name, ops[step], step, answered)
							}
							continue
						}
						if x := step - 'A' + 'a'; !end(x) {
							due = append(due, x) // it waits for the other
						}
					}
					for _, x := range due {
						if !end(x) {
							t.Errorf("%s: %c waits although the other is done", name, x)
						}
					}
					for x, other := range map[byte]byte{'a': 'b', 'b': 'a'} {
						want := pass
						if order[0] == other { // the other began first
							want = table(mode, ops[x], ops[other])
						}
						if got[x] != want {
							t.Errorf("%s: the %s of %c got %s, want %s", name, ops[x], x, got[x], want)
						}
					}
					if open := c.open(); len(open) > 0 {
						t.Errorf("%s: still open: %+v", name, open)
					}
					lost[mode] += c.silent
				}
			}
		}
	}
	if lost[guard.Standard]+lost[guard.Strict] > 0 {
		t.Errorf("went over unread changes without a word: %v", lost)
	}
	if lost[guard.Off] == 0 {
		t.Error("nothing was lost with the guard off: this test can't fail")
	}
}

func blocked(t *testing.T, what string, got, want outcome) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %s, want %s", what, got, want)
	}
}

// The same unread change blocks twice and passes the third time with a note; a
// newer one starts the count again (readings: Telecom, the third attempt).
func TestThirdAttempt(t *testing.T) {
	c := newCrew(t, guard.Standard, 2)
	a, b, p := c.members[0], c.members[1], at("x")
	c.disk["x"] = []string{"old"}
	a.did("r", agent.Reads, p)
	b.did("e1", agent.Edits, p)
	blocked(t, "the first attempt", a.did("w1", agent.Writes, p), block)
	blocked(t, "the second attempt", a.did("w2", agent.Writes, p), block)
	b.did("e2", agent.Edits, p)
	blocked(t, "the first over a newer change", a.did("w3", agent.Writes, p), block)
	blocked(t, "the second over it", a.did("w4", agent.Writes, p), block)
	blocked(t, "the third over it", a.did("w5", agent.Writes, p), noted)
	blocked(t, "a write after one's own", a.did("w6", agent.Writes, p), pass)
}

// An edit over an unread change leaves it unread (spec: the guard's third row).
func TestEditOverAnUnreadChange(t *testing.T) {
	c := newCrew(t, guard.Standard, 2)
	a, b, p := c.members[0], c.members[1], at("x")
	c.disk["x"] = []string{"old"}
	a.did("r", agent.Reads, p)
	b.did("e1", agent.Edits, p)
	blocked(t, "an edit", a.did("e2", agent.Edits, p), noted)
	blocked(t, "a write after it", a.did("w1", agent.Writes, p), block)
	a.did("r2", agent.Reads, p)
	blocked(t, "a write after reading", a.did("w2", agent.Writes, p), pass)
	if got := strings.Join(c.disk["x"], " "); !strings.Contains(got, "s1-1") || c.silent > 0 {
		t.Errorf("the file holds %q", got)
	}
}

// Content decides: what was undone, made again, or touched, is no change.
func TestNoChange(t *testing.T) {
	c := newCrew(t, guard.Strict, 2)
	a, b, p := c.members[0], c.members[1], at("x")
	c.disk["x"] = []string{"old"}
	a.did("r", agent.Reads, p)
	b.did("r", agent.Reads, p)
	b.did("w1", agent.Writes, p)
	k := b.begin("w2", agent.Writes, p)
	c.disk["x"] = []string{"old"}
	b.tell(k, false)
	blocked(t, "a write over what was undone", a.did("w", agent.Writes, p), pass)
	b.did("r2", agent.Reads, p)
	before := c.told()
	b.tell(b.begin("w3", agent.Writes, p), false) // the same bytes again
	b.tell(b.begin("w4", agent.Writes, p), true)
	b.drop(b.begin("w6", agent.Writes, p))
	if n := c.told() - before; n > 0 {
		t.Errorf("%d changes are told of where nothing changed", n)
	}
	blocked(t, "a write over a touch", a.did("w7", agent.Writes, p), pass)
	delete(c.disk, "x")
	blocked(t, "a write where nothing is left", b.did("w5", agent.Writes, p), pass)
}

// A change stays unread when its author has left, and when only its helper wrote
// down how it ended.
func TestChangeOfTheDeparted(t *testing.T) {
	for _, how := range []string{
		"leaves", "dies", "leaves in its write", "dies in its write", "dies with a write that changed nothing", "is stopped in its write",
		"dies in its write and comes back",
	} {
		c := newCrew(t, guard.Standard, 2)
		a, b, p := c.members[0], c.members[1], at("x")
		c.disk["x"] = []string{"old"}
		a.did("r", agent.Reads, p)
		b.did("r", agent.Reads, p)
		want := block
		switch how {
		case "leaves", "dies":
			b.did("w", agent.Writes, p)
		case "dies with a write that changed nothing":
			b.begin("w", agent.Writes, p)
			want = pass
		default:
			b.run(b.begin("w", agent.Writes, p))
		}
		left := 0
		switch how {
		case "leaves", "leaves in its write":
			b.handle(agent.Leaving{})
		case "is stopped in its write":
			b.drop(b.calls["w"])
			left = 1
		case "dies in its write and comes back":
			b.gone()
			b.start(false)
			left = 1
		default:
			b.gone()
			for range 6 {
				a.miss(b)
			}
		}
		if n := len(a.brain.Peers()); n != left {
			t.Errorf("%s: %d peers are there, want %d", how, n, left)
		}
		blocked(t, "a write after its peer "+how, a.did("w", agent.Writes, p), want)
		if open := c.open(); len(open) > 0 {
			t.Errorf("%s: still open: %+v", how, open)
		}
	}
}

// Nobody waits for an edit that waits for its human, nor longer than two seconds
// in one response, nor in a circle.
func TestWaits(t *testing.T) {
	c := newCrew(t, guard.Standard, 2)
	a, b, p, q := c.members[0], c.members[1], at("x"), at("y")
	c.disk["x"], c.disk["y"] = []string{"old"}, []string{"old"}
	for _, h := range c.members {
		h.did("rx", agent.Reads, p)
		h.did("ry", agent.Reads, q)
	}
	answered := func(h *hand, k *call) bool { _, ok := h.verdict(k); return ok }

	// The budget is one for all calls of a response.
	open := a.begin("a1", agent.Writes, p)
	one := b.begin("b1", agent.Writes, p)
	c.pass(1500 * time.Millisecond)
	if answered(b, one) {
		t.Error("a write did not wait for another that is under way")
	}
	c.pass(600 * time.Millisecond)
	if v, _ := b.verdict(one); !v.Block || !strings.Contains(v.Reason, "is changing x") {
		t.Errorf("after the wait: %+v", v)
	}
	b.drop(one)
	two := b.begin("b2", agent.Edits, p)
	if v, ok := b.verdict(two); !ok || v.Block {
		t.Errorf("a second wait in one response: %+v, %v", v, ok)
	}
	if note := b.end(two); !strings.Contains(note, "was changing x at the same moment") {
		t.Errorf("the note is %q", note)
	}
	if note := a.end(open); !strings.Contains(note, "s1") && !strings.Contains(note, "changed x while") {
		t.Errorf("the note for the write that went over it is %q", note)
	}
	b.newResponse()

	// Parked.
	for _, h := range c.members {
		h.did("r2", agent.Reads, p)
	}
	open = a.begin("a2", agent.Writes, p)
	two = b.begin("b3", agent.Edits, p)
	if answered(b, two) {
		t.Error("an edit did not wait for a write that is under way")
	}
	a.handle(agent.Lived{Fact: lifecycle.DialogOpened{}})
	if !answered(b, two) {
		t.Error("an edit waits for one that waits for its human")
	}
	b.end(two)
	if note := a.end(open); note == "" {
		t.Error("a write that waited for its human went over a change without a word")
	}
	a.handle(agent.Lived{Fact: lifecycle.DialogClosed{}})

	// In a circle: each waits for the other's first.
	for _, h := range c.members {
		h.newResponse()
		h.did("r3x", agent.Reads, p)
		h.did("r3y", agent.Reads, q)
	}
	ax, by := a.begin("ax", agent.Edits, p), b.begin("by", agent.Edits, q)
	ay := a.begin("ay", agent.Edits, q) // waits for by
	if answered(a, ay) {
		t.Error("an edit did not wait")
	}
	bx := b.begin("bx", agent.Edits, p) // would wait for ax, which ends after ay
	if !answered(b, bx) {
		t.Error("who closes the circle waits")
	}
	c.pass(time.Second) // nobody rings
	if v, ok := a.verdict(ay); !ok || v.Block {
		t.Errorf("who is in a circle got %+v, %v", v, ok)
	}
	for _, k := range []*call{ax, ay} {
		a.end(k)
	}
	for _, k := range []*call{by, bx} {
		b.end(k)
	}
	if open := c.open(); len(open) > 0 || c.silent > 0 {
		t.Errorf("%d silent, still open: %+v", c.silent, open)
	}
}

// What came in between while nobody waited, since a human was asked, is unread
// to both, also if a tool failed and left what another had made.
func TestCrossed(t *testing.T) {
	for _, op := range []agent.Op{agent.Edits, agent.Writes} {
		for _, failed := range []bool{false, true} {
			for _, open := range []bool{false, true} {
				name := fmt.Sprintf("%s, failed: %v, met one under way: %v", op, failed, open)
				c := newCrew(t, guard.Standard, 2)
				a, b, p := c.members[0], c.members[1], at("x")
				c.disk["x"] = []string{"old"}
				a.did("r", agent.Reads, p)
				b.did("r", agent.Reads, p)
				k := a.begin("a", op, p)
				a.handle(agent.Lived{Fact: lifecycle.DialogOpened{}})
				other := b.begin("b", agent.Writes, p)
				b.handle(agent.Lived{Fact: lifecycle.DialogOpened{}})
				b.run(other)
				if !open {
					b.end(other)
				}
				if !failed {
					a.run(k)
				}
				note := a.tell(k, failed)
				if open {
					if b.end(other) == "" {
						t.Errorf("%s: who ended last got no note", name)
					}
				} else if !failed && !strings.Contains(note, "changed x while") {
					t.Errorf("%s: the note is %q", name, note)
				}
				if failed && !open && c.told() != 1 {
					t.Errorf("%s: %d changes are told of, want the peer's", name, c.told())
				}
				if !failed && open {
					continue // the peer's change was there first: only its own author can't tell
				}
				blocked(t, name+": a write after it", a.did("w", agent.Writes, p), block)
				a.did("r2", agent.Reads, p)
				blocked(t, name+": a write after a look", a.did("w2", agent.Writes, p), pass)
			}
		}
	}
}

// A session that only changed a file, or read it while that changed, has not
// read it.
func TestNotRead(t *testing.T) {
	for _, how := range []string{"edited", "read while it changed"} {
		c := newCrew(t, guard.Standard, 2)
		a, b, p := c.members[0], c.members[1], at("x")
		c.disk["x"] = []string{"old"}
		switch how {
		case "edited":
			a.did("a", agent.Edits, p)
			b.did("b", agent.Edits, p)
		default:
			k := a.begin("a", agent.Reads, p)
			b.did("b", agent.Edits, p)
			a.end(k)
		}
		if v, _ := a.verdict(a.begin("w", agent.Writes, p)); !v.Block || !strings.Contains(v.Reason, "and you haven't read it") {
			t.Errorf("%s: a write got %+v", how, v)
		}
	}
}

// A helper that dies over an edit takes the note for it along: its successor
// notes it again, and does not take for known what the edit went over.
func TestHelperDiesOverAnEdit(t *testing.T) {
	c := newCrew(t, guard.Standard, 2)
	a, b, p := c.members[0], c.members[1], at("x")
	c.disk["x"] = []string{"old"}
	a.did("r", agent.Reads, p)
	b.did("b", agent.Edits, p)
	k := a.begin("a", agent.Edits, p)
	a.start(true)
	if note := a.end(k); !strings.Contains(note, "you haven't read that") && !strings.Contains(note, "still haven't read") {
		t.Errorf("the note is %q", note)
	}
	blocked(t, "a write after it", a.did("w", agent.Writes, p), block)
}

// Who died while its human was asked did not make what another wrote meanwhile.
func TestDeadWithAnOpenDialog(t *testing.T) {
	c := newCrew(t, guard.Standard, 2)
	a, b, p := c.members[0], c.members[1], at("x")
	b.begin("w", agent.Writes, p)
	b.handle(agent.Lived{Fact: lifecycle.DialogOpened{}})
	a.did("e", agent.Edits, p)
	b.gone()
	for range 6 {
		a.miss(b)
	}
	if n := c.told(); n != 1 || len(c.open()) > 0 {
		t.Errorf("%d changes are told of, want one; still open: %+v", n, c.open())
	}
}

// A refusal does not blame who has the callsign now.
func TestEarlierNamesake(t *testing.T) {
	c := newCrew(t, guard.Standard, 1)
	a, p := c.members[0], at("x")
	a.did("a", agent.Edits, p)
	a.handle(agent.Leaving{})
	a.gone()
	c.add()
	b := c.members[1]
	if a.record.Callsign != b.record.Callsign {
		t.Fatalf("%s was free, the next is %s", a.record.Callsign, b.record.Callsign)
	}
	if v, _ := b.verdict(b.begin("w", agent.Writes, p)); !strings.HasPrefix(v.Reason, "Not done: an earlier alpha ") {
		t.Errorf("the refusal is %q", v.Reason)
	}
}

// What was changed while nobody else was there is told when somebody comes: at
// once where somebody was before, who may come back when its author is gone.
func TestChangedAlone(t *testing.T) {
	for _, end := range []string{"stays", "leaves", "dies"} {
		c := newCrew(t, guard.Standard, 1)
		a, p := c.members[0], at("x")
		blocked(t, "an edit where nobody ever was", a.did("a1", agent.Edits, p), pass)
		if n := c.told(); n > 0 {
			t.Errorf("%d changes are told of, to nobody", n)
		}
		c.add()
		b := c.members[1]
		blocked(t, "a write of a newcomer", b.did("w1", agent.Writes, p), block)
		b.did("r", agent.Reads, p)
		b.handle(agent.Leaving{})
		b.gone()
		blocked(t, "an edit made alone", a.did("a2", agent.Edits, p), pass)
		if end == "leaves" {
			a.handle(agent.Leaving{})
		}
		if end != "stays" {
			a.gone()
		}
		b.start(false)
		blocked(t, "a write of who came back, when the other "+end, b.did("w2", agent.Writes, p), block)
	}
}

// The same, if its author leaves before anybody ever came.
func TestChangedByTheFirst(t *testing.T) {
	c := newCrew(t, guard.Standard, 1)
	a, p := c.members[0], at("x")
	a.did("a", agent.Edits, p)
	a.handle(agent.Leaving{})
	a.gone()
	c.add()
	blocked(t, "a write of who came next", c.members[1].did("w", agent.Writes, p), block)
}

// What began alone meets what a newcomer did meanwhile: a write over it is noted,
// and what a failed tool left is told.
func TestBeganAlone(t *testing.T) {
	for _, failed := range []bool{false, true} {
		c := newCrew(t, guard.Standard, 1)
		a, p := c.members[0], at("x")
		a.did("r", agent.Reads, p)
		k := a.begin("w", agent.Writes, p)
		c.add()
		b := c.members[1]
		if !failed {
			b.did("e", agent.Edits, p)
		}
		b.did("r", agent.Reads, p)
		a.run(k)
		if note := a.tell(k, failed); (note == "") != failed {
			t.Errorf("failed %v: the note is %q", failed, note)
		}
		blocked(t, "a write over it", b.did("w", agent.Writes, p), block)
	}
}

// An edit that never ends holds nobody up for good, no more than an unread
// change does (spec: telecom, The edit guard).
func TestEditThatNeverEnds(t *testing.T) {
	c := newCrew(t, guard.Standard, 2)
	a, b, p := c.members[0], c.members[1], at("x")
	a.begin("w", agent.Writes, p)
	for i, want := range []outcome{block, block, noted} {
		k := b.begin(fmt.Sprint("w", i), agent.Writes, p)
		c.pass(2100 * time.Millisecond)
		got := noted
		switch v, answered := b.verdict(k); {
		case !answered:
			t.Fatal("it waits for more than two seconds")
		case v.Block:
			b.drop(k)
			got = block
		case b.end(k) == "":
			got = pass
		}
		blocked(t, fmt.Sprintf("attempt %d", i+1), got, want)
		b.newResponse()
	}
}

// What the journal didn't take is written once it does.
func TestJournalFailsOnce(t *testing.T) {
	c := newCrew(t, guard.Standard, 2)
	a, p := c.members[0], at("x")
	k := a.begin("w", agent.Writes, p)
	a.run(k)
	for _, e := range a.brain.Handle(agent.ToolDone{Req: a.ask(), CallID: k.id, Op: k.op, Path: p, File: agent.File{Hash: c.hash(p)}}, c.now) {
		if entry, ok := e.(agent.Append); ok {
			a.handle(agent.AppendFailed{Err: errors.New("disk full"), Entries: entry.Entries})
		} else {
			a.do(e)
		}
	}
	c.pass(time.Second)
	if open := c.open(); len(open) > 0 || c.told() != 1 {
		t.Errorf("still open: %+v", open)
	}
}

// A callsign that was given to another meanwhile is not had twice.
func TestCallsignTaken(t *testing.T) {
	c := newCrew(t, guard.Standard, 2)
	a := c.members[0]
	first := a.record.Callsign
	a.handle(agent.Leaving{})
	a.gone()
	c.add()
	if got := c.members[2].record.Callsign; got != first {
		t.Errorf("the free word is %s, a newcomer got %s", first, got)
	}
	a.start(false)
	if got := a.record.Callsign; got == "" || got == first {
		t.Errorf("who came back is %q", got)
	}
}

// A circle of three lets all go, before any wait is over.
func TestCircleOfThree(t *testing.T) {
	c := newCrew(t, guard.Standard, 3)
	files := []team.Path{at("x"), at("y"), at("z")}
	var calls []*call
	for i, h := range c.members {
		h.begin("one", agent.Edits, files[i])
	}
	for i, h := range c.members {
		calls = append(calls, h.begin("two", agent.Edits, files[(i+1)%3]))
		_, answered := h.verdict(calls[i])
		if closes := i == 2; answered != closes {
			t.Errorf("the second edit of %d was answered: %v", i, answered)
		}
	}
	c.pass(time.Second)
	for i, h := range c.members {
		if v, ok := h.verdict(calls[i]); !ok || v.Block {
			t.Errorf("in a circle %d got %+v, %v", i, v, ok)
		}
	}
}

// Who closes a circle with a write is refused at once: the other's edit is still
// to come. The other goes on.
func TestWriteInACircle(t *testing.T) {
	c := newCrew(t, guard.Standard, 2)
	a, b, p, q := c.members[0], c.members[1], at("x"), at("y")
	ax, bq := a.begin("ax", agent.Edits, p), b.begin("bq", agent.Writes, q)
	aq := a.begin("aq", agent.Writes, q)
	bx := b.begin("bx", agent.Writes, p)
	if v, _ := b.verdict(bx); !v.Block || !strings.Contains(v.Reason, "is changing x at this moment") {
		t.Errorf("the write that closes the circle got %+v", v)
	}
	b.drop(bx)
	b.end(bq)
	if v, _ := a.verdict(aq); !v.Block || !strings.Contains(v.Reason, "changed y") {
		t.Errorf("the write that waited for another got %+v", v)
	}
	a.drop(aq)
	a.end(ax)
	if open := c.open(); len(open) > 0 || c.silent > 0 {
		t.Errorf("%d silent, still open: %+v", c.silent, open)
	}
}

// What a branch of the conversation did not read is unread there, and read again
// when it is gone back to.
func TestRewound(t *testing.T) {
	c := newCrew(t, guard.Standard, 2)
	a, b, p := c.members[0], c.members[1], at("x")
	c.disk["x"] = []string{"old"}
	a.did("r1", agent.Reads, p)
	b.did("e", agent.Edits, p)
	a.did("r2", agent.Reads, p)
	a.handle(agent.Rewound{Calls: []string{"r1"}})
	blocked(t, "a write where only the first read was", a.did("w1", agent.Writes, p), block)
	a.handle(agent.Rewound{Calls: []string{"r1", "r2"}})
	blocked(t, "a write on the first branch", a.did("w2", agent.Writes, p), pass)
	a.handle(agent.Rewound{})
	b.did("r", agent.Reads, p)
	b.did("w", agent.Writes, p)
	for _, call := range []string{"w3", "w4"} {
		blocked(t, "a write where nothing was read", a.did(call, agent.Writes, p), block)
	}
	a.handle(agent.Rewound{})
	blocked(t, "a write on a branch that was refused nothing", a.did("w5", agent.Writes, p), block)
}
