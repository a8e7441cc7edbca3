// Package brief writes what a session's model is told of its team: who is
// there and at what (Full), what is new of that (Update, Presence), and which
// files it works with were changed by others (Notices). It is pure. What peers
// wrote about themselves is flattened and cut, so that it stays in its place.
package brief

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"switchboard/internal/delivery"
	"switchboard/internal/lifecycle"
	"switchboard/internal/phonebook"
	"switchboard/internal/team"
)

// Me is the session whose model is told.
type Me struct {
	Callsign string
	Task     string
	Log      bool // its team has a log to read
}

// Peer is another session of the team.
type Peer struct {
	Session   string // tells it from others; never shown
	Callsign  string
	ID        string // as short as on the board
	Doing     Activity
	Task      string
	TaskSince time.Time
	Checkout  string // its folder; empty if it is the one that we work in
	Branch    string
	Changed   []Change // newest first
	// Claims, locks and whom it waits for go here.

	// What makes it near.
	Mine     []string // files we work with that it changed, as in Changed
	Messages bool     // it exchanged messages with us
}

// Change is a file that a peer changed.
type Change struct {
	Path string // from the root of its checkout
	At   time.Time
}

// Activity is what a session does at the moment.
type Activity struct {
	State        lifecycle.State
	Since        time.Time // of the state
	Tool         string    // that runs; empty without one
	ToolSince    time.Time
	Unresponsive bool
}

// longTool is from when on a tool call is worth telling (readings: Telecom).
const longTool = time.Minute

// Text says what a session does and, where it matters, for how long.
func (a Activity) Text(now time.Time) string {
	state := lifecycle.State(delivery.Line(string(a.State), 20))
	switch tool, d := delivery.Line(a.Tool, 40), now.Sub(a.ToolSince); {
	case a.Unresponsive:
		return "unresponsive"
	case state == lifecycle.Idle:
		if d := now.Sub(a.Since); d >= time.Minute && !a.Since.IsZero() {
			return "idle " + delivery.Age(d)
		}
		return "idle"
	case state != lifecycle.Working && state != "":
		return "busy · " + string(state)
	case tool != "" && d >= longTool && !a.ToolSince.IsZero():
		return "busy · " + tool + " " + delivery.Age(d)
	}
	return "busy"
}

// Full describes the team, and returns what the model knows once it has read
// that. With nobody there it is empty.
func Full(me Me, peers []Peer, now time.Time) (string, Told) {
	told := Told{Callsign: callsign(me.Callsign), Briefed: len(peers) > 0}
	if len(peers) == 0 {
		return "", told
	}
	near, others := Near(cleaned(peers))
	told.Peers = make(map[string]Known, len(peers))
	agents := "1 other agent works"
	if n := len(peers); n > 1 {
		agents = fmt.Sprintf("%d other agents work", n)
	}
	lines := []string{fmt.Sprintf("📡 Telecom: you are %s. %s in this repository", told.Callsign, agents)}
	switch {
	case len(others) == 0:
		lines[0] += ":"
	case len(near) == 0:
		lines[0] += "."
	default:
		lines[0] += fmt.Sprintf(", %d of them near your work:", len(near))
	}
	for _, p := range near {
		told.Peers[p.Session] = known(p)
		lines = append(lines, "• "+describe(p, now))
	}
	if len(others) > 0 {
		for _, p := range others {
			told.Peers[p.Session] = Known{Callsign: p.Callsign}
		}
		lines = append(lines, "Away from your work so far: "+roster(others, now))
	}
	return strings.Join(append(lines, closing(me)), "\n"), told
}

// closing says what to call next.
func closing(me Me) string {
	// What to do about claims and how to reach a peer goes here.
	s := `Call read on a file they changed before you edit it. Who does what: telecom({ action: "board" }).`
	if me.Log {
		s += ` What happened so far: telecom({ action: "log" }).`
	}
	if delivery.Line(me.Task, team.MaxTask) == "" {
		s += ` They don't see what you work on: telecom({ action: "status", message: "…" }).`
	}
	return s
}

// maxChanges is how many changed files tell what a peer is at. The board has
// more.
const maxChanges = 3

// describe says what there is to know of a peer. The two blanks before a folder
// or an id are in no value of a peer.
func describe(p Peer, now time.Time) string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s [%s]", p.Callsign, p.Doing.Text(now))
	if p.Branch != "" {
		out.WriteString(" on " + p.Branch)
	}
	if p.Checkout != "" {
		out.WriteString("  in " + p.Checkout)
	}
	if p.ID != "" {
		out.WriteString("  id " + phonebook.Show(p.ID))
	}
	if p.Task != "" {
		out.WriteString("\n    task: " + p.Task)
		if !p.TaskSince.IsZero() {
			fmt.Fprintf(&out, " (%s)", ago(now, p.TaskSince))
		}
	}
	for i, c := range latest(p) {
		sep := ", "
		if i == 0 {
			sep = "\n    changed: "
		}
		yours := ""
		if slices.Contains(p.Mine, c.Path) {
			yours = ", yours too"
		}
		fmt.Fprintf(&out, "%s%s (%s%s)", sep, c.Path, ago(now, c.At), yours)
	}
	// A line for its claims goes here.
	return out.String()
}

// latest picks the changes that tell most: those in our files, then the newest.
func latest(p Peer) []Change {
	out := slices.Clone(p.Changed)
	slices.SortStableFunc(out, func(a, b Change) int {
		return -boolCompare(slices.Contains(p.Mine, a.Path), slices.Contains(p.Mine, b.Path))
	})
	return out[:min(len(out), maxChanges)]
}

// Bounds on a roster line: beyond them names must do.
const (
	maxRoster     = 12 // peers with what they do
	maxRosterTask = 60 // bytes
)

// roster names peers in one line.
func roster(peers []Peer, now time.Time) string {
	var out, rest []string
	for i, p := range peers {
		if i >= maxRoster {
			rest = append(rest, p.Callsign)
			continue
		}
		s := fmt.Sprintf("%s [%s]", p.Callsign, p.Doing.Text(now))
		if task := strings.ReplaceAll(p.Task, ";", ","); task != "" { // a semicolon ends the peer
			s += " " + delivery.Line(task, maxRosterTask)
		}
		out = append(out, s)
	}
	if len(rest) > 0 {
		out = append(out, strings.Join(rest, ", "))
	}
	return strings.Join(out, "; ")
}

// cleaned returns the peers with all that is shown on one line, and short.
func cleaned(peers []Peer) []Peer {
	out := make([]Peer, len(peers))
	for i, p := range peers {
		p.Callsign = callsign(p.Callsign)
		p.ID = delivery.Line(p.ID, 80)
		p.Task = delivery.Line(p.Task, team.MaxTask)
		p.Checkout = delivery.Line(p.Checkout, maxPath)
		p.Branch = delivery.Line(p.Branch, 80)
		p.Changed = slices.Clone(p.Changed)
		for j := range p.Changed {
			p.Changed[j].Path = delivery.Line(p.Changed[j].Path, maxPath)
		}
		p.Mine = slices.Clone(p.Mine)
		for j := range p.Mine {
			p.Mine[j] = delivery.Line(p.Mine[j], maxPath)
		}
		out[i] = p
	}
	return out
}

// maxPath bounds a path that is shown, in bytes.
const maxPath = 200

// callsign is how a session is called in a text.
func callsign(s string) string { return cmp.Or(delivery.Line(s, 40), "unnamed") }

func ago(now, t time.Time) string { return delivery.Age(now.Sub(t)) + " ago" }
