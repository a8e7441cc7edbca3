package dirstore

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"switchboard/internal/exchange"
	"switchboard/internal/filelock"
)

const team = exchange.TeamID("team")

func note(text string) exchange.Entry {
	return exchange.Entry{Kind: "note", Body: []byte(fmt.Sprintf("%q", text))}
}

func appendNotes(t *testing.T, s *Store, texts ...string) []exchange.Entry {
	t.Helper()
	var es []exchange.Entry
	for _, text := range texts {
		es = append(es, note(text))
	}
	out, err := s.Append(team, es...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func wantJournal(t *testing.T, s *Store, want string) {
	t.Helper()
	got, next, err := s.Read(team, exchange.Cursor{})
	if err != nil {
		t.Fatal(err)
	}
	if have := short(got); have != want {
		t.Errorf("journal holds %s, want %s", have, want)
	}
	// A reader that goes on finds nothing that it had.
	if again, _, err := s.Read(team, next); len(again) > 0 || err != nil {
		t.Errorf("Read on = %s, %v; want nothing", short(again), err)
	}
}

// short is numbers and the first letter of what was noted: "1a 2b".
func short(es []exchange.Entry) string {
	var out []string
	for _, e := range es {
		out = append(out, fmt.Sprintf("%d%.1s", e.Seq, strings.Trim(string(e.Body), `"`)))
	}
	return strings.Join(out, " ")
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// What a dying writer left at the end of a journal is not there, and the next
// append takes its place and its numbers.
func TestTornTail(t *testing.T) {
	long := strings.Repeat("x", 100<<10)
	for _, tt := range []struct {
		name string
		tail string // beyond the two entries of a whole journal
	}{
		{"half a line", `{"v":1,"seq":3,"kind":"no`},
		{"a line without its end", `{"v":1,"seq":3,"kind":"note","body":"T"}`},
		{"one byte", `{`},
		{"longer than a block", `{"v":1,"seq":3,"kind":"note","body":"` + long},
		{"zeros, as after a power cut", strings.Repeat("\x00", 5000)},
		{"the first of two", `{"v":1,"seq":3,"last":4,"kind":"note","body":"T"}` + "\n"},
		{"one and a half of two", `{"v":1,"seq":3,"last":4,"kind":"note","body":"T"}` + "\n" + `{"v":1,"seq":4,"kind":"note","bo`},
		{"two of three", `{"v":1,"seq":3,"last":5,"kind":"note","body":"T"}` + "\n" + `{"v":1,"seq":4,"last":5,"kind":"note","body":"T"}` + "\n"},
		{"two long ones of three", `{"v":1,"seq":3,"last":5,"kind":"note","body":"` + long + `"}` + "\n" + `{"v":1,"seq":4,"last":5,"kind":"note","body":"` + long + `"}` + "\n"},
	} {
		for _, known := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, known=%v", tt.name, known), func(t *testing.T) {
				s := newStore(t)
				appendNotes(t, s, "a", "b")
				path := s.journalPath(team)
				whole := readFile(t, path)
				_, middle, err := s.Read(team, exchange.Cursor{})
				if err != nil {
					t.Fatal(err)
				}
				writeFile(t, path, whole+tt.tail)
				writer := s
				if !known {
					writer = open(t, s.root)
				}
				wantJournal(t, s, "1a 2b")
				if got, next, err := s.Read(team, middle); len(got) > 0 || next != middle || err != nil {
					t.Errorf("Read on = %s, %+v, %v; want nothing and %+v", short(got), next, err, middle)
				}
				if out := appendNotes(t, writer, "c", "d"); out[0].Seq != 3 {
					t.Errorf("the next entry has number %d, want 3", out[0].Seq)
				}
				wantJournal(t, s, "1a 2b 3c 4d")
				if got, _, err := s.Read(team, middle); short(got) != "3c 4d" || err != nil {
					t.Errorf("Read on = %s, %v; want 3c 4d", short(got), err)
				}
				if text := readFile(t, path); strings.Contains(text, `"T"`) || strings.Contains(text, "xx") || strings.Contains(text, "\x00") {
					t.Errorf("the torn tail is still there: %.300q", text)
				}
			})
		}
	}
}

