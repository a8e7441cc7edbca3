package team

import (
	"encoding/json"
	"time"
)

// KeepEdits is how long the edits of a session stay that has left: until then a
// session that did not read them is told so.
const KeepEdits = 7 * 24 * time.Hour

// Compact returns what a journal must still hold, so that its fold stays the
// same: what it leaves out are edits that are over or were made again, and
// sessions that left before the log's time. What an entry decided by the others
// around it is written into it, so that these may go.
func Compact(entries []Entry, now time.Time) []Entry {
	var t Team
	var all []fate
	stays := make(map[string]*stay) // by incarnation
	latest := make(map[string]int)  // done of each author and file, by index
	open := make(map[string][]int)  // begun and parked, by author and id
	drop := func(i int) { all[i].drop = true }
	for i, e := range entries {
		all = append(all, fate{entry: e})
		before, was := t.Member(e.Session)
		t.Apply(e)
		after, is := t.Member(e.Session)
		switch e.Kind {
		case Joined:
			if !is || after.Incarnation != e.Incarnation || was && before.Incarnation == e.Incarnation {
				drop(i) // said twice, or nonsense
				continue
			}
			if was { // its end was never written: what it did before is over
				stays[before.Session+" "+before.Incarnation].left = e.Wall
			}
			s := &stay{}
			stays[after.Session+" "+after.Incarnation] = s
			all[i].stay = s
			all[i].entry.Body = Encode(Joining{Callsign: after.Wanted, Granted: after.Callsign})
		case Renamed, Tasked:
			s := stays[e.Session+" "+e.Incarnation]
			if !is || s == nil || s.left != (time.Time{}) || before == after {
				drop(i)
				continue
			}
			all[i].stay = s
			if e.Kind == Tasked {
				s.tasks = append(s.tasks, i)
				continue
			}
			var b Renaming
			_ = decode(e.Body, &b) // it changed something, so it can be read
			b.Granted = after.Callsign
			all[i].entry.Body = Encode(b)
		case Left:
			var b Leaving
			s := (*stay)(nil)
			if decode(e.Body, &b) {
				s = stays[b.Session+" "+b.Incarnation]
			}
			if s == nil || s.left != (time.Time{}) {
				drop(i)
				continue
			}
			s.left, all[i].stay = e.Wall, s
		case EditBegun, EditParked:
			var b struct{ ID string }
			_ = json.Unmarshal(e.Body, &b)
			key := e.Session + " " + b.ID
			open[key] = append(open[key], i)
		case EditDone, EditFailed:
			var b Done
			if !decode(e.Body, &b) {
				drop(i)
				continue
			}
			author := b.Session
			if author == "" {
				author = e.Session
			}
			for _, o := range open[author+" "+b.ID] {
				drop(o)
			}
			delete(open, author+" "+b.ID)
			if e.Kind == EditFailed || b.Path.File == "" {
				drop(i)
				continue
			}
			for _, made := range t.edits[b.Path.key()] {
				if made.Seq == e.Seq {
					b.By = made.Callsign
				}
			}
			all[i].entry.Body = Encode(b)
			key := author + "\x00" + b.Path.File
			if before, ok := latest[key]; ok {
				drop(before)
			}
			latest[key] = i
			if t.present(author) == nil && now.Sub(e.Wall) > KeepEdits {
				drop(i)
			}
		}
	}
	for _, s := range stays {
		for n, i := range s.tasks {
			if n < len(s.tasks)-1 && now.Sub(entries[i].Wall) > KeepLog {
				drop(i)
			}
		}
	}
	for _, is := range open {
		for _, i := range is {
			if t.author(entries[i]) == nil {
				drop(i)
			}
		}
	}
	var out []Entry
	for _, f := range all {
		if f.drop || f.stay != nil && f.stay.left != (time.Time{}) && now.Sub(f.stay.left) > KeepLog {
			continue
		}
		out = append(out, f.entry)
	}
	return out
}

// fate is what becomes of an entry.
type fate struct {
	entry Entry
	stay  *stay // that it belongs to
	drop  bool
}

// stay is one stay of a session on the roster.
type stay struct {
	tasks []int
	left  time.Time // zero while it lasts
}
