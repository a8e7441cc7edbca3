package brief

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"switchboard/internal/team"
)

// Told is what the model has been told, by all briefs in its context together.
// The zero Told is nothing: a full brief is due. It outlives the process.
type Told struct {
	Callsign string           `json:"callsign,omitempty"` // ours
	Briefed  bool             `json:"briefed,omitempty"`  // somebody was there to tell of
	Peers    map[string]Known `json:"peers,omitempty"`    // by session
}

// Known is what the model has been told of one peer. Of one that was only named
// it knows the callsign.
type Known struct {
	Callsign  string `json:"callsign"`
	Described bool   `json:"described,omitempty"`
	Task      string `json:"task,omitempty"`
	Checkout  string `json:"checkout,omitempty"`
	Branch    string `json:"branch,omitempty"`
	// Claims that it was told of go here: their release is always told.
}

func known(p Peer) Known {
	return Known{Callsign: p.Callsign, Described: true, Task: p.Task, Checkout: p.Checkout, Branch: p.Branch}
}

// Update says what changed since the model was told, for the start of a prompt:
// a full brief the first time and when our own callsign changed. It is empty
// when there is nothing new.
func Update(me Me, peers []Peer, told Told, now time.Time) (string, Told) {
	if !told.Briefed || told.Callsign != callsign(me.Callsign) && len(peers) > 0 {
		return Full(me, peers, now)
	}
	near, others := Near(cleaned(peers))
	r := callRoll(near, others, told)
	lines, next := r.lines(now), r.next
	for _, p := range near {
		switch k := next.Peers[p.Session]; {
		case k.Described:
			lines = append(lines, k.changes(p)...)
		case p.near():
			lines = append(lines, "• now near your work: "+describe(p, now))
		default: // few enough now to describe them all
			lines = append(lines, "• also here: "+describe(p, now))
		}
		next.Peers[p.Session] = known(p)
	}
	return headed(me, lines), next
}

// Presence says who joined or left, for a model in the middle of a run. Nothing
// else is told, except who was renamed, along with it: a name must mean one
// peer. It is empty while a full brief is due.
func Presence(me Me, peers []Peer, told Told, now time.Time) (string, Told) {
	near, others := Near(cleaned(peers))
	r := callRoll(near, others, told)
	if told.Callsign == "" || len(r.left)+len(r.joined)+len(r.named) == 0 {
		return "", told
	}
	lines := r.lines(now)
	if !told.Briefed { // it was alone until now
		lines = append(lines, closing(me))
		r.next.Callsign, r.next.Briefed = callsign(me.Callsign), true
	}
	return headed(me, lines), r.next
}

// headed makes a text of the lines; none of none.
func headed(me Me, lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	return fmt.Sprintf("📡 Telecom: news of your team (you are %s)\n", callsign(me.Callsign)) + strings.Join(lines, "\n")
}

// roll is who is there, against who was told to be.
type roll struct {
	left    []string
	renamed []string
	joined  []Peer // to be described
	named   []Peer // joined too, away from our work
	next    Told   // once all this is told
}

func callRoll(near, others []Peer, told Told) roll {
	r := roll{next: Told{Callsign: told.Callsign, Briefed: told.Briefed, Peers: make(map[string]Known)}}
	for i, p := range slices.Concat(near, others) {
		k, ok := told.Peers[p.Session]
		switch {
		case !ok && i < len(near):
			r.joined = append(r.joined, p)
			k = known(p)
		case !ok:
			r.named = append(r.named, p)
		case k.Callsign != p.Callsign:
			r.renamed = append(r.renamed, k.Callsign+" → "+p.Callsign)
		}
		k.Callsign = p.Callsign
		r.next.Peers[p.Session] = k
	}
	for session, k := range told.Peers {
		if _, ok := r.next.Peers[session]; !ok {
			r.left = append(r.left, k.Callsign)
		}
	}
	slices.SortFunc(r.left, team.CompareCallsigns)
	return r
}

// lines tells it in an order in which no name means two peers: a callsign is
// free once its owner left or was renamed.
func (r roll) lines(now time.Time) (lines []string) {
	if len(r.left) > 0 {
		lines = append(lines, "• "+strings.Join(r.left, ", ")+" left")
	}
	if len(r.renamed) > 0 {
		lines = append(lines, "• renamed: "+strings.Join(r.renamed, ", "))
	}
	for _, p := range r.joined {
		lines = append(lines, "• joined: "+describe(p, now))
	}
	if len(r.named) > 0 {
		lines = append(lines, "• joined, away from your work: "+roster(r.named, now))
	}
	return lines
}

// changes says what is new of a peer that was described.
func (k Known) changes(p Peer) (lines []string) {
	switch {
	case k.Task == p.Task:
	case p.Task == "":
		lines = append(lines, "• "+p.Callsign+" has no task now")
	default:
		lines = append(lines, "• "+p.Callsign+" now works on: "+p.Task)
	}
	branch := "on " + cmp.Or(p.Branch, "no branch")
	switch {
	case k.Checkout == p.Checkout && k.Branch == p.Branch:
	case k.Checkout == p.Checkout:
		lines = append(lines, "• "+p.Callsign+" is now "+branch)
	default:
		lines = append(lines, "• "+p.Callsign+" is now in "+cmp.Or(p.Checkout, "your checkout")+", "+branch)
	}
	// Claims made and released go here.
	return lines
}
