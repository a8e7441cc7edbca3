package team

import (
	"cmp"
	"slices"
	"time"

	"switchboard/internal/delivery"
)

// The kinds of entry about edits.
const (
	// EditBegun: a tool is about to change a file. Body: Begun.
	EditBegun Kind = "edit-begun"
	// EditDone: a file was changed. Body: Done. It closes the EditBegun with
	// its id, if there was one.
	EditDone Kind = "edit-done"
	// EditFailed: nothing was changed. Body: Failed.
	EditFailed Kind = "edit-failed"
	// EditParked: an edit that began waits for its human. Body: Failed's ID.
	EditParked Kind = "edit-parked"
)

// Path is a file in one canonical spelling, and where it is in its checkout, so
// that copies of it in other worktrees are found.
type Path struct {
	File string `json:"file"`           // absolute, without symbolic links
	Root string `json:"root,omitempty"` // of the checkout that the file lies in
	Rel  string `json:"rel,omitempty"`  // from Root, with slashes
}

// Short is the path as one says it in a checkout: relative inside of it.
func (p Path) Short(root string) string {
	if p.Rel != "" && p.Root == root {
		return p.Rel
	}
	return p.File
}

// key is what copies of a file have in common.
func (p Path) key() string {
	if p.Rel != "" {
		return p.Rel
	}
	return p.File
}

// The bodies.
type (
	// Begun announces a change.
	Begun struct {
		ID    string `json:"id"`             // of the tool call, unique in its session's stay
		Path  Path   `json:"path"`           // the file
		Whole bool   `json:"whole"`          // the whole file is written, not a part of it
		Hash  string `json:"hash,omitempty"` // of the file before; empty if there was none
	}
	// Done tells of a change.
	Done struct {
		ID        string   `json:"id"`
		Session   string   `json:"session,omitempty"` // whose edit it was, if another writes this
		By        string   `json:"by,omitempty"`      // its callsign; written only when a journal is made shorter
		Path      Path     `json:"path"`
		Hash      string   `json:"hash,omitempty"`      // of the file after; empty if it is gone
		Edits     int      `json:"edits,omitempty"`     // places that changed
		First     int      `json:"first,omitempty"`     // line of the first change, from 1
		Lines     []string `json:"lines,omitempty"`     // the first changed lines, with - or + in front
		Created   bool     `json:"created,omitempty"`   // there was no such file
		Uncertain bool     `json:"uncertain,omitempty"` // its author died or its tool failed; only the hash tells
		// Made is when it was made, if it was written down only later.
		Made time.Time `json:"made,omitzero"`
	}
	// Failed closes an edit that changed nothing, or parks it.
	Failed struct {
		ID      string `json:"id"`
		Session string `json:"session,omitempty"` // whose edit it was, if another writes this
	}
)

// Open is an edit that began and has not ended.
type Open struct {
	Begun
	Seq     uint64
	Session string
	Parked  bool // waits for its human
}

// Edit is a change that was made.
type Edit struct {
	Done
	Seq      uint64
	Session  string
	Callsign string    // of its author, at the time
	At       time.Time // for showing
}

// Bounds on what one entry may carry.
const (
	maxLines = 12
	maxLine  = 200 // bytes
)

func (t *Team) begin(e Entry, b Begun) {
	m := t.author(e)
	if m == nil || b.ID == "" || b.Path.File == "" {
		return
	}
	t.close(e.Session, b.ID)
	t.open = append(t.open, Open{Begun: b, Seq: e.Seq, Session: e.Session})
}

func (t *Team) done(e Entry, b Done) (Edit, bool) {
	if b.Path.File == "" {
		return Edit{}, false
	}
	session := e.Session
	if b.Session != "" {
		session = b.Session
	}
	t.close(session, b.ID)
	b.Edits, b.First = max(b.Edits, 0), max(b.First, 0)
	if len(b.Lines) > maxLines {
		b.Lines = b.Lines[:maxLines]
	}
	for i, l := range b.Lines {
		b.Lines[i] = delivery.Line(l, maxLine)
	}
	edit := Edit{Done: b, Seq: e.Seq, Session: session, Callsign: t.past[session], At: e.Wall.UTC()}
	if !b.Made.IsZero() && b.Made.Before(edit.At) {
		edit.At = b.Made.UTC()
	}
	if m := t.present(session); m != nil {
		edit.Callsign = m.Callsign
	}
	if by, ok := Callsign(b.By); ok {
		edit.Callsign = by
	}
	edit.By = ""
	if t.edits == nil {
		t.edits = make(map[string][]Edit)
	}
	key := b.Path.key()
	// The latest of each author and copy is enough to know what was not read.
	kept := slices.DeleteFunc(t.edits[key], func(o Edit) bool { return o.Session == session && o.Path.File == b.Path.File })
	t.edits[key] = append(kept, edit)
	return edit, true
}

