package team_test

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"switchboard/internal/team"
)

var t0 = time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)

// journal writes entries one after another.
type journal struct{ entries []team.Entry }

func (j *journal) add(session, incarnation string, kind team.Kind, body any) {
	n := uint64(len(j.entries) + 1)
	j.entries = append(j.entries, team.Entry{
		Seq: n, Wall: t0.Add(time.Duration(n) * time.Second), Session: session, Incarnation: incarnation, Kind: kind, Body: team.Encode(body),
	})
}

func (j *journal) join(session, want string) {
	j.add(session, session+"-1", team.Joined, team.Joining{Callsign: want})
}

func (j *journal) leave(session string) {
	j.add(session, session+"-1", team.Left, team.Leaving{Session: session, Incarnation: session + "-1"})
}

func (j *journal) fold() *team.Team {
	t := &team.Team{}
	for _, e := range j.entries {
		t.Apply(e)
	}
	return t
}

func callsigns(t *team.Team) (out []string) {
	for _, m := range t.Members() {
		out = append(out, m.Session+"="+m.Callsign)
	}
	return out
}

// spec: telecom, Callsigns and presence; readings, Telecom
func TestCallsigns(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(j *journal)
		want []string
	}{
		{"the first free words", func(j *journal) { j.join("a", ""); j.join("b", "") }, []string{"a=alpha", "b=bravo"}},
		{"a departed session's word is free at once", func(j *journal) { j.join("a", ""); j.join("b", ""); j.leave("a"); j.join("c", "") }, []string{"c=alpha", "b=bravo"}},
		{"a resumed session keeps its own", func(j *journal) { j.join("a", ""); j.join("b", ""); j.leave("a"); j.leave("b"); j.join("b", "bravo") }, []string{"b=bravo"}},
		{"unless a live one took it", func(j *journal) { j.join("a", ""); j.leave("a"); j.join("c", ""); j.join("a", "alpha") }, []string{"c=alpha", "a=bravo"}},
		{"a fixed one", func(j *journal) { j.join("a", "ops") }, []string{"a=ops"}},
		{"in another spelling", func(j *journal) { j.join("a", " Ops ") }, []string{"a=ops"}},
		{"that can't be one", func(j *journal) { j.join("a", "two words"); j.join("b", "-x"); j.join("c", "\x1b[31m") }, []string{"a=alpha", "b=bravo", "c=charlie"}},
		{"a rename", func(j *journal) {
			j.join("a", "")
			j.add("a", "a-1", team.Renamed, team.Renaming{Callsign: "ops"})
			j.join("b", "")
		}, []string{"b=alpha", "a=ops"}},
		{"a rename to one that is taken", func(j *journal) {
			j.join("a", "")
			j.join("b", "")
			j.add("b", "b-1", team.Renamed, team.Renaming{Callsign: "alpha"})
		}, []string{"a=alpha", "b=bravo"}},
		{"a rename by an earlier stay", func(j *journal) {
			j.join("a", "")
			j.add("a", "a-0", team.Renamed, team.Renaming{Callsign: "ops"})
		}, []string{"a=alpha"}},
		{"an end of an earlier stay", func(j *journal) {
			j.join("a", "")
			j.add("b", "b-1", team.Left, team.Leaving{Session: "a", Incarnation: "a-0"})
		}, []string{"a=alpha"}},
		{"a stay whose end was never written", func(j *journal) {
			j.join("a", "")
			j.join("b", "")
			j.add("a", "a-2", team.Joined, team.Joining{Callsign: "alpha"})
		}, []string{"a=alpha", "b=bravo"}},
	} {
		var j journal
		c.do(&j)
		if got := callsigns(j.fold()); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestAfterTheAlphabet(t *testing.T) {
	var j journal
	for i := range 28 {
		j.join(fmt.Sprint("s", i), "")
	}
	j.leave("s25")
	j.join("again", "")
	f := j.fold()
	for session, want := range map[string]string{"again": "zulu", "s26": "alpha2", "s27": "bravo2", "s0": "alpha"} {
		if m, _ := f.Member(session); m.Callsign != want {
			t.Errorf("%s has %q, want %q", session, m.Callsign, want)
		}
	}
	if ms := f.Members(); ms[25].Callsign != "zulu" || ms[26].Callsign != "alpha2" {
		t.Errorf("in order: %v", callsigns(f))
	}
}

func TestWanted(t *testing.T) {
	var j journal
	j.join("a", "ops")
	j.join("b", "ops")
	if m, _ := j.fold().Member("b"); m.Callsign != "alpha" || m.Wanted != "ops" {
		t.Errorf("b = %+v", m)
	}
	if got := j.fold().Past("b"); got != "" {
		t.Errorf("b was %q before", got)
	}
	j.leave("b")
	if got := j.fold().Past("b"); got != "alpha" {
		t.Errorf("b was %q before", got)
	}
}

// spec: telecom, Callsigns and presence
func TestFromPrompt(t *testing.T) {
	for _, c := range []struct {
		prompt, task string
		set          bool
		want         string
	}{
		{"refactor the auth module\nand more", "", false, "refactor the auth module"},
		{"\n  fix it\n", "old task", false, "fix it"},
		{"continue", "", false, ""},
		{"continue", "old task", false, "old task"},
		{"", "old task", false, "old task"},
		{"now do the other one", "set by its model", true, "set by its model"},
		{"one two three four five six seven eight nine ten", "set by its model", true, "one two three four five six seven eight nine ten"},
		{"one two three four five six seven eight nine", "set by its model", true, "set by its model"},
		{"you tested?", "old task", false, "old task"},
		{"you tested?", "", false, "you tested?"},
		{"why does the login page of the shop fail?", "old task", false, "why does the login page of the shop fail?"},
		{"go on\x1b[31m now", "", false, "go on now"},
	} {
		got, changed := team.FromPrompt(c.prompt, c.task, c.set)
		if got != c.want || changed != (c.want != c.task) {
			t.Errorf("FromPrompt(%q, %q, %v) = %q, %v, want %q", c.prompt, c.task, c.set, got, changed, c.want)
		}
	}
}

func TestTasks(t *testing.T) {
	var j journal
	j.join("a", "")
	j.add("a", "a-1", team.Tasked, team.Tasking{Text: "the\nmigration", Set: true})
	j.add("a", "a-0", team.Tasked, team.Tasking{Text: "a stay before"})
	j.add("b", "b-1", team.Tasked, team.Tasking{Text: "nobody"})
	m, _ := j.fold().Member("a")
	if m.Task != "the migration" || !m.TaskSet || !m.TaskSince.Equal(t0.Add(2*time.Second)) {
		t.Errorf("a = %+v", m)
	}
}

// spec: telecom, Team log
func TestLog(t *testing.T) {
	var j journal
	j.join("a", "")
	j.join("b", "")
	j.add("a", "a-1", team.Tasked, team.Tasking{Text: "one"})
	j.add("a", "a-1", team.Renamed, team.Renaming{Callsign: "ops"})
	j.leave("a")
	f := j.fold()
	var got []string
	for _, l := range f.Log(t0) {
		got = append(got, fmt.Sprintf("%s %s %s", l.Callsign, l.What, l.Text))
	}
	want := []string{"alpha joined ", "bravo joined ", "alpha task one", "ops renamed alpha", "ops left "}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("log = %q, want %q", got, want)
	}
	late := f.Log(t0.Add(team.KeepLog + time.Minute))
	if len(late) != 1 || late[0].Session != "b" {
		t.Errorf("a day later: %v", late)
	}
}