// The same, where the journal is rewritten before anybody appends.
func TestRewriteOfTornTail(t *testing.T) {
	s := newStore(t)
	appendNotes(t, s, "a", "b")
	path := s.journalPath(team)
	writeFile(t, path, readFile(t, path)+`{"v":1,"seq":3,"last":4,"kind":"note","body":"T"}`+"\n"+`{"v":1,"se`)
	if err := s.Rewrite(team, func(es []exchange.Entry) []exchange.Entry { return es[1:] }); err != nil {
		t.Fatal(err)
	}
	wantJournal(t, s, "2b")
	appendNotes(t, s, "c")
	wantJournal(t, s, "2b 3c")
}

// A rewrite keeps nobody waiting: what is appended while it thinks comes behind
// what it keeps. It thinks again when another rewrite came first, or when the
// file was cut.
func TestAppendsDuringARewrite(t *testing.T) {
	for _, c := range []struct {
		name  string
		other func(s *Store)
		want  string
		calls int
	}{
		{"appends", func(s *Store) { appendNotes(t, s, "c", "d") }, "2b 3c 4d", 1},
		{"an append that was torn", func(s *Store) {
			appendNotes(t, s, "c")
			path := s.journalPath(team)
			writeFile(t, path, readFile(t, path)+`{"v":1,"se`)
		}, "2b 3c", 1},
		{"another rewrite", func(s *Store) {
			appendNotes(t, s, "c")
			if err := s.Rewrite(team, func(es []exchange.Entry) []exchange.Entry { return es[1:] }); err != nil {
				t.Fatal(err)
			}
		}, "3c", 2},
		{"a cut", func(s *Store) {
			path := s.journalPath(team)
			text := readFile(t, path)
			writeFile(t, path, text[:strings.LastIndex(strings.TrimSuffix(text, "\n"), "\n")+1])
		}, "", 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStore(t)
			appendNotes(t, s, "a")
			appendNotes(t, s, "b")
			calls := 0
			err := s.Rewrite(team, func(es []exchange.Entry) []exchange.Entry {
				if calls++; calls == 1 {
					c.other(open(t, s.root))
				}
				return es[1:]
			})
			if err != nil || calls != c.calls {
				t.Fatalf("Rewrite: %v, after %d calls, want %d", err, calls, c.calls)
			}
			wantJournal(t, s, c.want)
			appendNotes(t, open(t, s.root), "z")
			if got, _, err := s.Read(team, exchange.Cursor{}); err != nil || len(got) == 0 || got[len(got)-1].Seq <= uint64(strings.Count(c.want, " ")) {
				t.Errorf("the journal goes on with %+v, %v", got, err)
			}
		})
	}
}

// Of an append that a rewrite kept in part, the rest does not wait.
func TestRewriteKeepsPartOfAnAppend(t *testing.T) {
	s := newStore(t)
	appendNotes(t, s, "a", "b", "c")
	if err := s.Rewrite(team, func(es []exchange.Entry) []exchange.Entry { return es[:2] }); err != nil {
		t.Fatal(err)
	}
	wantJournal(t, s, "1a 2b")
	appendNotes(t, open(t, s.root), "d")
	wantJournal(t, s, "1a 2b 4d")
}

// A first writer that dies in the journal's first line leaves nothing.
func TestTornHeader(t *testing.T) {
	for _, tt := range []struct{ name, text string }{
		{"empty", ""},
		{"half", `{"v":1,"epo`},
		{"whole, and nothing else", `{"v":1,"epoch":"01M8","base":0}` + "\n"},
		{"whole, and half an entry", `{"v":1,"epoch":"01M8","base":0}` + "\n" + `{"v":1,"seq":1`},
	} {
		s := newStore(t)
		writeFile(t, s.journalPath(team), tt.text)
		wantJournal(t, s, "")
		appendNotes(t, s, "a")
		wantJournal(t, s, "1a")
		appendNotes(t, open(t, s.root), "b")
		wantJournal(t, s, "1a 2b")
	}
}

