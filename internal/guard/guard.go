// Package guard decides whether one edit may run: whether it would overwrite,
// or was made without knowing, a change that another session made. It is pure;
// what is on disk and who changed it come as arguments.
package guard

import (
	"fmt"
	"time"

	"switchboard/internal/delivery"
	"switchboard/internal/team"
)

// Mode is how strict the guard is (spec: telecom, The edit guard).
type Mode string

// The modes.
const (
	Standard Mode = "standard"
	Strict   Mode = "strict"
	Off      Mode = "off"
)

// ParseMode returns the mode that a setting names; the empty one is Standard.
func ParseMode(s string) (Mode, bool) {
	switch m := Mode(s); m {
	case "":
		return Standard, true
	case Standard, Strict, Off:
		return m, true
	}
	return Standard, false
}

// Mark is what a session knows of a file: its content when it was last read or
// written by the session, and how far the journal went then.
type Mark struct {
	Seq  uint64 `json:"seq"`
	Hash string `json:"hash"`
}

// Waits reports whether an edit waits for a peer that is at the same file.
func (m Mode) Waits() bool { return m != Off }

// Crossed returns the newest edit of another session since an edit began, at a
// place in the journal: the two met without waiting for each other.
func Crossed(began uint64, others []team.Edit) (newest *team.Edit) {
	for i, e := range others {
		if e.Seq > began && (newest == nil || e.Seq > newest.Seq) {
			newest = &others[i]
		}
	}
	return newest
}

// CrossedNote is what the author of an edit must know that met another.
func CrossedNote(whole bool, name string, other team.Edit) string {
	if whole {
		return fmt.Sprintf("⚠ %s changed %s while this write was under way, and it went over that. Use read on it and put back what was lost.", other.Callsign, name)
	}
	return fmt.Sprintf("⚠ %s changed %s while this edit was under way. Use read on it before your next edit there.", other.Callsign, name)
}

// Attempt is an edit that is about to run.
type Attempt struct {
	Mode    Mode
	Whole   bool        // the whole file is written, as by the write tool
	Name    string      // the file, as the model is told
	Tool    string      // the tool's name, for "call … again"
	Hash    string      // of the file on disk, now
	Mark    *Mark       // nil if the session never read the file
	Others  []team.Edit // the latest edit of each other session on this file
	Copies  []team.Edit // the same on copies in other checkouts that this session was not told of
	Ahead   *team.Open  // an edit of another session that is still under way, though it was waited for
	AheadBy string      // its callsign
	Blocked int         // how often this same unread change blocked before
	Now     time.Time
}

// Verdict says whether an edit may run.
type Verdict struct {
	Block  bool
	Text   string     // why not, or a note for its result; empty when there is nothing to say
	Unread *team.Edit // the newest change of another session that this one does not know
	Copies bool       // Text tells of copies in other checkouts
}

// MaxBlocks is how often one unread change blocks: the next attempt passes, so
// that no agent is blocked for good (spec: telecom, The edit guard).
const MaxBlocks = 2

// Unread returns the newest edit of another session that a session with this
// mark does not know, while the file holds other content than it knows. Content
// decides: a change that was undone is none.
func Unread(mark *Mark, others []team.Edit, hash string) *team.Edit {
	if hash == "" || mark != nil && mark.Hash == hash {
		return nil // nothing to lose, or nothing new
	}
	var newest *team.Edit
	for i, e := range others {
		if (mark == nil || e.Seq > mark.Seq) && (newest == nil || e.Seq > newest.Seq) {
			newest = &others[i]
		}
	}
	return newest
}

// Judge gives the verdict on one edit.
func Judge(a Attempt) Verdict {
	if a.Mode == Off {
		return Verdict{}
	}
	// Claims of peers are judged here, once there are claims.
	unread := Unread(a.Mark, a.Others, a.Hash)
	switch {
	case unread != nil && (a.Whole || a.Mode == Strict):
		if a.Blocked >= MaxBlocks {
			return Verdict{Unread: unread, Text: a.anyway(unread)}
		}
		return Verdict{Block: true, Unread: unread, Text: a.refusal(unread)}
	case unread != nil:
		return Verdict{Unread: unread, Text: fmt.Sprintf("⚠ %s changed %s %s ago and you haven't read that: the edit was applied on top. Use read on it before your next edit there.", unread.Callsign, a.Name, delivery.Age(a.Now.Sub(unread.At)))}
	case a.Ahead != nil && a.Whole && a.Blocked < MaxBlocks:
		return Verdict{Block: true, Text: fmt.Sprintf("Not written: %s is changing %s at this moment. Use read on it in a few seconds, then apply your change to what is there.", a.AheadBy, a.Name)}
	case a.Ahead != nil:
		return Verdict{Text: fmt.Sprintf("⚠ %s was changing %s at the same moment. Use read on it to see both changes.", a.AheadBy, a.Name)}
	case len(a.Copies) > 0:
		e := a.Copies[len(a.Copies)-1]
		return Verdict{Copies: true, Text: fmt.Sprintf("⚠ %s changed its copy of %s in %s: the two will meet when the branches merge.", e.Callsign, a.Name, delivery.Line(e.Path.Root, 200))}
	}
	return Verdict{}
}

func (a Attempt) refusal(e *team.Edit) string {
	since := "since you read it"
	if a.Mark == nil {
		since = "and you haven't read it"
	}
	what := "changed"
	if e.Created {
		what = "created"
	}
	return fmt.Sprintf("Not done: %s %s %s %s ago, %s. Call read on %s, then apply your change on top of theirs%s.",
		e.Callsign, what, a.Name, delivery.Age(a.Now.Sub(e.At)), since, a.Name, a.better())
}

// anyway is the note for the attempt that passes after others were refused.
func (a Attempt) anyway(e *team.Edit) string {
	if a.Whole {
		return fmt.Sprintf("⚠ This went over %s's change of %s, which you still haven't read. Look at the file with read and put back what was lost.", e.Callsign, a.Name)
	}
	return fmt.Sprintf("⚠ This was applied on top of %s's change of %s, which you still haven't read. Use read on it before your next edit there.", e.Callsign, a.Name)
}

func (a Attempt) better() string {
	if a.Whole {
		return ", rather with edit than with write"
	}
	return ""
}
