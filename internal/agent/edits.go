package agent

import (
	"maps"
	"slices"
	"time"

	"switchboard/internal/exchange"
	"switchboard/internal/guard"
	"switchboard/internal/team"
)

// edits is what the guard knows of this session.
type edits struct {
	marks   map[string][]mark   // what it knows of files, by their canonical path; the newest first
	blocks  map[string]block    // by file
	copies  map[string]bool     // files and peers whose copies were told of
	reads   map[string]reading  // by call
	pending map[string]*verdict // edits that wait for theirs, by call
	running map[string]running  // edits that may run, by call
	calls   map[string]bool     // calls that the host has begun and not ended
	waited  time.Duration       // for peers, since the last model response
	landed  []string            // checkouts that the last edits were in, the newest last
	alone   []team.Done         // made while nobody else was there, the newest last
	changed bool                // marks, blocks or copies, since they were remembered
}

// reading is a read that has begun.
type reading struct {
	seq  uint64
	hash string
}

// verdict is an edit that waits for its verdict.
type verdict struct {
	req     Request
	op      Op
	path    team.Path
	began   uint64 // its number in the journal
	hash    string
	checked bool
	since   time.Time // when it began to wait for a peer; zero if it does not
}

// running is an edit that may run.
type running struct {
	op     Op
	path   team.Path
	told   bool   // others know of it; not if it began while nobody was there
	began  uint64 // its number in the journal, or where that ended
	hash   string // before
	unread bool   // it goes over a change that the session does not know
	doubt  bool   // its tool failed, or its end was not seen: what changed may be another's doing
	note   string
}

// maxWait is how long all edits of one model response wait for peers.
const maxWait = 2 * time.Second

func (e *edits) init() {
	e.marks, e.blocks, e.copies = make(map[string][]mark), make(map[string]block), make(map[string]bool)
	e.reads, e.pending, e.running = make(map[string]reading), make(map[string]*verdict), make(map[string]running)
	e.calls = make(map[string]bool)
}

// about answers whether a tool may run.
func (a *Agent) about(ev ToolAbout, now time.Time) []Effect {
	allow := []Effect{Reply{ev.Req, Verdict{}}}
	if ev.Op == "" || !a.inTeam() || a.crew.callsign == "" {
		return allow
	}
	a.edits.calls[ev.CallID] = true
	if ev.Op == Reads {
		a.edits.reads[ev.CallID] = reading{a.crew.team.Seq(), ev.Hash}
		return allow
	}
	if a.alone() && len(a.others(ev.Path)) == 0 && len(a.crew.team.Copies(ev.Path)) == 0 {
		a.edits.running[ev.CallID] = running{op: ev.Op, path: ev.Path, began: a.crew.team.Seq(), hash: ev.Hash}
		return allow
	}
	delete(a.edits.running, ev.CallID) // asked again, since a helper died over it
	a.edits.pending[ev.CallID] = &verdict{req: ev.Req, op: ev.Op, path: ev.Path}
	begun := team.Begun{ID: ev.CallID, Path: ev.Path, Whole: ev.Op == Writes, Hash: ev.Hash}
	return []Effect{Append{Entries: []exchange.Entry{a.entry(team.EditBegun, begun)}, Quiet: true}, Check{ev.CallID, ev.Path}}
}

// others lists the edits of other sessions on a file.
func (a *Agent) others(p team.Path) (out []team.Edit) {
	for _, e := range a.crew.team.Edits(p) {
		if e.Session == a.session.Key.ID {
			continue
		}
		if m, taken := a.crew.team.ByCallsign(e.Callsign); taken && m.Session != e.Session {
			e.Callsign = "an earlier " + e.Callsign // it left, and maybe it is our own word now
		}
		out = append(out, e)
	}
	return out
}

