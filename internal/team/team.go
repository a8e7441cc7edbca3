// Package team folds a team's journal into who is there, under which callsign
// and with which task, and what happened. The fold reads entries and nothing
// else, so that every session that reads the journal comes to the same answer.
package team

import (
	"cmp"
	"encoding/json"
	"iter"
	"slices"
	"strings"
	"time"

	"switchboard/internal/delivery"
)

// Kind says what an entry of the journal tells.
type Kind string

// The kinds of entry. Unknown kinds are skipped, so that a newer Switchboard
// may add some.
const (
	// Joined: the session came and asks for a callsign. Body: Joining.
	Joined Kind = "joined"
	// Left: a session went, or was found gone. Body: Leaving.
	Left Kind = "left"
	// Renamed: the session asks for another callsign. Body: Renaming.
	Renamed Kind = "renamed"
	// Tasked: the session works on something else. Body: Tasking.
	Tasked Kind = "task"
)

// Entry is one line of the journal, as far as the fold needs it.
type Entry struct {
	Seq         uint64
	Wall        time.Time // for showing only
	Session     string    // whose line it is
	Incarnation string    // the stay on the roster during which it was written
	Kind        Kind
	Body        json.RawMessage
}

// The bodies.
type (
	// Joining asks for a place in the team.
	Joining struct {
		Callsign string `json:"callsign,omitempty"` // the one wanted; empty for the first free word
		Granted  string `json:"granted,omitempty"`  // what it got; written only when a journal is made shorter
	}
	// Leaving ends a stay. Whoever finds a session dead may write it.
	Leaving struct {
		Session     string `json:"session"`
		Incarnation string `json:"incarnation"`
	}
	// Renaming asks for another callsign. One that is taken changes nothing.
	Renaming struct {
		Callsign string `json:"callsign"`
		Granted  string `json:"granted,omitempty"` // what it was called then; written only when a journal is made shorter
	}
	// Tasking says what the session works on now.
	Tasking struct {
		Text string `json:"text"`          // one line; empty for none
		Set  bool   `json:"set,omitempty"` // by its model, not taken from a prompt
	}
)

// Encode returns a body as an entry holds it.
func Encode(body any) json.RawMessage {
	data, err := json.Marshal(body)
	if err != nil {
		return nil // plain values always encode
	}
	return data
}

// Member is a session that is in the team.
type Member struct {
	Session     string
	Incarnation string
	Callsign    string
	Wanted      string // the callsign that it asked for, if another had it
	Joined      time.Time
	Task        string
	TaskSince   time.Time
	TaskSet     bool // the task was set by its model, not taken from a prompt
}

// Team is the fold over a journal. The zero Team is an empty one.
type Team struct {
	seq     uint64            // of the last entry
	members []Member          // by callsign
	past    map[string]string // callsign that a departed session had last
	log     []Line
	open    []Open            // in the order in which they began
	edits   map[string][]Edit // by what copies of a file have in common, oldest first
}

// Seq is the number of the last entry folded.
func (t *Team) Seq() uint64 { return t.seq }

// Apply folds one entry. An entry that was folded before, does not parse, or
// does not fit what is known (a task of somebody who is not there) changes
// nothing. If it tells of a change to a file, that is returned.
func (t *Team) Apply(e Entry) (edit Edit, done bool) {
	if e.Seq <= t.seq {
		return Edit{}, false
	}
	t.seq = e.Seq
	switch e.Kind {
	case Joined:
		with(e, t.join)
	case Left:
		with(e, t.leave)
	case Renamed:
		with(e, t.rename)
	case Tasked:
		with(e, t.task)
	case EditBegun:
		with(e, t.begin)
	case EditDone:
		with(e, func(e Entry, b Done) { edit, done = t.done(e, b) })
	case EditFailed:
		with(e, func(e Entry, b Failed) { t.close(cmp.Or(b.Session, e.Session), b.ID) })
	case EditParked:
		with(e, t.park)
	}
	return edit, done
}

// with calls f with an entry's body, if that can be read.
func with[B any](e Entry, f func(Entry, B)) {
	var b B
	if decode(e.Body, &b) {
		f(e, b)
	}
}

func decode(body json.RawMessage, into any) bool { return json.Unmarshal(body, into) == nil }