// Whatever was written, callsigns are unique, every reader comes to the same
// answer however it reads, and reading twice changes nothing.
func TestFoldProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var j journal
		word := rapid.SampledFrom([]string{"", "alpha", "bravo", "ops", "alpha2", "BAD NAME", "x"})
		session := rapid.SampledFrom([]string{"a", "b", "c", "d", ""})
		stay := rapid.SampledFrom([]string{"1", "2", ""})
		for range rapid.IntRange(0, 40).Draw(t, "entries") {
			s, i := session.Draw(t, "session"), stay.Draw(t, "stay")
			switch rapid.IntRange(0, 4).Draw(t, "kind") {
			case 0:
				j.add(s, i, team.Joined, team.Joining{Callsign: word.Draw(t, "word")})
			case 1:
				j.add(session.Draw(t, "by"), i, team.Left, team.Leaving{Session: s, Incarnation: i})
			case 2:
				j.add(s, i, team.Renamed, team.Renaming{Callsign: word.Draw(t, "word")})
			case 3:
				j.add(s, i, team.Tasked, team.Tasking{Text: word.Draw(t, "word")})
			case 4:
				j.add(s, i, "unheard-of", []int{1})
				j.entries[len(j.entries)-1].Body = []byte("{")
			}
		}
		whole := j.fold()
		seen := make(map[string]bool)
		for _, m := range whole.Members() {
			if m.Callsign == "" || seen[m.Callsign] {
				t.Fatalf("callsigns %v", callsigns(whole))
			}
			seen[m.Callsign] = true
		}
		halting := &team.Team{}
		for i, e := range j.entries {
			halting.Apply(e)
			for _, again := range j.entries[rapid.IntRange(0, i).Draw(t, "from") : i+1] {
				halting.Apply(again)
			}
		}
		if !reflect.DeepEqual(whole, halting) {
			t.Fatalf("%+v\n%+v", whole, halting)
		}
	})
}

func FuzzApply(f *testing.F) {
	f.Add("joined", `{"callsign":"ops"}`)
	f.Add("left", `{"session":"a","incarnation":"i"}`)
	f.Add("task", `{"text":"\u001b[2J"}`)
	f.Add("renamed", `[]`)
	f.Fuzz(func(t *testing.T, kind, body string) {
		var x team.Team
		x.Apply(team.Entry{Seq: 1, Session: "a", Incarnation: "i", Kind: team.Joined, Body: []byte(`{}`)})
		x.Apply(team.Entry{Seq: 2, Session: "a", Incarnation: "i", Kind: team.Kind(kind), Body: []byte(body)})
		for _, m := range x.Members() {
			if _, ok := team.Callsign(m.Callsign); !ok {
				t.Errorf("callsign %q", m.Callsign)
			}
			if len(m.Task) > team.MaxTask {
				t.Errorf("task of %d bytes", len(m.Task))
			}
		}
	})
}