// checked takes note of what is on disk now that everybody knows of the edit.
func (a *Agent) checked(ev Checked, now time.Time) []Effect {
	p := a.edits.pending[ev.CallID]
	if p == nil {
		return nil
	}
	p.hash, p.checked = ev.Hash, true
	for _, o := range a.crew.team.OpenEdits(a.session.Key.ID) {
		if o.ID == ev.CallID {
			p.began = o.Seq
		}
	}
	if o, held := a.crew.team.Before(a.session.Key.ID, ev.CallID); held && a.session.Guard.Waits() {
		left := maxWait - a.edits.waited
		if !p.since.IsZero() {
			left -= now.Sub(p.since)
		}
		if left > 0 {
			if p.since.IsZero() {
				p.since = now
			}
			return []Effect{Hold{ev.CallID, left}, Alarm{left}}
		}
		return a.judge(ev.CallID, p, &o, now)
	}
	if o, circle := a.crew.team.Circle(a.session.Key.ID, ev.CallID); circle && a.session.Guard.Waits() {
		return a.judge(ev.CallID, p, &o, now)
	}
	return a.judge(ev.CallID, p, nil, now)
}

// reconsider looks again at the edits that wait for a peer.
func (a *Agent) reconsider(now time.Time) []Effect {
	var out []Effect
	for _, call := range slices.Sorted(maps.Keys(a.edits.pending)) {
		p := a.edits.pending[call]
		if p.since.IsZero() {
			continue
		}
		if _, held := a.crew.team.Before(a.session.Key.ID, call); !held || now.Sub(p.since)+a.edits.waited >= maxWait {
			out = append(out, Check{call, p.path})
		}
	}
	return out
}

// judge gives the verdict on an edit.
func (a *Agent) judge(call string, p *verdict, ahead *team.Open, now time.Time) []Effect {
	delete(a.edits.pending, call)
	if !p.since.IsZero() {
		a.edits.waited += now.Sub(p.since)
	}
	at := a.attempt(p.op, p.path, p.hash, now)
	var change uint64 // that blocks, if anything does
	if ahead != nil {
		m, _ := a.crew.team.Member(ahead.Session)
		at.Ahead, at.AheadBy, change = ahead, m.Callsign, ahead.Seq
	}
	if e := guard.Unread(at.Mark, at.Others, p.hash); e != nil {
		change = e.Seq
	}
	if b := a.edits.blocks[p.path.File]; b.Change == change {
		at.Blocked = b.Times
	}
	v := guard.Judge(at)
	if v.Block {
		a.edits.block(p.path, block{change, at.Blocked + 1})
		return append(a.failed(call, p.path), Reply{p.req, Verdict{Block: true, Reason: v.Text}})
	}
	if v.Copies {
		for _, e := range at.Copies {
			a.edits.tell(told(e))
		}
	}
	a.edits.running[call] = running{op: p.op, path: p.path, told: true, began: p.began, hash: p.hash, unread: v.Unread != nil, note: v.Text}
	return []Effect{Reply{p.req, Verdict{}}}
}

// attempt is an edit of a file with some content, for the guard.
func (a *Agent) attempt(op Op, p team.Path, hash string, now time.Time) guard.Attempt {
	at := guard.Attempt{
		Mode: a.session.Guard, Whole: op == Writes, Name: a.says(p), Hash: hash,
		Others: a.others(p), Copies: a.untold(p), Now: now,
	}
	if m, ok := a.edits.known(p); ok {
		at.Mark = &m.Mark
	}
	return at
}

// untold lists the edits of peers on copies of a file in other checkouts that
// this session was not told of. Once per peer and file is enough.
func (a *Agent) untold(p team.Path) []team.Edit {
	return slices.DeleteFunc(a.crew.team.Copies(p), func(e team.Edit) bool {
		return e.Session == a.session.Key.ID || a.edits.copies[told(e)]
	})
}

func told(e team.Edit) string { return e.Session + " " + e.Path.Rel }

