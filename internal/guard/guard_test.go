package guard_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/tiktoken-go/tokenizer"

	"switchboard/internal/guard"
	"switchboard/internal/team"
)

var now = time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)

func change(seq uint64, callsign, hash string) team.Edit {
	return team.Edit{Seq: seq, Session: callsign + "-id", Callsign: callsign, At: now.Add(-5 * time.Second), Done: team.Done{Hash: hash, Path: team.Path{File: "/repo/x", Root: "/repo", Rel: "x"}}}
}

// The guard's table (spec: telecom, The edit guard). The rows about claims and
// subagents come with them.
func TestTable(t *testing.T) {
	read := func(seq uint64, hash string) *guard.Mark { return &guard.Mark{Seq: seq, Hash: hash} }
	peers := []team.Edit{change(5, "alpha", "h5")}
	copies := []team.Edit{change(4, "charlie", "h4")}
	ahead := &team.Open{Begun: team.Begun{ID: "c1"}, Session: "alpha-id"}
	const pass, note, block = "pass", "note", "block"
	for _, c := range []struct {
		name                  string
		whole                 bool
		a                     guard.Attempt
		standard, strict, off string
		text                  string // part of what is said in standard, or in strict where standard says nothing
	}{
		{"nobody changed it", true, guard.Attempt{Mark: read(1, "h1"), Hash: "h1"}, pass, pass, pass, ""},
		{"never read, nobody changed it", true, guard.Attempt{Hash: "h1"}, pass, pass, pass, ""},
		{"write over a peer's unread change", true, guard.Attempt{Mark: read(1, "h1"), Hash: "h5", Others: peers}, block, block, pass, "alpha changed x 5s ago, since you read it. Call read on x"},
		{"write to a file never read", true, guard.Attempt{Hash: "h5", Others: peers}, block, block, pass, "and you haven't read it"},
		{"edit over a peer's unread change", false, guard.Attempt{Mark: read(1, "h1"), Hash: "h5", Others: peers}, note, block, pass, "alpha changed x 5s ago and you haven't read that"},
		// The edit did not move the mark, and changed the content.
		{"write after an edit over an unread change", true, guard.Attempt{Mark: read(1, "h1"), Hash: "h9", Others: peers}, block, block, pass, "alpha changed x"},
		{"read since", true, guard.Attempt{Mark: read(5, "h5"), Hash: "h5", Others: peers}, pass, pass, pass, ""},
		{"read since, and changed by a program since", true, guard.Attempt{Mark: read(6, "h5"), Hash: "h7", Others: peers}, pass, pass, pass, ""},
		{"a touch, the same bytes again, a change undone", true, guard.Attempt{Mark: read(1, "h1"), Hash: "h1", Others: peers}, pass, pass, pass, ""},
		{"the file is gone", true, guard.Attempt{Mark: read(1, "h1"), Hash: "", Others: peers}, pass, pass, pass, ""},
		{"the second attempt", true, guard.Attempt{Mark: read(1, "h1"), Hash: "h5", Others: peers, Blocked: 1}, block, block, pass, "Call read"},
		{"the third attempt", true, guard.Attempt{Mark: read(1, "h1"), Hash: "h5", Others: peers, Blocked: 2}, note, note, pass, "went over alpha's change of x"},
		{"a third edit in strict", false, guard.Attempt{Mark: read(1, "h1"), Hash: "h5", Others: peers, Blocked: 2}, note, note, pass, "alpha changed x"},
		{"write while a peer is at it", true, guard.Attempt{Mark: read(1, "h1"), Hash: "h1", Ahead: ahead, AheadBy: "alpha"}, block, block, pass, "alpha is changing x at this moment"},
		{"edit while a peer is at it", false, guard.Attempt{Mark: read(1, "h1"), Hash: "h1", Ahead: ahead, AheadBy: "alpha"}, note, note, pass, "alpha was changing x at the same moment"},
		{"a copy in another worktree was changed", true, guard.Attempt{Mark: read(1, "h1"), Hash: "h1", Copies: copies}, note, note, pass, "charlie changed its copy of x in /repo"},
	} {
		for mode, want := range map[guard.Mode]string{guard.Standard: c.standard, guard.Strict: c.strict, guard.Off: c.off} {
			a := c.a
			a.Mode, a.Whole, a.Name, a.Now = mode, c.whole, "x", now
			v := guard.Judge(a)
			got := pass
			switch {
			case v.Block:
				got = block
			case v.Text != "":
				got = note
			}
			if got != want {
				t.Errorf("%s, %s: %s (%q), want %s", c.name, mode, got, v.Text, want)
			}
			if mode == guard.Standard && !strings.Contains(v.Text, c.text) {
				t.Errorf("%s: %q lacks %q", c.name, v.Text, c.text)
			}
			if got == note && !strings.HasPrefix(v.Text, "⚠ ") {
				t.Errorf("%s: the note is %q", c.name, v.Text)
			}
		}
	}
}

