package agent

import (
	"cmp"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"switchboard/internal/delivery"
	"switchboard/internal/exchange"
	"switchboard/internal/lifecycle"
	"switchboard/internal/team"
)

// crew is the agent's part in its team.
type crew struct {
	team     team.Team
	read     bool   // the journal has been read to its end
	seen     uint64 // how far this stay has read
	saved    uint64 // the same, as remembered: that alone is not worth writing
	joining  bool   // joined was appended and is not folded yet
	leaving  bool   // the session is on its way out
	choice   *bool  // whether its human wants it off; nil leaves it to the setting
	callsign string
	past     string // the callsign of an earlier stay
	stays    int    // how often it came back, after it was taken for dead or was off
	stayed   bool   // it was in the team before
	footer   string
	peers    map[string]peer   // by session
	told     map[string]string // callsigns of the peers that the human knows of, by session; nil before the first look
	toldSeq  uint64            // where the journal ended then
	trouble  bool              // the journal could not be written, and the human was told
	unsent   []exchange.Entry  // that are to be written once it can be
}

// peer is what was seen last of another member.
type peer struct {
	record exchange.Session
	seen   bool
	misses int // looks in a row at which it was not on the roster
}

// inTeam reports whether the session takes part in a team.
func (a *Agent) inTeam() bool {
	return a.standing == owning && a.place.Team != "" && !a.teamOff()
}

// InTeam reports whether the session takes part in a team.
func (a *Agent) InTeam() bool { return a.inTeam() }

// teamOff reports whether its human wants the session in no team. An explicit
// choice goes before the setting (spec: telecom, The /telecom command).
func (a *Agent) teamOff() bool {
	if a.crew.choice != nil {
		return *a.crew.choice
	}
	return a.session.NoTeam
}

// choose takes part in the team from now on, or no longer.
func (a *Agent) choose(off *bool) []Effect {
	before := a.teamOff()
	was := a.crew.choice
	a.crew.choice = off
	switch after := a.teamOff(); {
	case after == before:
		return nil
	case after:
		a.crew.choice = was // until what is open is closed
		return append(a.leaving(), Next{parted{off}})
	}
	a.crew.leaving, a.crew.joining = false, false
	if a.crew.stayed {
		a.renew()
	}
	return []Effect{CatchUp{}}
}

// parted ends a stay in the team whose session stays.
type parted struct{ off *bool }

func (parted) isEvent() {}

func (a *Agent) part(off *bool) {
	a.crew.choice = off
	a.crew.past, a.crew.callsign = cmp.Or(a.crew.callsign, a.crew.past), ""
	a.crew.peers, a.crew.told = nil, nil
}

// renew makes this another stay: what was written of the one before no longer
// counts for it.
func (a *Agent) renew() {
	a.crew.stays++
	base, _, _ := strings.Cut(a.incarnation, ".")
	a.incarnation = fmt.Sprintf("%s.%d", base, a.crew.stays)
}

// commanded answers a command that the human typed.
func (a *Agent) commanded(ev Commanded) []Effect {
	answer := func(r CommandResult) Effect { return Reply{ev.Req, r} }
	switch args := strings.Join(strings.Fields(ev.Args), " "); {
	case args == "off" || args == "on":
		off := args == "off"
		text := "📡 This session takes part in its team again. It can be left with: /telecom off"
		switch {
		case off == a.teamOff() && off:
			text = "📡 This session is off already. Its team is joined again with: /telecom on"
		case off == a.teamOff():
			text = "📡 This session takes part in its team already, as " + cmp.Or(a.crew.callsign, "a new member") + "."
		case off:
			text = "📡 This session is off: its team doesn't see it, its edits are not guarded. Its team is joined again with: /telecom on"
		}
		return append([]Effect{answer(CommandResult{Text: text, Keep: &Choice{Off: off}})}, a.choose(&off)...)
	case args == "":
		state := "on"
		if a.teamOff() {
			state = "off"
		}
		return []Effect{answer(CommandResult{Text: "telecom is " + state + " in this session. Usage: /telecom on | off"})}
	default:
		return []Effect{answer(CommandResult{Text: fmt.Sprintf("There is no /telecom %s. Usage: /telecom on | off", delivery.Line(args, 40)), Bad: true})}
	}
}

