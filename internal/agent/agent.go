// Package agent is the brain of one session: events in, effects out. It is
// deterministic and touches nothing: the clock comes with each event, and the
// sidecar carries out what it decides. It speaks no host's language.
package agent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"switchboard/internal/delivery"
	"switchboard/internal/exchange"
	"switchboard/internal/lifecycle"
)

// Agent decides for one session. Make one with New.
type Agent struct {
	session Session
	life    lifecycle.Machine
	desk    delivery.Desk

	standing  standing
	elsewhere exchange.Record // who has the session, while it is elsewhere
	trouble   string          // why there is no exchange

	waking    int                // the batch of an unanswered Wake; 0 without one
	lineage   []delivery.Message // what this run was handed, for the hops of what it sends
	calls     map[Request]call   // sends that are being written
	casts     map[Request]cast   // the same, of broadcasts
	toldTired bool
	tokens    int // context in use at the last boundary; 0 when unknown
	window    int

	place Place
	crew  crew
	news  news
	edits edits

	incarnation string
	joined      time.Time

	published  exchange.Record
	shown      View
	remembered []byte // without the marks
	restoring  *memory
}

// standing is the agent's relation to its session.
type standing int

const (
	joining standing = iota // not known yet
	owning
	elsewhere
	unavailable
)

// memory is what survives the process.
type memory struct {
	Version     int                `json:"v"`
	Incarnation string             `json:"incarnation"`
	Joined      time.Time          `json:"joined"`
	Desk        delivery.Memory    `json:"desk"`
	Lineage     []delivery.Message `json:"lineage,omitempty"` // without texts
	Crew        crewMemory         `json:"crew,omitzero"`
}

// New returns an agent that knows nothing yet.
func New() *Agent {
	a := &Agent{calls: make(map[Request]call), casts: make(map[Request]cast)}
	a.edits.init()
	return a
}

// Handle takes note of one event and says what to do. now must not go back.
func (a *Agent) Handle(ev Event, now time.Time) []Effect {
	var out []Effect
	switch ev := ev.(type) {
	case Described:
		a.session = ev.Session
	case Placed:
		if a.place.Team != "" {
			ev.Place.Team = a.place.Team
		}
		a.place = ev.Place
	case Owned:
		out = a.own(ev, now)
	case OwnedElsewhere:
		out = a.lose(ev)
	case Unavailable:
		a.standing, a.trouble = unavailable, ev.Why
		out = append(out, Status{"📞 off"}, Tell{Text: "switchboard is off: " + ev.Why, Bad: true})
	case Lived:
		out = a.live(ev, now)
	case InboxRead:
		if a.desk.Sync(ev.Messages) && a.restoring != nil {
			a.desk.Restore(a.restoring.Desk, now)
		}
		a.restoring = nil
		if ids := a.desk.Repeated(ev.Messages); len(ids) > 0 {
			out = append(out, Settle{ids})
		}
	case InTranscript:
		a.news.arrived(ev.IDs)
		if ids := a.desk.Settle(ev.IDs); len(ids) > 0 {
			out = append(out, Settle{ids})
		}
	case InConversation:
		a.news.arrived(ev.IDs)
		a.desk.MarkInContext(ev.IDs)
	case BoundaryReached:
		a.edits.waited = 0
		out = append(out, Reply{ev.Req, a.boundary(ev, now)})
		if ev.At == BeforeRun && ev.ByHuman {
			out = append(out, a.prompted(ev.Prompt)...)
		}
	case WakeAnswered:
		a.wakeAnswered(ev, now)
	case Declined:
		a.desk.Decline(ev.Batch)
		a.news.lost(func(o offer) bool { return o.batch == ev.Batch })
	case ToolCalled:
		out = a.toolCalled(ev, now)
	case Posted:
		out = a.posted(ev, now)
	case ToolAbout:
		a.life.Handle(lifecycle.ToolBegan{CallID: ev.CallID, Tool: ev.Tool}, now)
		out = a.about(ev, now)
	case ToolDone:
		out = a.done(ev, now)
	case JournalRead:
		out = a.journalRead(ev, now)
	case AppendFailed:
		out = a.appendFailed(ev)
	case Checked:
		out = a.checked(ev, now)
	case Inspected:
		out = a.inspected(ev, now)
	case PeerSeen:
		out = a.peerSeen(ev)
	case Chosen:
		out = a.choose(ev.Off)
	case Rewound:
		a.edits.rewound(ev.Calls)
	case Commanded:
		out = a.commanded(ev)
	case Leaving:
		return a.leaving()
	case Left:
		return a.left(now)
	case rejoin:
		out = a.join(ev.again)
	case released:
		out = a.ringEditors(ev.files)
	case parted:
		a.part(ev.off)
	case Ticked:
		out = slices.Concat(a.resend(), a.reconsider(now), a.announce())
	}
	return append(out, a.followUp(now)...)
}

