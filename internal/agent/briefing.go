package agent

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"switchboard/internal/brief"
	"switchboard/internal/team"
)

// news is what the model is told of its team, and what it was told.
type news struct {
	told    brief.Told
	offers  []offer // handed over, not seen in the conversation yet; each goes on from the one before
	number  int     // of the last offer
	notices []notice
	friends map[string]bool // sessions that messages were exchanged with
}

// offer is one text about the team on its way into the conversation.
type offer struct {
	id      string
	batch   int
	told    brief.Told
	notices []notice // that it tells
}

// notice is a change of a file that this session works with, as it is told and
// remembered.
type notice struct {
	Session string       `json:"session"`
	Path    team.Path    `json:"path"`
	At      time.Time    `json:"at"`
	Text    brief.Notice `json:"notice"`
}

// Rules for notices (spec: telecom, Change notices).
const (
	readLately = time.Hour   // how long ago a read makes a file one's own
	combined   = time.Second // edits within it make one notice
)

// baseline is what the model knows if all that was handed over arrives.
func (n *news) baseline() brief.Told {
	if len(n.offers) > 0 {
		return n.offers[len(n.offers)-1].told
	}
	return n.told
}

// arrived takes note of ids that the conversation holds.
func (n *news) arrived(ids []string) {
	for i := len(n.offers) - 1; i >= 0; i-- {
		if slices.Contains(ids, n.offers[i].id) {
			n.told = n.offers[i].told
			n.offers = n.offers[i+1:]
			return
		}
	}
}

// lost takes back what did not arrive, from the first offer that passes on.
func (n *news) lost(which func(offer) bool) {
	i := slices.IndexFunc(n.offers, which)
	if i < 0 {
		return
	}
	for _, o := range n.offers[i:] {
		n.notices = append(o.notices, n.notices...)
	}
	n.offers = n.offers[:i]
}

// forget makes a full brief due: what was told is no longer in the context.
func (n *news) forget() {
	n.told, n.offers = brief.Told{}, nil
}

// Moments at which news are told.
type moment int

const (
	atPrompt moment = iota // a run starts
	midRun                 // the run goes on after this
)

// tell takes what is new of the team into a text, "" if nothing is.
func (a *Agent) tell(m moment, task string, now time.Time) (string, offer) {
	if !a.inTeam() || a.crew.callsign == "" {
		return "", offer{}
	}
	me := brief.Me{Callsign: a.crew.callsign, Task: task, Log: a.teamLogged()}
	told := a.news.baseline()
	var text string
	if m == atPrompt {
		text, told = brief.Update(me, a.briefPeers(), told, now)
	} else {
		text, told = brief.Presence(me, a.briefPeers(), told, now)
	}
	due, later := a.news.notices, []notice(nil)
	if m == midRun {
		due, later = nil, nil
		for _, n := range a.news.notices {
			if now.Sub(n.At) >= combined {
				due = append(due, n)
			} else {
				later = append(later, n)
			}
		}
	}
	var shown []brief.Notice
	for _, n := range due {
		shown = append(shown, n.Text)
	}
	parts := slices.DeleteFunc([]string{text, brief.Notices(shown)}, func(s string) bool { return s == "" })
	if len(parts) == 0 {
		if len(a.news.offers) == 0 {
			a.news.told = told // known to be alone
		}
		return "", offer{}
	}
	a.news.notices = later
	a.news.number++
	o := offer{id: fmt.Sprintf("team-%s-%d", a.incarnation, a.news.number), told: told, notices: due}
	return strings.Join(parts, "\n\n"), o
}

// teamLogged reports whether teammates have something in the log.
func (a *Agent) teamLogged() bool {
	for _, l := range a.crew.team.Log(time.Time{}) {
		if l.Session != a.session.Key.ID && l.What != team.HasJoined {
			return true
		}
	}
	return false
}