// checkout is where the session works, as others are told (spec: telecom,
// Worktrees).
func (a *Agent) checkout() Checkout {
	if a.place.Work.Root != "" {
		return a.place.Work
	}
	return a.place.Checkout
}

// entry is a line of ours for the journal.
func (a *Agent) entry(kind team.Kind, body any) exchange.Entry {
	return exchange.Entry{Session: a.session.Key.ID, Incarnation: a.incarnation, Kind: string(kind), Body: team.Encode(body)}
}

// journalRead folds what was written by all.
func (a *Agent) journalRead(ev JournalRead, now time.Time) []Effect {
	first := !a.crew.read
	var out []Effect
	for _, e := range ev.Entries {
		if team.Kind(e.Kind) == team.Joined && e.Session != a.session.Key.ID && !first && a.inTeam() {
			out = append(out, LookUp{e.Session}) // so that its team hears of it now
		}
		edit, done := a.crew.team.Apply(folded(e))
		if done && (!first || e.Seq > a.crew.seen) { // what came before this stay is history
			a.observe(edit, now)
		}
	}
	a.crew.seen = a.crew.team.Seq()
	a.crew.read = true
	if !a.inTeam() {
		return nil
	}
	me, in := a.crew.team.Member(a.session.Key.ID)
	switch {
	case in && me.Incarnation == a.incarnation:
		a.crew.joining = false
		out = append(out, a.named(me)...)
		if first {
			out = append(out, a.resume(now)...)
		}
		out = append(out, a.tellAlone(now)...)
	case !a.crew.joining && !a.crew.leaving:
		// Joining ends an earlier stay with all that is open: what died in the
		// middle of an edit is written down first.
		a.crew.joining = true
		out = append(append(out, a.inspect(a.session.Key.ID)...), Next{rejoin{again: !in}})
	}
	a.crew.trouble = false
	return append(out, a.reconsider(now)...)
}

// rejoin asks for a place, once an earlier stay is over.
type rejoin struct{ again bool }

func (rejoin) isEvent() {}

// folded is an entry as the fold reads it.
func folded(e exchange.Entry) team.Entry {
	return team.Entry{Seq: e.Seq, Wall: e.Wall, Session: e.Session, Incarnation: e.Incarnation, Kind: team.Kind(e.Kind), Body: e.Body}
}

// Fold applies entries of a journal to a team.
func Fold(t *team.Team, entries []exchange.Entry) {
	for _, e := range entries {
		t.Apply(folded(e))
	}
}

// Shorten returns what a journal must still hold.
func Shorten(entries []exchange.Entry, now time.Time) []exchange.Entry {
	in := make([]team.Entry, len(entries))
	at := make(map[uint64]int, len(entries))
	for i, e := range entries {
		in[i], at[e.Seq] = folded(e), i
	}
	var out []exchange.Entry
	for _, kept := range team.Compact(in, now) {
		e := entries[at[kept.Seq]]
		e.Body = kept.Body
		out = append(out, e)
	}
	return out
}

// First reports whether this session comes before all others of the team that
// are there.
func (a *Agent) First() bool { return a.inTeam() && a.first("") }

// join asks for a place. Whoever was declared gone while it lived comes back as
// a new one.
func (a *Agent) join(again bool) []Effect {
	if again && a.crew.callsign != "" {
		a.renew()
	}
	want := cmp.Or(a.crew.callsign, a.session.Callsign, a.crew.past, a.crew.team.Past(a.session.Key.ID))
	return []Effect{Append{Entries: []exchange.Entry{a.entry(team.Joined, team.Joining{Callsign: want})}}}
}

// named takes the callsign that the fold gave.
func (a *Agent) named(me team.Member) []Effect {
	if a.crew.callsign == me.Callsign {
		return nil
	}
	a.crew.callsign, a.crew.stayed = me.Callsign, true
	if me.Wanted != "" && me.Wanted == a.session.Callsign {
		return []Effect{Tell{Text: fmt.Sprintf("switchboard: the callsign %s is taken, so this session is %s.", me.Wanted, me.Callsign), Bad: true}}
	}
	return nil
}