// done takes note of what a tool did.
func (a *Agent) done(ev ToolDone, now time.Time) []Effect {
	delete(a.edits.calls, ev.CallID)
	if ev.Op == "" || !a.inTeam() || a.crew.callsign == "" {
		return []Effect{Reply{ev.Req, Note{}}}
	}
	if ev.Op == Reads {
		r, begun := a.edits.reads[ev.CallID]
		delete(a.edits.reads, ev.CallID)
		// A file that changed meanwhile was read half before, half after.
		if begun && !ev.Failed && r.hash == ev.File.Hash && r.hash != "" {
			a.learn(ev.Path, ev.CallID, guard.Mark{Seq: r.seq, Hash: r.hash}, now)
		}
		return []Effect{Reply{ev.Req, Note{}}}
	}
	r, begun := a.edits.running[ev.CallID]
	if !begun { // alone when it began, or its verdict came too late
		r = running{op: ev.Op, path: ev.Path, began: a.crew.team.Seq(), unread: a.unread(ev.Path, ev.File.Hash)}
		if ev.Failed {
			return []Effect{Reply{ev.Req, Note{}}}
		}
	}
	r.doubt = ev.Failed
	var out []Effect
	if begun && r.path.File != ev.Path.File {
		// Another extension sent the tool elsewhere after it was asked about.
		out = append(out, Inspect{ev.CallID, a.session.Key.ID, r.path})
		begun, r = false, running{op: ev.Op, path: ev.Path, began: a.crew.team.Seq(), unread: a.unread(ev.Path, ev.File.Hash), note: r.note}
		if ev.Failed {
			return append(out, Reply{ev.Req, Note{}})
		}
	}
	closing, note := a.closeEdit(ev.CallID, r, begun, ev.File, now)
	return append(append(out, closing...), Reply{ev.Req, Note{note}})
}

// unread reports whether another session changed a file, and this one does not
// know that.
func (a *Agent) unread(p team.Path, hash string) bool {
	var known *guard.Mark
	if m, ok := a.edits.known(p); ok {
		known = &m.Mark
	}
	return guard.Unread(known, a.others(p), hash) != nil
}

// inspected closes an edit whose end was not heard.
func (a *Agent) inspected(ev Inspected, now time.Time) []Effect {
	if ev.Session == a.session.Key.ID {
		if r, ok := a.edits.running[ev.CallID]; ok {
			r.doubt = true
			out, _ := a.closeEdit(ev.CallID, r, true, ev.File, now)
			return out
		}
		if p := a.edits.pending[ev.CallID]; p != nil {
			delete(a.edits.pending, ev.CallID)
			return append(a.failed(ev.CallID, p.path), Reply{p.req, Verdict{}})
		}
	}
	for _, o := range a.crew.team.OpenEdits(ev.Session) {
		if o.ID != ev.CallID {
			continue
		}
		theirs := slices.ContainsFunc(a.crew.team.Edits(o.Path), func(e team.Edit) bool {
			return e.Session != ev.Session && e.Seq > o.Seq && e.Hash == ev.File.Hash
		})
		if ev.File.Hash == o.Hash || theirs {
			return []Effect{Append{Entries: []exchange.Entry{a.entry(team.EditFailed, team.Failed{ID: o.ID, Session: ev.Session})}}}
		}
		done := team.Done{ID: o.ID, Session: ev.Session, Path: o.Path, Hash: ev.File.Hash, Uncertain: true}
		return []Effect{Append{Entries: []exchange.Entry{a.entry(team.EditDone, done)}}}
	}
	return nil
}

// closeEdit writes down how an edit ended, and returns what its model must know.
func (a *Agent) closeEdit(call string, r running, begun bool, f File, now time.Time) ([]Effect, string) {
	if begun {
		delete(a.edits.running, call)
	}
	crossed := guard.Crossed(r.began, a.others(r.path))
	unchanged := f.Hash == r.hash && (crossed == nil || r.doubt) // not when it was changed back
	theirs := crossed != nil && r.doubt && f.Hash == crossed.Hash
	if begun && (unchanged || theirs) {
		if !r.told {
			return nil, r.note
		}
		return a.failed(call, r.path), r.note
	}
	a.edits.land(r.path)
	note := r.note
	if crossed != nil && a.session.Guard != guard.Off {
		note = guard.CrossedNote(r.op == Writes, a.says(r.path), *crossed)
	}
	// What another put in between, or may have, is not known.
	if crossed == nil && !r.doubt && (r.op == Writes || !r.unread) {
		if _, known := a.edits.known(r.path); known || r.op == Writes {
			a.learn(r.path, call, guard.Mark{Seq: r.began, Hash: f.Hash}, now)
		}
	}
	done := team.Done{
		ID: call, Path: r.path, Hash: f.Hash, Edits: f.Change.Edits, First: f.Change.First, Lines: f.Change.Lines, Created: f.Created,
		Uncertain: r.doubt,
	}
	if !r.told && a.alone() && !a.crew.team.Met(a.session.Key.ID) {
		done.Made = now.UTC()
		a.edits.keepAlone(done)
		return nil, note
	}
	return []Effect{Append{Entries: []exchange.Entry{a.entry(team.EditDone, done)}}}, note
}

