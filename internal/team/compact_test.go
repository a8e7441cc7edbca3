package team_test

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"switchboard/internal/team"
)

// picture is all that a fold tells.
func picture(t *team.Team, now time.Time) string {
	s := fmt.Sprintf("%+v\n", t.Members())
	for _, f := range []string{"/r/x", "/r/y", "/w/x"} {
		p := path(f)
		s += fmt.Sprintf("%s %+v %+v\n", f, t.Edits(p), t.Copies(p))
	}
	for _, m := range t.Members() {
		s += fmt.Sprintf("%+v\n", t.OpenEdits(m.Session))
	}
	return s + fmt.Sprintf("%+v", t.Log(now))
}

func path(file string) team.Path { return team.Path{File: file, Root: file[:2], Rel: file[3:]} }

// A journal that was made shorter, at any point and more than once, folds to the
// same answer, also for one who reads on from where it was.
func TestCompactProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var j journal
		session := rapid.SampledFrom([]string{"a", "b", "c"})
		stay := rapid.SampledFrom([]string{"1", "2"})
		word := rapid.SampledFrom([]string{"", "alpha", "ops"})
		id := rapid.SampledFrom([]string{"c1", "c2", "c3"})
		file := rapid.SampledFrom([]string{"/r/x", "/r/y", "/w/x"})
		var whole, halting team.Team
		var kept []team.Entry
		for range rapid.IntRange(0, 40).Draw(t, "entries") {
			s, i := session.Draw(t, "session"), stay.Draw(t, "stay")
			switch rapid.IntRange(0, 7).Draw(t, "kind") {
			case 0, 1:
				j.add(s, i, team.Joined, team.Joining{Callsign: word.Draw(t, "word")})
			case 2:
				j.add(session.Draw(t, "by"), i, team.Left, team.Leaving{Session: s, Incarnation: i})
			case 3:
				j.add(s, i, team.Renamed, team.Renaming{Callsign: word.Draw(t, "word")})
			case 4:
				j.add(s, i, team.Tasked, team.Tasking{Text: word.Draw(t, "task"), Set: rapid.Bool().Draw(t, "set")})
			case 5:
				j.add(s, i, team.EditBegun, team.Begun{ID: id.Draw(t, "id"), Path: path(file.Draw(t, "file"))})
			case 6:
				done := team.Done{ID: id.Draw(t, "id"), Path: path(file.Draw(t, "file")), Hash: "h", Lines: []string{"-a", "+b"}}
				if rapid.Bool().Draw(t, "closed by another") {
					done.Session = session.Draw(t, "whose")
				}
				j.add(s, i, team.EditDone, done)
			case 7:
				j.add(s, i, rapid.SampledFrom([]team.Kind{team.EditFailed, team.EditParked}).Draw(t, "end"), team.Failed{ID: id.Draw(t, "id")})
			}
			e := j.entries[len(j.entries)-1]
			whole.Apply(e)
			halting.Apply(e)
			kept = append(kept, e)
			if rapid.IntRange(0, 9).Draw(t, "shorten") == 0 {
				kept = team.Compact(kept, e.Wall)
				for _, e := range kept { // read again from its beginning
					halting.Apply(e)
				}
			}
		}
		now := t0.Add(time.Hour)
		kept = team.Compact(kept, now)
		var short team.Team
		for _, e := range kept {
			short.Apply(e)
		}
		for name, got := range map[string]*team.Team{"the short journal": &short, "reading on": &halting} {
			if a, b := picture(&whole, now), picture(got, now); a != b {
				t.Fatalf("%s tells\n%s\nthe whole\n%s", name, b, a)
			}
		}
		if again := team.Compact(kept, now); !reflect.DeepEqual(kept, again) {
			t.Fatalf("shortened again: %d entries of %d", len(again), len(kept))
		}
	})
}

// What is over makes a journal no longer, however much of it there was.
func TestCompactForgets(t *testing.T) {
	var j journal
	j.join("a", "")
	for i := range 500 {
		id := fmt.Sprint("c", i)
		j.add("a", "a-1", team.EditBegun, team.Begun{ID: id, Path: path("/r/x")})
		j.add("a", "a-1", team.EditDone, team.Done{ID: id, Path: path("/r/x"), Hash: id})
		j.join(fmt.Sprint("s", i), "")
		j.leave(fmt.Sprint("s", i))
	}
	late := t0.Add(team.KeepLog + time.Hour)
	if got := team.Compact(j.entries, late); len(got) != 2 {
		t.Errorf("%d entries are left, want a's joining and its last edit", len(got))
	}
}

// A rename that was refused stays so, once who had the word is forgotten.
func TestCompactRefusedRename(t *testing.T) {
	var j journal
	j.join("a", "")                                                   // alpha
	j.join("b", "")                                                   // bravo
	j.add("b", "b-1", team.Renamed, team.Renaming{Callsign: "alpha"}) // refused
	j.leave("a")
	j.join("c", "alpha") // alpha
	var whole, short team.Team
	for _, e := range j.entries {
		whole.Apply(e)
	}
	for _, e := range team.Compact(j.entries, t0.Add(team.KeepLog+time.Hour)) {
		short.Apply(e)
	}
	for _, m := range whole.Members() {
		if o, _ := short.Member(m.Session); o.Callsign != m.Callsign {
			t.Errorf("%s is %s, after shortening %s", m.Session, m.Callsign, o.Callsign)
		}
	}
}
