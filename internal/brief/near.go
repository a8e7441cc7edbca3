package brief

import (
	"cmp"
	"slices"

	"switchboard/internal/team"
)

// Bounds on whom a brief describes (spec: telecom, Team briefs).
const (
	few     = 3 // peers that are all described
	maxNear = 6
)

// Near splits the peers, nearest first, into those that a brief describes and
// those that it names. Few peers are all described. Subagents are not peers of
// their own: they don't belong in here.
func Near(peers []Peer) (near, others []Peer) {
	sorted := slices.Clone(peers)
	slices.SortStableFunc(sorted, nearer)
	n := len(sorted)
	if n > few {
		if i := slices.IndexFunc(sorted, func(p Peer) bool { return !p.near() }); i >= 0 {
			n = i
		}
		n = min(n, maxNear)
	}
	return sorted[:n:n], sorted[n:]
}

// near reports whether a peer has to do with our work. A claim on our files, or
// one that overlaps ours, and a common parent go here too.
func (p Peer) near() bool { return len(p.Mine) > 0 || p.Messages }

// nearer orders peers: overlapping claims will come first, then files in
// common, then messages.
func nearer(a, b Peer) int {
	return cmp.Or(
		cmp.Compare(len(b.Mine), len(a.Mine)),
		boolCompare(b.Messages, a.Messages),
		team.CompareCallsigns(a.Callsign, b.Callsign),
	)
}

// boolCompare orders false before true.
func boolCompare(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}