// briefPeers is the team as briefs know it. A member that was not seen yet is
// not there yet.
func (a *Agent) briefPeers() []brief.Peer {
	var out []brief.Peer
	all := a.crew.team.ByAuthor()
	ids := []string{a.session.Key.ID}
	members := a.Peers()
	for _, m := range members {
		ids = append(ids, m.Session)
	}
	for i, m := range members {
		seen := a.crew.peers[m.Session]
		if !seen.seen {
			continue
		}
		r := seen.record
		p := brief.Peer{
			Session: m.Session, Callsign: m.Callsign, ID: shortID(i+1, ids), Task: m.Task, TaskSince: m.TaskSince,
			Doing:  activity(r),
			Branch: r.Branch, Messages: a.news.friends[m.Session],
		}
		if r.Root != a.place.Root { // not where we work: that may change, and they have not moved then
			p.Checkout = r.Root
		}
		for _, e := range all[m.Session] {
			name := a.saysIn(e.Path)
			p.Changed = append(p.Changed, brief.Change{Path: name, At: e.At})
			if a.mine(e.Path) {
				p.Mine = append(p.Mine, name)
			}
		}
		out = append(out, p)
	}
	return out
}

// mine reports whether the session works with a file: it read it, or changed it.
func (a *Agent) mine(p team.Path) bool {
	_, marked := a.edits.known(p)
	return marked || a.changed(p)
}

func (a *Agent) changed(p team.Path) bool {
	return slices.ContainsFunc(a.crew.team.Edits(p), func(e team.Edit) bool { return e.Session == a.session.Key.ID })
}

// observe notes a change that a peer made, if this session must hear of it.
func (a *Agent) observe(e team.Edit, now time.Time) {
	me := a.session.Key.ID
	if e.Session == me || !a.inTeam() {
		return
	}
	m, marked := a.edits.known(e.Path)
	why, checkout, name := brief.Why(""), "", a.says(e.Path)
	switch {
	case marked && m.Hash == e.Hash: // it knows that content
	case marked && !m.Told && !m.Stale && now.Sub(m.At) <= readLately:
		why = brief.YouRead
		a.edits.hear(e.Path)
	case (!marked || !m.Told) && a.changed(e.Path):
		why = brief.YouChanged
		a.edits.hear(e.Path)
	case slices.ContainsFunc(a.crew.team.Copies(e.Path), func(o team.Edit) bool { return o.Session == me }) && !a.edits.copies["notice "+told(e)]:
		a.edits.tell("notice " + told(e))
		why, checkout, name = brief.YouChanged, e.Path.Root, e.Path.Rel
	}
	i := slices.IndexFunc(a.news.notices, func(n notice) bool { return n.Session == e.Session && n.Path.File == e.Path.File })
	switch {
	case i >= 0:
		a.news.notices[i].Text.Edits += e.Edits
	case why != "":
		a.news.notices = append(a.news.notices, notice{Session: e.Session, Path: e.Path, At: now, Text: brief.Notice{
			Callsign: e.Callsign, Path: name, Checkout: checkout, Edits: e.Edits, First: e.First, Lines: e.Lines,
			Created: e.Created, Deleted: e.Hash == "", Why: why,
		}})
	}
}

// newsMemory is what survives the process.
type newsMemory struct {
	Told    brief.Told `json:"told,omitzero"`
	Number  int        `json:"number,omitempty"`
	Friends []string   `json:"friends,omitempty"`
	Notices []notice   `json:"notices,omitempty"`
}

func (n *news) memory() newsMemory {
	m := newsMemory{Told: n.told, Number: n.number, Friends: slices.Sorted(maps.Keys(n.friends))}
	for _, o := range n.offers { // a successor can't tell whether they arrived
		m.Notices = append(m.Notices, o.notices...)
	}
	m.Notices = append(m.Notices, n.notices...)
	return m
}

func (n *news) restore(m newsMemory) {
	n.told, n.number, n.notices = m.Told, m.Number, m.Notices
	for _, f := range m.Friends {
		n.befriend(f)
	}
}

// befriend notes that messages were exchanged with a session.
func (n *news) befriend(session string) {
	if session == "" {
		return
	}
	if n.friends == nil || len(n.friends) > maxFriends {
		n.friends = make(map[string]bool)
	}
	n.friends[session] = true
}

// maxFriends bounds whom one remembers.
const maxFriends = 200
