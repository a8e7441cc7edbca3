package team

import (
	"slices"
	"time"
)

// What says what a line of the log tells.
type What string

// What lines tell. Scripts read them: values are added, never changed.
const (
	HasJoined  What = "joined"
	HasLeft    What = "left"
	WasRenamed What = "renamed" // Text is the callsign before
	HasTask    What = "task"    // Text is the task
)

// Line is one line of the team log.
type Line struct {
	At       time.Time `json:"at"`
	Session  string    `json:"session"`
	Callsign string    `json:"callsign"`
	What     What      `json:"what"`
	Text     string    `json:"text,omitempty"`
}

// KeepLog is how long the lines of a session stay that has left (spec:
// telecom, Team log).
const KeepLog = 24 * time.Hour

// maxLog bounds the log, in lines.
const maxLog = 500

func (t *Team) note(l Line) {
	t.log = append(t.log, l)
	if n := len(t.log) - maxLog; n > 0 {
		t.log = slices.Delete(t.log, 0, n)
	}
}

// Log lists what happened, oldest first. What a session did that left longer
// ago than KeepLog is left out.
func (t *Team) Log(now time.Time) []Line {
	left := make(map[string]time.Time)
	for _, l := range t.log {
		if l.What == HasLeft {
			left[l.Session] = l.At
		}
	}
	var out []Line
	for _, l := range t.log {
		end, gone := left[l.Session]
		if t.present(l.Session) == nil && gone && now.Sub(end) > KeepLog {
			continue
		}
		out = append(out, l)
	}
	return out
}