// appendFailed lets go on whoever waited for the journal.
func (a *Agent) appendFailed(ev AppendFailed) []Effect {
	a.crew.joining = false
	var out []Effect
	for _, e := range ev.Entries {
		switch team.Kind(e.Kind) {
		case team.EditDone, team.EditFailed, team.EditParked: // others wait for it, or must hear of it
			a.crew.unsent = append(a.crew.unsent, e)
		}
	}
	a.crew.unsent = a.crew.unsent[max(0, len(a.crew.unsent)-maxUnsent):]
	for call, p := range a.edits.pending {
		delete(a.edits.pending, call)
		out = append(out, Reply{p.req, Verdict{}})
	}
	if !a.crew.trouble {
		a.crew.trouble = true
		out = append(out, Tell{Text: "switchboard: the team's journal can't be written, edits are not guarded: " + ev.Err.Error(), Bad: true})
	}
	return out
}

// maxUnsent bounds what waits for a journal that can't be written.
const maxUnsent = 200

// resend tries again to write what could not be written.
func (a *Agent) resend() []Effect {
	entries := a.crew.unsent
	if len(entries) == 0 || !a.inTeam() {
		return nil
	}
	a.crew.unsent = nil
	return []Effect{Append{Entries: entries}}
}

// misses is how many looks in a row must not find a member before it counts as
// gone (spec: telecom, Team briefs).
const misses = 2

// peerSeen takes note of a peer, and writes down that it is gone. The first
// live member does that, and the others only when it does not.
func (a *Agent) peerSeen(ev PeerSeen) []Effect {
	m, in := a.crew.team.Member(ev.Session)
	if !in || !a.inTeam() {
		delete(a.crew.peers, ev.Session)
		return nil
	}
	if a.crew.peers == nil {
		a.crew.peers = make(map[string]peer)
	}
	p := a.crew.peers[ev.Session]
	if !ev.Gone {
		a.crew.peers[ev.Session] = peer{record: ev.Record, seen: true}
		return nil
	}
	p.misses++
	a.crew.peers[ev.Session] = p
	if p.misses < misses || (p.misses < 2*misses && !a.first(ev.Session)) {
		return nil
	}
	if open := a.inspect(ev.Session); len(open) > 0 {
		return open // and left with the next look
	}
	return []Effect{Append{Entries: []exchange.Entry{a.entry(team.Left, team.Leaving{Session: m.Session, Incarnation: m.Incarnation})}}}
}

// taskAfter is the task that the session has once a prompt was taken up.
func (a *Agent) taskAfter(prompt string) string {
	me, _ := a.crew.team.Member(a.session.Key.ID)
	task, _ := team.FromPrompt(prompt, me.Task, me.TaskSet)
	return task
}

// first reports whether this session comes before all others that are there.
func (a *Agent) first(but string) bool {
	for m := range a.crew.team.All() {
		switch {
		case m.Session == a.session.Key.ID:
			return true
		case m.Session == but || a.crew.peers[m.Session].misses > 0:
		default:
			return false
		}
	}
	return false
}

// leaving closes what is open. Only then may left be written, which ends all
// that is open: who died in between would take a change along.
func (a *Agent) leaving() []Effect {
	if !a.inTeam() || a.crew.callsign == "" {
		return nil
	}
	a.crew.leaving = true
	return append(a.inspectOwn(), Next{Left{}})
}

// left ends the stay.
func (a *Agent) left(now time.Time) []Effect {
	if !a.crew.leaving {
		return nil
	}
	left := a.entry(team.Left, team.Leaving{Session: a.session.Key.ID, Incarnation: a.incarnation})
	return append(a.tellAlone(now), Append{Entries: []exchange.Entry{left}})
}

// inspect looks at all files that a session has begun to change.
func (a *Agent) inspect(session string) []Effect {
	var out []Effect
	for _, o := range a.crew.team.OpenEdits(session) {
		out = append(out, Inspect{CallID: o.ID, Session: session, Path: o.Path})
	}
	return out
}

// inspectOwn looks at all files that this session has begun to change, also
// those that nobody knows of.
func (a *Agent) inspectOwn() []Effect {
	out := a.inspect(a.session.Key.ID)
	for _, call := range slices.Sorted(maps.Keys(a.edits.running)) {
		if r := a.edits.running[call]; !r.told {
			out = append(out, Inspect{CallID: call, Session: a.session.Key.ID, Path: r.path})
		}
	}
	return out
}