// own starts, or starts again, as the session's owner.
func (a *Agent) own(ev Owned, now time.Time) []Effect {
	var out []Effect
	if a.standing == elsewhere {
		out = append(out, Tell{Text: "switchboard: this session is now connected here."})
	}
	a.standing, a.elsewhere = owning, exchange.Record{}
	a.published = exchange.Record{}
	a.incarnation, a.joined = ev.Incarnation, now.UTC()
	var m memory
	if json.Unmarshal(ev.Memory, &m) == nil && m.Version == exchange.Version {
		a.restoring = &m
		if ev.Continues && m.Incarnation != "" {
			a.incarnation, a.joined, a.lineage = m.Incarnation, m.Joined, m.Lineage
		}
		a.crew.past, a.crew.stays = m.Crew.Callsign, m.Crew.Stays
		a.news.restore(m.Crew.News)
		if ev.Continues {
			a.crew.stayed = m.Crew.Callsign != ""
			a.crew.seen, a.crew.saved = m.Crew.Seen, m.Crew.Seen
			if !a.teamOff() {
				a.crew.callsign = m.Crew.Callsign
			}
		}
		a.edits.restore(m.Crew.Edits)
	}
	a.crew.footer = ""
	return append(out, Status{""})
}

func (a *Agent) lose(ev OwnedElsewhere) []Effect {
	first := a.standing != elsewhere
	a.standing, a.elsewhere = elsewhere, ev.By
	if !first {
		return nil
	}
	if ev.Stuck {
		return []Effect{
			Status{"📞 off (session held by a leftover helper)"},
			Tell{Text: fmt.Sprintf("switchboard: process %d, the helper of a Pi that has ended, still holds this session; mend it with: kill -9 %d", ev.By.Owner.PID, ev.By.Owner.PID), Bad: true},
		}
	}
	return []Effect{
		Status{"📞 off (session open elsewhere)"},
		Tell{Text: "switchboard: this session is also open in " + a.openIn() + "; calls go there until it ends.", Bad: true},
	}
}

// openIn says where a session that is not ours is open.
func (a *Agent) openIn() string {
	if pid := a.elsewhere.Agent.PID; pid != 0 {
		return fmt.Sprintf("process %d", pid)
	}
	return "another process"
}

func (a *Agent) live(ev Lived, now time.Time) []Effect {
	fact := ev.Fact
	a.life.Handle(fact, a.moment(ev.At, now))
	if s, ok := fact.(lifecycle.Settled); ok {
		at := s.At
		if at.IsZero() {
			at = now
		}
		a.desk.RunEnded(s.Aborted, a.waking, at, now)
		a.news.lost(func(o offer) bool { return o.batch != a.waking || a.waking == 0 })
	}
	switch f := fact.(type) {
	case lifecycle.ToolBegan:
		a.edits.calls[f.CallID] = true
	case lifecycle.ToolEnded:
		return a.ended(f.CallID)
	case lifecycle.DialogOpened:
		return a.park()
	case lifecycle.CompactionEnded:
		if !f.Failed {
			a.news.forget()
			a.edits.compacted()
		}
	case lifecycle.SummaryEnded:
		a.news.forget() // another branch: what was told may not be on it
	}
	return nil
}