// Lines that nobody's append wrote stay, are skipped, and give no numbers.
func TestStrangeLines(t *testing.T) {
	s := newStore(t)
	appendNotes(t, s, "a")
	path := s.journalPath(team)
	strange := []string{
		"", "not JSON", "\xff\xfe\x00", `{"v":0,"seq":2,"kind":"note"}`, `{"v":1,"seq":0,"kind":"note"}`, `{"v":1,"seq":2,"kind":""}`,
		`{"v":1,"seq":1,"kind":"note","body":"again"}`, `{"v":1,"seq":-3,"kind":"note"}`, `{"v":1,"seq":9223372036854775807,"kind":"note"}`,
		`{"v":1,"seq":"2","kind":"note"}`, `[]`, `null`, strings.Repeat("[", 20000), strings.Repeat(`{"a":`, 20000), strings.Repeat("z", 200<<10),
	}
	writeFile(t, path, readFile(t, path)+strings.Join(strange, "\n")+"\n")
	wantJournal(t, s, "1a")
	appendNotes(t, open(t, s.root), "b")
	wantJournal(t, s, "1a 2b")
	for _, line := range strange {
		if !strings.Contains(readFile(t, path), line+"\n") {
			t.Errorf("line %.60q is gone", line)
		}
	}
	// A newer Switchboard's entry is an entry, and what it says stays.
	newer := `{"v":7,"seq":3,"kind":"from the future","body":"n","more":[1]}` + "\n"
	writeFile(t, path, readFile(t, path)+newer)
	wantJournal(t, s, "1a 2b 3n")
	if err := s.Rewrite(team, func(es []exchange.Entry) []exchange.Entry { return es }); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(readFile(t, path), newer) {
		t.Error("a rewrite lost fields that this version does not know")
	}
	appendNotes(t, s, "c")
	wantJournal(t, s, "1a 2b 3n 4c")
}

// Entries longer than what is read of a journal's end at first.
func TestLongEntries(t *testing.T) {
	s := newStore(t)
	appendNotes(t, s, "a")
	appendNotes(t, s, strings.Repeat("b", 2<<20))
	appendNotes(t, open(t, s.root), "c", strings.Repeat("d", 100<<10))
	appendNotes(t, open(t, s.root), "e")
	wantJournal(t, s, "1a 2b 3c 4d 5e")
}

func TestRewriteRefusesWhatWasNotThere(t *testing.T) {
	s := newStore(t)
	appendNotes(t, s, "a", "b")
	before := readFile(t, s.journalPath(team))
	err := s.Rewrite(team, func(es []exchange.Entry) []exchange.Entry { return append(es, exchange.Entry{Seq: 9}) })
	if err == nil {
		t.Error("Rewrite with an entry of its own: no error")
	}
	if readFile(t, s.journalPath(team)) != before {
		t.Error("a refused rewrite changed the journal")
	}
	appendNotes(t, s, "c") // the lock is free again
}

// Who holds a journal and doesn't let go, a stopped process, stops nobody for
// long, and no reader at all.
func TestJournalHeld(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	appendNotes(t, s, "a")
	lock, err := filelock.TryLock(s.path(journalsDir, string(team)+".lock"))
	if err != nil {
		t.Fatal(err)
	}
	wantJournal(t, s, "1a")
	begin := time.Now()
	if _, err := s.Append(team, note("b")); !errors.Is(err, exchange.ErrBusy) {
		t.Errorf("Append: %v, want ErrBusy", err)
	}
	if took := time.Since(begin); took > lockWait+deadline/4 {
		t.Errorf("Append gave up after %s, want %s", took, lockWait)
	}
	if _, err := s.Append("other", note("b")); err != nil {
		t.Errorf("Append to another team: %v", err)
	}
	if err := lock.Unlock(); err != nil {
		t.Fatal(err)
	}
	appendNotes(t, s, "b")
	wantJournal(t, s, "1a 2b")
}

// A line with a number that no append gave does not use up the numbers.
func TestForgedNumber(t *testing.T) {
	for _, forged := range []uint64{1 << 20, maxSeq - 1, maxSeq} {
		s := newStore(t)
		appendNotes(t, s, "a", "b")
		path := s.journalPath(team)
		writeFile(t, path, readFile(t, path)+fmt.Sprintf(`{"v":1,"seq":%d,"kind":"note","body":"\"x\""}`+"\n", forged))
		for range 2 { // with and without a tail that it remembers
			appendNotes(t, s, "c")
		}
		if err := s.Rewrite(team, func(es []exchange.Entry) []exchange.Entry { return es[1:] }); err != nil {
			t.Fatal(err)
		}
		appendNotes(t, s, "d")
		if all, _, err := s.Read(team, exchange.Cursor{}); err != nil || short(all) != "2b 3c 4c 5d" {
			t.Errorf("after a line with the number %d: %s, %v", forged, short(all), err)
		}
	}
}