func (t *Team) join(e Entry, b Joining) {
	if e.Session == "" || e.Incarnation == "" {
		return
	}
	if m := t.present(e.Session); m != nil {
		if m.Incarnation == e.Incarnation {
			return // said twice
		}
		t.remove(e.Session, e.Wall) // its end was never written
	}
	m := Member{Session: e.Session, Incarnation: e.Incarnation, Joined: e.Wall.UTC()}
	want, ok := Callsign(b.Callsign)
	granted, told := Callsign(b.Granted)
	switch {
	case told && t.named(granted) == nil:
		m.Callsign = granted
		if ok && want != granted {
			m.Wanted = want
		}
	case ok && t.named(want) == nil:
		m.Callsign = want
	case ok:
		m.Wanted = want
	}
	if m.Callsign == "" {
		m.Callsign = t.firstFree()
	}
	t.members = append(t.members, m)
	t.sort()
	t.note(Line{At: e.Wall.UTC(), Session: e.Session, Callsign: m.Callsign, What: HasJoined})
}

func (t *Team) leave(e Entry, b Leaving) {
	if m := t.present(b.Session); m != nil && m.Incarnation == b.Incarnation {
		t.remove(b.Session, e.Wall)
	}
}

func (t *Team) remove(session string, at time.Time) {
	i := slices.IndexFunc(t.members, func(m Member) bool { return m.Session == session })
	m := t.members[i]
	t.members = slices.Delete(t.members, i, i+1)
	if t.past == nil {
		t.past = make(map[string]string)
	}
	t.past[m.Session] = m.Callsign
	t.open = slices.DeleteFunc(t.open, func(o Open) bool { return o.Session == m.Session })
	t.note(Line{At: at.UTC(), Session: m.Session, Callsign: m.Callsign, What: HasLeft})
}

func (t *Team) rename(e Entry, b Renaming) {
	m := t.author(e)
	want, ok := Callsign(b.Callsign)
	if m == nil || !ok || m.Callsign == want {
		return
	}
	granted, told := Callsign(b.Granted)
	if t.named(want) != nil || told && granted != want {
		m.Wanted = want
		return
	}
	t.note(Line{At: e.Wall.UTC(), Session: m.Session, Callsign: want, What: WasRenamed, Text: m.Callsign})
	m.Callsign, m.Wanted = want, ""
	t.sort()
}

func (t *Team) task(e Entry, b Tasking) {
	m := t.author(e)
	if m == nil {
		return
	}
	text := delivery.Line(b.Text, MaxTask)
	if text == m.Task {
		m.TaskSet = b.Set
		return
	}
	m.Task, m.TaskSet, m.TaskSince = text, b.Set, e.Wall.UTC()
	if text != "" {
		t.note(Line{At: e.Wall.UTC(), Session: m.Session, Callsign: m.Callsign, What: HasTask, Text: text})
	}
}

// author is the member who wrote an entry during its present stay.
func (t *Team) author(e Entry) *Member {
	if m := t.present(e.Session); m != nil && m.Incarnation == e.Incarnation {
		return m
	}
	return nil
}

func (t *Team) present(session string) *Member {
	for i := range t.members {
		if t.members[i].Session == session {
			return &t.members[i]
		}
	}
	return nil
}

func (t *Team) named(callsign string) *Member {
	for i := range t.members {
		if t.members[i].Callsign == callsign {
			return &t.members[i]
		}
	}
	return nil
}

// Members lists who is there, by callsign in the order of the alphabet.
func (t *Team) Members() []Member {
	return slices.Clone(t.members)
}

// All yields who is there, in the same order.
func (t *Team) All() iter.Seq[Member] { return slices.Values(t.members) }

// Size is how many are there.
func (t *Team) Size() int { return len(t.members) }

// sort keeps the members in the order in which they are listed.
func (t *Team) sort() {
	slices.SortFunc(t.members, func(a, b Member) int { return CompareCallsigns(a.Callsign, b.Callsign) })
}

// Member returns a session that is there.
func (t *Team) Member(session string) (Member, bool) {
	if m := t.present(session); m != nil {
		return *m, true
	}
	return Member{}, false
}

// ByCallsign returns who has a callsign.
func (t *Team) ByCallsign(callsign string) (Member, bool) {
	if m := t.named(strings.ToLower(callsign)); m != nil {
		return *m, true
	}
	return Member{}, false
}

// Met reports whether any session but one was ever here, as far as is known.
func (t *Team) Met(but string) bool {
	for session := range t.past {
		if session != but {
			return true
		}
	}
	return slices.ContainsFunc(t.members, func(m Member) bool { return m.Session != but })
}

// Past returns the callsign that a session had when it was here last.
func (t *Team) Past(session string) string { return t.past[session] }

// CompareCallsigns orders callsigns: alpha before bravo, alpha2 after zulu.
func CompareCallsigns(a, b string) int {
	wa, na := splitCallsign(a)
	wb, nb := splitCallsign(b)
	return cmp.Or(cmp.Compare(na, nb), cmp.Compare(wa, wb))
}