// failed closes an edit of ours that changed nothing: that is news only to
// those who wait for it.
func (a *Agent) failed(call string, p team.Path) []Effect {
	return a.release([]exchange.Entry{a.entry(team.EditFailed, team.Failed{ID: call})}, p)
}

// release writes down that nobody has to wait for edits of ours any more. Who
// waits shows once the journal has been read again.
func (a *Agent) release(entries []exchange.Entry, files ...team.Path) []Effect {
	return []Effect{Append{Entries: entries, Quiet: true}, Next{released{files}}}
}

// released follows an entry that lets others go on at some files.
type released struct{ files []team.Path }

func (released) isEvent() {}

// ringEditors rings the other sessions that have begun to change some files.
func (a *Agent) ringEditors(files []team.Path) []Effect {
	var who []string
	for _, p := range files {
		for _, o := range a.crew.team.Opened(p) {
			if o.Session != a.session.Key.ID && !slices.Contains(who, o.Session) {
				who = append(who, o.Session)
			}
		}
	}
	if len(who) == 0 {
		return nil
	}
	return []Effect{Ring{who}}
}

// ended closes an edit whose tool ended without a word to us: another
// extension blocked it, or it was stopped.
func (a *Agent) ended(call string) []Effect {
	delete(a.edits.calls, call)
	delete(a.edits.reads, call)
	me := a.session.Key.ID
	if r, ok := a.edits.running[call]; ok {
		return []Effect{Inspect{call, me, r.path}}
	}
	if p := a.edits.pending[call]; p != nil {
		return []Effect{Inspect{call, me, p.path}}
	}
	return nil
}

// tellAlone writes down what was made alone, once somebody is there.
func (a *Agent) tellAlone(now time.Time) []Effect {
	if len(a.edits.alone) == 0 || a.alone() && !a.crew.leaving {
		return nil
	}
	var out []exchange.Entry
	for _, d := range a.edits.alone {
		if now.Sub(d.Made) < team.KeepEdits {
			out = append(out, a.entry(team.EditDone, d))
		}
	}
	a.edits.alone, a.edits.changed = nil, true
	return []Effect{Append{Entries: out}}
}

// resume takes up, or closes, the edits that an earlier process left open.
func (a *Agent) resume(now time.Time) []Effect {
	var out []Effect
	me := a.session.Key.ID
	for _, o := range a.crew.team.OpenEdits(me) {
		if !a.edits.calls[o.ID] {
			out = append(out, Inspect{o.ID, me, o.Path})
			continue
		}
		op := Edits
		if o.Whole {
			op = Writes
		}
		// The verdict was given by another process, and its note is lost: what
		// it let through is noted again. Whether it went over something unread
		// is no longer known: its mark stays where it is.
		at := a.attempt(op, o.Path, o.Hash, now)
		at.Blocked = guard.MaxBlocks
		a.edits.running[o.ID] = running{op: op, path: o.Path, told: true, began: o.Seq, hash: o.Hash, unread: true, note: guard.Judge(at).Text}
	}
	return out
}

// park tells the others not to wait for edits that wait for their human.
func (a *Agent) park() []Effect {
	var out []exchange.Entry
	var files []team.Path
	for _, o := range a.crew.team.OpenEdits(a.session.Key.ID) {
		if !o.Parked {
			out = append(out, a.entry(team.EditParked, team.Failed{ID: o.ID}))
			files = append(files, o.Path)
		}
	}
	if len(out) == 0 || !a.inTeam() {
		return nil
	}
	return a.release(out, files...)
}