// Peers lists the other members of the team.
func (a *Agent) Peers() []team.Member {
	return slices.AppendSeq(make([]team.Member, 0, a.crew.team.Size()), a.peers())
}

// peers yields the other members of the team.
func (a *Agent) peers() iter.Seq[team.Member] {
	return func(yield func(team.Member) bool) {
		for m := range a.crew.team.All() {
			if m.Session != a.session.Key.ID && !yield(m) {
				return
			}
		}
	}
}

// alone reports whether nobody else is in the team.
func (a *Agent) alone() bool {
	for range a.peers() {
		return false
	}
	return true
}

// prompted takes the task from a human's prompt.
func (a *Agent) prompted(text string) []Effect {
	me, in := a.crew.team.Member(a.session.Key.ID)
	if !in || !a.inTeam() {
		return nil
	}
	task, changed := team.FromPrompt(text, me.Task, me.TaskSet)
	if !changed || text == "" {
		return nil
	}
	return []Effect{Append{Entries: []exchange.Entry{a.entry(team.Tasked, team.Tasking{Text: task})}}}
}

// foot is the line at the foot of the screen.
func (a *Agent) foot() []Effect {
	text := ""
	if a.teamOff() {
		text = "📡 off"
	}
	if a.inTeam() && a.crew.callsign != "" {
		text = "📡 " + a.crew.callsign
		peers, busy := 0, 0
		for m := range a.peers() {
			peers++
			if s := a.crew.peers[m.Session]; s.seen && s.record.State != string(lifecycle.Idle) {
				busy++
			}
		}
		if peers > 0 {
			text += fmt.Sprintf(" · %d %s", peers, plural(peers, "peer", "peers"))
			if busy > 0 {
				text += fmt.Sprintf(" (%d busy)", busy)
			}
		}
	}
	if text == a.crew.footer || a.standing != owning {
		return nil
	}
	a.crew.footer = text
	return []Effect{Status{text}}
}

// announce tells the human who joined and who left (spec: telecom, Team briefs).
// It comes once a second, so that many at once make one line.
func (a *Agent) announce() []Effect {
	if !a.inTeam() || a.crew.callsign == "" || a.crew.told != nil && a.crew.toldSeq == a.crew.team.Seq() {
		return nil
	}
	before := a.crew.told
	a.crew.told, a.crew.toldSeq = make(map[string]string), a.crew.team.Seq()
	var joined, left, renamed []string
	for m := range a.peers() {
		a.crew.told[m.Session] = m.Callsign
		switch was, known := before[m.Session]; {
		case !known:
			joined = append(joined, m.Callsign)
		case was != m.Callsign:
			renamed = append(renamed, was+" is now "+m.Callsign)
		}
	}
	for session, callsign := range before {
		if _, there := a.crew.told[session]; !there {
			left = append(left, callsign)
		}
	}
	if before == nil {
		return nil // who is there already is in the footer
	}
	slices.SortFunc(left, team.CompareCallsigns)
	var parts []string
	if len(left) > 0 {
		parts = append(parts, names(left)+" left")
	}
	if len(joined) > 0 {
		parts = append(parts, names(joined)+" joined")
	}
	if parts = append(parts, renamed...); len(parts) == 0 {
		return nil
	}
	return []Effect{Tell{Text: "📡 " + strings.Join(parts, "; ")}}
}

// names lists callsigns, as many as fit a line.
func names(callsigns []string) string {
	const most = 8
	if n := len(callsigns); n > most {
		return fmt.Sprintf("%s and %d more", strings.Join(callsigns[:most], ", "), n-most)
	}
	return strings.Join(callsigns, ", ")
}

// crewMemory is what survives the process.
type crewMemory struct {
	Callsign string          `json:"callsign,omitempty"`
	Stays    int             `json:"stays,omitempty"`
	Seen     uint64          `json:"seen,omitempty"`
	News     newsMemory      `json:"news,omitzero"`
	Edits    json.RawMessage `json:"edits,omitempty"`
}

func (a *Agent) crewMemory(edits json.RawMessage) crewMemory {
	return crewMemory{
		Callsign: cmp.Or(a.crew.callsign, a.crew.past), Stays: a.crew.stays, Edits: edits,
		Seen: a.crew.saved, News: a.news.memory(),
	}
}