// moment is when something was, by the host's clock: not in the future, and not
// before what came before it.
func (a *Agent) moment(at, now time.Time) time.Time {
	if at.IsZero() || at.After(now) {
		at = now
	}
	if since := a.life.Since(); at.Before(since) {
		return since
	}
	return at
}

// boundary decides what to hand over at a moment when the host takes messages.
func (a *Agent) boundary(ev BoundaryReached, now time.Time) *Handover {
	if ev.At == BeforeRun {
		a.life.Handle(lifecycle.RunBegan{}, a.moment(ev.Asked, now))
		if ev.ByHuman {
			a.lineage, a.toldTired = nil, false
		}
	}
	if ev.Window > 0 {
		a.tokens, a.window = ev.Tokens, ev.Window
	}
	if a.standing != owning || ev.Closed {
		return nil
	}
	last := ev.At != BeforeRun && !ev.Open
	if last && !(a.session.Wakes && a.desk.WakeDue(now)) {
		return nil // one more turn would be a wake, and nothing here may wake
	}
	b := a.desk.Take(delivery.Room(a.tokens, a.window))
	when, task := midRun, ""
	if ev.At == BeforeRun {
		when, task = atPrompt, a.taskAfter(ev.Prompt)
	}
	h, any := a.handover(b, when, task, ev.At == BeforeRun && ev.ByHuman, now)
	if !any {
		return nil
	}
	h.Continue = last
	return &h
}

// handover puts a batch into the form that the host stores. byHuman says that
// it rides on a human's prompt, so the chain of wakes starts anew. What is new
// of the team goes along, or alone; without either there is nothing.
func (a *Agent) handover(b delivery.Batch, when moment, task string, byHuman bool, now time.Time) (h Handover, any bool) {
	for _, m := range b.Messages {
		ancestor := delivery.Message{ID: m.ID, Hops: m.Hops}
		if byHuman {
			ancestor.Hops = -1
		}
		a.lineage = append(a.lineage, ancestor)
	}
	if n := len(a.lineage); n > maxLineage {
		a.lineage = a.lineage[n-maxLineage:]
	}
	for _, m := range b.Messages {
		a.news.befriend(m.From.Session)
	}
	text, o := a.tell(when, task, now)
	h = Handover{Batch: b.Number, Text: delivery.Compose(b, now), Details: b.Details()}
	if text == "" {
		return h, !b.Empty()
	}
	if b.Empty() {
		h.Batch = a.desk.Number()
	}
	o.batch = h.Batch
	a.news.offers = append(a.news.offers, o)
	h.Details.IDs = append(h.Details.IDs, o.id)
	h.Details.Team = text
	h.Text = strings.TrimSuffix(text+"\n\n"+h.Text, "\n\n")
	return h, true
}

// maxLineage bounds what is remembered of a run's incoming messages.
const maxLineage = 16

func (a *Agent) wakeAnswered(ev WakeAnswered, now time.Time) {
	if ev.Batch != a.waking {
		return
	}
	a.waking = 0
	switch {
	case ev.Accepted:
		a.life.Handle(lifecycle.RunBegan{}, now)
	case ev.Idle:
		a.desk.Fail(ev.Batch, now)
		a.news.lost(func(o offer) bool { return o.batch == ev.Batch })
	default: // it had begun something else: the next boundary takes them along
		a.desk.Decline(ev.Batch)
		a.news.lost(func(o offer) bool { return o.batch == ev.Batch })
		a.life.Handle(lifecycle.Looked{Idle: false}, now)
	}
}

// followUp does what is due after any event: wake, show, publish, remember.
func (a *Agent) followUp(now time.Time) []Effect {
	var out []Effect
	if a.standing == owning {
		out = a.wake(now)
	}
	out = append(out, a.foot()...)
	if v := a.view(now); v != a.shown {
		a.shown = v
		out = append(out, Show{v})
	}
	if a.standing != owning {
		return out
	}
	if r := a.record(now); r != a.published {
		a.published = r
		out = append(out, Publish{r})
	}
	// The marks are many and change rarely: they have a flag.
	if m := a.memory(nil); (a.edits.changed || !bytes.Equal(m, a.remembered)) && a.restoring == nil {
		a.crew.saved = a.crew.seen
		a.remembered, a.edits.changed = a.memory(nil), false
		out = append(out, Remember{a.memory(a.edits.memory())})
	}
	return out
}