func TestUnreadIsTheNewest(t *testing.T) {
	others := []team.Edit{change(7, "bravo", "h7"), change(5, "alpha", "h5")}
	if e := guard.Unread(&guard.Mark{Seq: 4, Hash: "h4"}, others, "h7"); e == nil || e.Callsign != "bravo" {
		t.Errorf("unread = %+v", e)
	}
	if e := guard.Unread(&guard.Mark{Seq: 6, Hash: "h6"}, others, "h7"); e == nil || e.Seq != 7 {
		t.Errorf("unread = %+v", e)
	}
	if e := guard.Unread(&guard.Mark{Seq: 7, Hash: "h6"}, others, "h7"); e != nil {
		t.Errorf("unread = %+v", e)
	}
}

func TestDiff(t *testing.T) {
	for _, c := range []struct {
		name, before, after string
		want                guard.Change
	}{
		{"one line", "a\nb\nc\n", "a\nB\nc\n", guard.Change{Edits: 1, First: 2, Lines: []string{"-b", "+B"}}},
		{"two places", "a\nb\nc\nd\n", "A\nb\nc\nD\n", guard.Change{Edits: 2, First: 1, Lines: []string{"-a", "+A", "-d", "+D"}}},
		{"created", "", "a\nb\n", guard.Change{Edits: 1, First: 1, Lines: []string{"+a", "+b"}}},
		{"no end of line", "a", "a\nb", guard.Change{Edits: 1, First: 1, Lines: []string{"-a", "+a", "+b"}}},
		{"CRLF", "a\r\nb\r\n", "a\r\nc\r\n", guard.Change{Edits: 1, First: 2, Lines: []string{"-b", "+c"}}},
		{"binary", "a\x00b", "a\x00c", guard.Change{Edits: 1}},
	} {
		if got := guard.Diff([]byte(c.before), []byte(c.after)); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
	long := guard.Diff(nil, []byte(strings.Repeat("x\n", 1000)))
	if len(long.Lines) > 10 {
		t.Errorf("%d lines are told", len(long.Lines))
	}
}

func TestParseMode(t *testing.T) {
	for in, want := range map[string]guard.Mode{"": guard.Standard, "strict": guard.Strict, "off": guard.Off, "standard": guard.Standard} {
		if got, ok := guard.ParseMode(in); got != want || !ok {
			t.Errorf("ParseMode(%q) = %v, %v", in, got, ok)
		}
	}
	if got, ok := guard.ParseMode("Strict!"); got != guard.Standard || ok {
		t.Errorf("an unknown mode is %v, %v", got, ok)
	}
}

// Every text of the guard is short, names the file, and says what to call.
func TestTexts(t *testing.T) {
	codec, err := tokenizer.Get(tokenizer.O200kBase)
	if err != nil {
		t.Fatal(err)
	}
	const file, most = "internal/agent/briefing.go", 60
	peer := change(5, "alpha", "h5")
	created := peer
	created.Created = true
	ahead := &team.Open{Begun: team.Begun{ID: "c1"}, Session: "alpha-id"}
	mark := &guard.Mark{Seq: 1, Hash: "h1"}
	refused := make(map[string]bool)
	in := func(mode guard.Mode, a guard.Attempt) string {
		a.Mode, a.Name, a.Now = mode, file, now
		v := guard.Judge(a)
		refused[v.Text] = v.Block
		return v.Text
	}
	judge := func(a guard.Attempt) string { return in(guard.Standard, a) }
	strict := func(a guard.Attempt) string { return in(guard.Strict, a) }
	for what, text := range map[string]string{
		"a write over a change":                judge(guard.Attempt{Whole: true, Mark: mark, Hash: "h5", Others: []team.Edit{peer}}),
		"a write over a new file":              judge(guard.Attempt{Whole: true, Hash: "h5", Others: []team.Edit{created}}),
		"a write over a change never read":     judge(guard.Attempt{Whole: true, Hash: "h5", Others: []team.Edit{peer}}),
		"a write over a file made again":       judge(guard.Attempt{Whole: true, Mark: mark, Hash: "h5", Others: []team.Edit{created}}),
		"an edit over a change never read":     judge(guard.Attempt{Hash: "h5", Others: []team.Edit{peer}}),
		"an edit over a new file":              judge(guard.Attempt{Hash: "h5", Others: []team.Edit{created}}),
		"a strict edit":                        strict(guard.Attempt{Mark: mark, Hash: "h5", Others: []team.Edit{peer}}),
		"a strict edit of what was never read": strict(guard.Attempt{Hash: "h5", Others: []team.Edit{peer}}),
		"a strict edit of a new file":          strict(guard.Attempt{Hash: "h5", Others: []team.Edit{created}}),
		"a strict edit, the third attempt":     strict(guard.Attempt{Mark: mark, Hash: "h5", Others: []team.Edit{peer}, Blocked: guard.MaxBlocks}),
		"the third attempt":                    judge(guard.Attempt{Whole: true, Mark: mark, Hash: "h5", Others: []team.Edit{peer}, Blocked: guard.MaxBlocks}),
		"an edit over a change":                judge(guard.Attempt{Mark: mark, Hash: "h5", Others: []team.Edit{peer}}),
		"a write while a peer is at it":        judge(guard.Attempt{Whole: true, Mark: mark, Hash: "h1", Ahead: ahead, AheadBy: "alpha"}),
		"an edit while a peer is at it":        judge(guard.Attempt{Mark: mark, Hash: "h1", Ahead: ahead, AheadBy: "alpha"}),
		"a copy in another checkout":           judge(guard.Attempt{Whole: true, Mark: mark, Hash: "h1", Copies: []team.Edit{peer}}),
		"a write that crossed another change":  guard.CrossedNote(true, file, peer),
		"an edit that crossed another change":  guard.CrossedNote(false, file, peer),
	} {
		n, err := codec.Count(text)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%d tokens: %s: %s", n, what, text)
		if n > most {
			t.Errorf("%s: %d tokens, want %d at most: %s", what, n, most, text)
		}
		if refused[text] == strings.HasPrefix(text, "⚠ ") {
			t.Errorf("%s: refused: %v, in the words of the other: %s", what, refused[text], text)
		}
		if !strings.Contains(text, file) || !strings.Contains(text, "read on ") && !strings.Contains(text, "with read") && what != "a copy in another checkout" {
			t.Errorf("%s: the text names no file, or no call: %s", what, text)
		}
		if refused[text] && !strings.Contains(text, "Call read on "+file+", then ") && !(strings.Contains(text, "changing "+file+" ") && strings.Contains(text, "Use read on it in ")) {
			t.Errorf("%s: the refusal does not say what to call next: %s", what, text)
		}
	}
}
