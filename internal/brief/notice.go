package brief

import (
	"fmt"
	"slices"
	"strings"

	"switchboard/internal/delivery"
)

// Notice is a change by a peer of a file that this session works with.
type Notice struct {
	Callsign         string   // of the peer
	Path             string   // as we say it; from Checkout, if that is set
	Checkout         string   // another checkout, if the peer changed the copy of the file there
	Edits            int      // places that changed; 0 if that is not known
	First            int      // line of the first of them, from 1
	Lines            []string // the first changed lines, with - or + in front
	Created, Deleted bool
	Why              Why
}

// Why says what a file is to us.
type Why string

// The reasons. A claim of ours on the file will be one.
const (
	YouRead    Why = "you read it"
	YouChanged Why = "you changed it"
)

// Bounds on the changed lines in one text.
const (
	maxDiff     = 6   // lines of one file
	maxDiffLine = 160 // bytes
	maxDiffs    = 5   // files that show theirs
)

// Notices tells of changes, by peer, in one text. It is empty without any.
func Notices(ns []Notice) string {
	if len(ns) == 0 {
		return ""
	}
	var peers []string // in the order in which they come up
	byPeer := make(map[string][]Notice)
	for _, n := range ns {
		c := callsign(n.Callsign)
		if byPeer[c] == nil {
			peers = append(peers, c)
		}
		byPeer[c] = append(byPeer[c], n)
	}
	var lines []string
	diffs := 0
	for _, c := range peers {
		lines = append(lines, fmt.Sprintf("📡 %s changed %s:", c, what(byPeer[c])))
		for _, n := range byPeer[c] {
			lines = append(lines, n.line())
			if len(n.Lines) > 0 && diffs < maxDiffs {
				lines = append(lines, n.diff()...)
				diffs++
			}
		}
	}
	return strings.Join(append(lines, toDo(ns)...), "\n")
}

func what(ns []Notice) string {
	if len(ns) == 1 {
		return "a file you work with"
	}
	return fmt.Sprintf("%d files you work with", len(ns))
}

// line says which file, what happened to it and what it is to us.
func (n Notice) line() string {
	s := "• " + delivery.Line(n.Path, maxPath)
	if n.Checkout != "" { // a path that can be read
		s = "• " + delivery.Line(n.Checkout, maxPath) + "/" + delivery.Line(n.Path, maxPath)
	}
	s += ": "
	switch {
	case n.Deleted:
		s += "deleted"
	case n.Created:
		s += "created"
	case n.Edits == 1:
		s += "1 edit"
	case n.Edits > 1:
		s += fmt.Sprintf("%d edits", n.Edits)
	default:
		s += "changed"
	}
	if n.First > 0 && !n.Deleted && !n.Created {
		s += fmt.Sprintf(" from line %d", n.First)
	}
	why := n.Why
	if n.Checkout != "" && why == YouChanged {
		why = "you changed your copy"
	}
	if why != "" {
		s += "; " + delivery.Line(string(why), 80)
	}
	return s
}

func (n Notice) diff() (lines []string) {
	for _, l := range n.Lines[:min(len(n.Lines), maxDiff)] {
		lines = append(lines, "    "+delivery.Line(l, maxDiffLine))
	}
	return lines
}

// toDo says what to call next: our own files are to be read again, copies in
// other checkouts leave ours as it is.
func toDo(ns []Notice) (lines []string) {
	ours := slices.ContainsFunc(ns, func(n Notice) bool { return n.Checkout == "" && !n.Deleted })
	copies := slices.ContainsFunc(ns, func(n Notice) bool { return n.Checkout != "" })
	if ours {
		lines = append(lines, "What you know is out of date: call read on a file before you edit it.")
	}
	if copies {
		lines = append(lines, "A copy in another checkout leaves yours as it is; the two meet when the branches merge. To see theirs, call read on that path.")
	}
	return lines
}