// wake starts a turn if something waits that may start one.
func (a *Agent) wake(now time.Time) []Effect {
	var out []Effect
	idle := a.life.State() == lifecycle.Idle
	if idle && a.session.Wakes && a.waking == 0 && a.desk.WakeDue(now) {
		b := a.desk.Take(delivery.Room(a.tokens, a.window))
		a.waking, a.lineage = b.Number, nil
		h, _ := a.handover(b, atPrompt, a.taskAfter(""), false, now)
		out = append(out, Wake{h})
	}
	if n := len(a.desk.Tired()); idle && n > 0 && !a.toldTired {
		a.toldTired = true
		out = append(out, Tell{Text: fmt.Sprintf("switchboard: agents have woken each other %d times in a row; %d waiting %s with your next prompt.", delivery.MaxHops, n, plural(n, "call comes", "calls come"))})
	}
	return out
}

// view is what any program may see of the session.
func (a *Agent) view(now time.Time) View {
	v := View{State: a.state(), Since: a.since(now), Detail: a.life.Detail(), Waiting: len(a.desk.Waiting())}
	if a.standing == owning {
		v.Joined = a.joined
	}
	return v
}

// state is what the session shows: not idle while it is being woken, since it
// will go on by itself then.
func (a *Agent) state() lifecycle.State {
	if s := a.life.State(); s != lifecycle.Idle || a.waking == 0 {
		return s
	}
	return lifecycle.Working
}

// since is when the state began; before the first event, now.
func (a *Agent) since(now time.Time) time.Time {
	if s := a.life.Since(); !s.IsZero() {
		return s.UTC()
	}
	return now.UTC()
}

// record is what peers may know of the session.
func (a *Agent) record(now time.Time) exchange.Record {
	r := exchange.Record{
		Key: a.session.Key, Incarnation: a.incarnation, Name: delivery.Line(a.session.Name, maxName), Cwd: a.session.Cwd,
		Model: delivery.Line(a.session.Model, maxName), Mode: a.session.Mode, File: a.session.File,
		State: string(a.state()), Since: a.since(now), Joined: a.joined, Wakes: a.session.Wakes,
		Handles: a.session.Handles,
		Root:    a.checkout().Root, Branch: delivery.Line(a.checkout().Branch, maxName), Callsign: a.crew.callsign, Tool: a.longTool(now),
		Held: a.desk.Holding(),
	}
	if !a.teamOff() {
		r.Team = a.place.Team
	}
	return r
}

// longTool is the tool that a session has been in for long, as others are told
// (readings: Telecom).
func (a *Agent) longTool(now time.Time) exchange.Tool {
	d := a.life.Detail()
	if d.Tool == "" || now.Sub(d.ToolSince) < longTool {
		return exchange.Tool{}
	}
	return exchange.Tool{Name: delivery.Line(d.Tool, maxName), Since: d.ToolSince.UTC()}
}

const longTool = time.Minute

// maxName bounds a name or model that is published, in bytes.
const maxName = 200

func (a *Agent) memory(edits json.RawMessage) []byte {
	data, err := json.Marshal(memory{Version: exchange.Version, Incarnation: a.incarnation, Joined: a.joined, Desk: a.desk.Memory(), Lineage: a.lineage, Crew: a.crewMemory(edits)})
	if err != nil {
		return nil // plain values always encode
	}
	return data
}

// Expecting reports whether something was handed over that is not in the
// session file yet, so that looking there is worth while.
func (a *Agent) Expecting() bool { return a.desk.Expecting() || len(a.news.offers) > 0 }

// State is what the session is doing.
func (a *Agent) State() lifecycle.State { return a.life.State() }

// Waiting lists the messages that the model has not got yet.
func (a *Agent) Waiting() []delivery.Message { return a.desk.Waiting() }

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}