// close ends an open edit.
func (t *Team) close(session, id string) {
	t.open = slices.DeleteFunc(t.open, func(o Open) bool { return o.Session == session && o.ID == id })
}

func (t *Team) park(e Entry, b Failed) {
	if t.author(e) == nil {
		return
	}
	for i := range t.open {
		if t.open[i].Session == e.Session && t.open[i].ID == b.ID {
			t.open[i].Parked = true
		}
	}
}

// Edits lists the latest edit of each author of a file, oldest first.
func (t *Team) Edits(p Path) (out []Edit) {
	for _, e := range t.edits[p.key()] {
		if e.Path.File == p.File {
			out = append(out, e)
		}
	}
	return out
}

// Copies lists the latest edit of each author of the same file in other
// checkouts, oldest first.
func (t *Team) Copies(p Path) (out []Edit) {
	if p.Rel == "" {
		return nil
	}
	for _, e := range t.edits[p.key()] {
		if e.Path.Rel == p.Rel && e.Path.Root != p.Root {
			out = append(out, e)
		}
	}
	return out
}

// EditsBy lists the latest edit of each file by a session, newest first.
func (t *Team) EditsBy(session string) (out []Edit) {
	for _, es := range t.edits {
		for _, e := range es {
			if e.Session == session {
				out = append(out, e)
			}
		}
	}
	slices.SortFunc(out, newest)
	return out
}

// ByAuthor lists the latest edit of each file by each session, newest first.
func (t *Team) ByAuthor() map[string][]Edit {
	out := make(map[string][]Edit)
	for _, es := range t.edits {
		for _, e := range es {
			out[e.Session] = append(out[e.Session], e)
		}
	}
	for _, es := range out {
		slices.SortFunc(es, newest)
	}
	return out
}

func newest(a, b Edit) int { return cmp.Compare(b.Seq, a.Seq) }

// OpenEdits lists the edits of a session that began and have not ended.
func (t *Team) OpenEdits(session string) (out []Open) {
	for _, o := range t.open {
		if o.Session == session {
			out = append(out, o)
		}
	}
	return out
}

// Opened lists the edits of a file that began and have not ended.
func (t *Team) Opened(p Path) (out []Open) {
	for _, o := range t.open {
		if o.Path.File == p.File {
			out = append(out, o)
		}
	}
	return out
}

// Before returns the earliest edit of another session on the same file that
// began before an edit of ours, is still open and binds us. An edit that waits
// for its human binds nobody; nor does one whose author waits, over any number
// of others, for an edit of ours: hosts check all calls of one message before
// they run any, so that neither would ever end.
func (t *Team) Before(session, id string) (Open, bool) {
	own := slices.IndexFunc(t.open, func(o Open) bool { return o.Session == session && o.ID == id })
	if own < 0 {
		return Open{}, false
	}
	for _, o := range t.ahead(t.open[own]) {
		if !t.waitsFor(o.Session, session, map[string]bool{}) {
			return o, true
		}
	}
	return Open{}, false
}

// Circle returns the earliest edit of another session on the same file that ours
// would have to wait for, and does not, since that one waits for us.
func (t *Team) Circle(session, id string) (Open, bool) {
	own := slices.IndexFunc(t.open, func(o Open) bool { return o.Session == session && o.ID == id })
	if own < 0 {
		return Open{}, false
	}
	ahead := t.ahead(t.open[own])
	if len(ahead) == 0 {
		return Open{}, false
	}
	return ahead[0], true
}

// ahead lists the open edits that one has to wait for.
func (t *Team) ahead(mine Open) (out []Open) {
	for _, o := range t.open {
		if o.Seq < mine.Seq && o.Session != mine.Session && o.Path.File == mine.Path.File && !o.Parked {
			out = append(out, o)
		}
	}
	return out
}

// waitsFor reports whether a session's open edits wait, over others, for one of
// another session.
func (t *Team) waitsFor(session, other string, seen map[string]bool) bool {
	if seen[session] {
		return false
	}
	seen[session] = true
	for _, o := range t.OpenEdits(session) {
		for _, a := range t.ahead(o) {
			if a.Session == other || t.waitsFor(a.Session, other, seen) {
				return true
			}
		}
	}
	return false
}
