package exchangetest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"switchboard/internal/exchange"
)

const team = exchange.TeamID("team-1")

func entry(text string) exchange.Entry {
	body, err := json.Marshal(map[string]string{"text": text})
	if err != nil {
		panic(err) // a plain map
	}
	return exchange.Entry{Session: "s", Incarnation: "i", Kind: "note", Body: body}
}

func (s *suite) appendText(x exchange.Exchange, texts ...string) []exchange.Entry {
	s.t.Helper()
	var entries []exchange.Entry
	for _, text := range texts {
		entries = append(entries, entry(text))
	}
	out, err := x.Append(team, entries...)
	s.must("Append", err)
	return out
}

// read reads on, and checks that what comes next comes next.
func (s *suite) read(x exchange.Exchange, from exchange.Cursor) ([]exchange.Entry, exchange.Cursor) {
	s.t.Helper()
	got, next, err := x.Read(team, from)
	s.must("Read", err)
	last := from.Seq
	for _, e := range got {
		if e.Seq <= last {
			s.t.Fatalf("entry %d after %d", e.Seq, last)
		}
		last = e.Seq
	}
	if next.Seq != last {
		s.t.Fatalf("cursor at %d after entry %d", next.Seq, last)
	}
	return got, next
}

func (s *suite) wantEntries(what string, got, want []exchange.Entry) {
	s.t.Helper()
	if !bytes.Equal(asJSON(got), asJSON(want)) {
		s.t.Errorf("%s: got %s, want %s", what, numbers(got), numbers(want))
	}
}

func numbers(es []exchange.Entry) string {
	var out []string
	for _, e := range es {
		out = append(out, fmt.Sprintf("%d%s", e.Seq, e.Body))
	}
	return "[" + strings.Join(out, " ") + "]"
}

func testJournal(t *testing.T, s *suite) {
	for _, x := range []exchange.Exchange{s.Store, s.other} {
		got, next := s.read(x, exchange.Cursor{})
		if len(got) != 0 || next != (exchange.Cursor{}) {
			t.Errorf("an empty team: Read = %s, %+v", numbers(got), next)
		}
	}
	s.must("Rewrite of nothing", s.Store.Rewrite(team, func(es []exchange.Entry) []exchange.Entry { return es }))
	if out, err := s.Store.Append(team); len(out) != 0 || err != nil {
		t.Errorf("Append of nothing = %s, %v", numbers(out), err)
	}

	var all []exchange.Entry
	all = append(all, s.appendText(s.Store, "one")...)
	all = append(all, s.appendText(s.other, "two", "three", "four")...)
	all = append(all, s.appendText(s.Store, "five")...)
	all = append(all, s.appendText(s.other, "six")...)
	for i, e := range all {
		if e.Seq != uint64(i+1) {
			t.Errorf("entry %d has seq %d", i+1, e.Seq)
		}
	}
	for _, x := range []exchange.Exchange{s.Store, s.other} {
		got, next := s.read(x, exchange.Cursor{})
		s.wantEntries("Read", got, all)
		again, after := s.read(x, next)
		if len(again) != 0 || after != next {
			t.Errorf("Read at the end = %s, %+v; want nothing and %+v", numbers(again), after, next)
		}
	}
}

// The store stamps; everything else comes out as it went in.
func testJournalStamps(t *testing.T, s *suite) {
	body := json.RawMessage(`{"a": "<&>",` + "\n" + ` "b": [1, 2]}`)
	before := time.Now().Add(-time.Minute)
	forged := exchange.Entry{Version: 9, Seq: 99, Boot: "b", At: -5, Wall: time.Unix(1, 0), Session: "s\n\"", Incarnation: "i", Kind: "x.y", Body: body}
	bare := exchange.Entry{Kind: "bare"}
	out, err := s.Store.Append(team, forged, bare)
	s.must("Append", err)
	copy(body, `{"changed after it was given`)
	got, _ := s.read(s.other, exchange.Cursor{})
	if len(got) != 2 || len(out) != 2 {
		t.Fatalf("Append = %s, Read = %s", numbers(out), numbers(got))
	}
	for i, e := range got {
		if e.Version != exchange.Version || e.Seq != uint64(i+1) || e.Boot == "" || e.Boot == "b" || e.At < 0 || e.Wall.Before(before) {
			t.Errorf("entry %+v was not stamped", e)
		}
		o := out[i]
		if e.Seq != o.Seq || e.Boot != o.Boot || e.At != o.At || !e.Wall.Equal(o.Wall) {
			t.Errorf("Append returned %+v, Read %+v", o, e)
		}
	}
	if e := got[0]; e.Session != "s\n\"" || e.Incarnation != "i" || e.Kind != "x.y" || compact(t, e.Body) != `{"a":"<&>","b":[1,2]}` {
		t.Errorf("entry came out as %+v, body %s", e, e.Body)
	}
	if e := got[1]; e.Kind != "bare" || len(e.Body) != 0 || e.Session != "" {
		t.Errorf("entry came out as %+v", e)
	}
	for range 50 {
		s.appendText(s.Store, "tick")
		s.appendText(s.other, "tock")
	}
	got, _ = s.read(s.Store, exchange.Cursor{})
	for i := 1; i < len(got); i++ {
		if got[i].Boot == got[i-1].Boot && got[i].At < got[i-1].At {
			t.Fatalf("entry %d at %s, before entry %d at %s", got[i].Seq, got[i].At, got[i-1].Seq, got[i-1].At)
		}
	}
}

func compact(t *testing.T, data json.RawMessage) string {
	t.Helper()
	var buf bytes.Buffer
	if err := json.Compact(&buf, data); err != nil {
		t.Fatal(err)
	}
	return buf.String()
}

// What is refused leaves no trace, and no gap.
func testJournalRefuses(t *testing.T, s *suite) {
	for _, id := range []exchange.TeamID{"", ".", "..", "../x", "a/b", "a.b", "a b", "a\x00", "ü", exchange.TeamID(strings.Repeat("x", 65))} {
		if _, err := s.Store.Append(id, entry("x")); err == nil {
			t.Errorf("Append to team %q: no error", id)
		}
		if _, _, err := s.Store.Read(id, exchange.Cursor{}); err == nil {
			t.Errorf("Read of team %q: no error", id)
		}
		if err := s.Store.Rewrite(id, func(es []exchange.Entry) []exchange.Entry { return es }); err == nil {
			t.Errorf("Rewrite of team %q: no error", id)
		}
	}
	long := exchange.TeamID(strings.Repeat("x", 64))
	if _, err := s.Store.Append(long, entry("x")); err != nil {
		t.Errorf("Append to team %q: %v", long, err)
	}

	first := s.appendText(s.Store, "one")
	broken := entry("x")
	broken.Body = json.RawMessage(`{"half":`)
	nameless := entry("x")
	nameless.Kind = ""
	for name, bad := range map[string]exchange.Entry{"a body that is no JSON": broken, "no kind": nameless} {
		if _, err := s.Store.Append(team, entry("before"), bad, entry("after")); err == nil {
			t.Errorf("Append with %s: no error", name)
		}
	}
	got, _ := s.read(s.other, exchange.Cursor{})
	s.wantEntries("after refusals", got, first)
	if next := s.appendText(s.other, "two"); next[0].Seq != 2 {
		t.Errorf("the next entry has seq %d, want 2", next[0].Seq)
	}
}

func testJournalCursors(t *testing.T, s *suite) {
	var all []exchange.Entry
	cursors := []exchange.Cursor{{}}
	for i := range 10 {
		all = append(all, s.appendText(s.Store, fmt.Sprint("entry ", i))...)
		_, next := s.read(s.other, cursors[i])
		cursors = append(cursors, next)
	}
	for i, c := range cursors {
		for _, x := range []exchange.Exchange{s.Store, s.other} {
			got, next := s.read(x, c)
			s.wantEntries(fmt.Sprint("from cursor ", i), got, all[i:])
			if next != cursors[len(cursors)-1] {
				t.Errorf("cursor at the end = %+v, want %+v", next, cursors[len(cursors)-1])
			}
		}
		// A cursor of which only the number is right is good as well.
		got, _ := s.read(s.Store, exchange.Cursor{Seq: c.Seq})
		s.wantEntries(fmt.Sprint("from number ", i), got, all[i:])
	}
	got, next := s.read(s.Store, exchange.Cursor{Seq: 1000, Epoch: "of another journal", Offset: 1 << 40})
	if len(got) != 0 || next.Seq != 1000 {
		t.Errorf("from beyond the end: %s, %+v", numbers(got), next)
	}
}

func testJournalsAreApart(t *testing.T, s *suite) {
	s.appendText(s.Store, "one", "two")
	out, err := s.other.Append("team-2", entry("else"))
	s.must("Append", err)
	if out[0].Seq != 1 {
		t.Errorf("the first entry of a second team has seq %d", out[0].Seq)
	}
	s.must("Rewrite", s.Store.Rewrite("team-2", func([]exchange.Entry) []exchange.Entry { return nil }))
	got, _ := s.read(s.other, exchange.Cursor{})
	if len(got) != 2 {
		t.Errorf("the first team has %s", numbers(got))
	}
}

type stamp struct {
	Writer, Batch, N, Of int
}

func stampOf(t *testing.T, e exchange.Entry) stamp {
	var st stamp
	if err := json.Unmarshal(e.Body, &st); err != nil {
		t.Errorf("body of entry %d: %v", e.Seq, err)
	}
	return st
}

// Eight appenders and two readers at once: one order, without a gap, the
// entries of each call next to each other, and each appender's calls in turn.
func testJournalAppenders(t *testing.T, s *suite) {
	const writers, batches = 8, 15
	total := 0
	var writing, reading sync.WaitGroup
	var mu sync.Mutex
	returned := make(map[uint64]stamp)
	for w := range writers {
		x := []exchange.Exchange{s.Store, s.other}[w%2]
		for b := range batches {
			total += 1 + b%3
		}
		writing.Go(func() {
			for b := range batches {
				var es []exchange.Entry
				for n := range 1 + b%3 {
					body, err := json.Marshal(stamp{w, b, n, 1 + b%3})
					if err != nil {
						panic(err)
					}
					es = append(es, exchange.Entry{Kind: "note", Body: body})
				}
				out, err := x.Append(team, es...)
				if err != nil {
					t.Errorf("Append: %v", err)
					return
				}
				mu.Lock()
				for _, e := range out {
					returned[e.Seq] = stampOf(t, e)
				}
				mu.Unlock()
			}
		})
	}
	end := time.Now().Add(deadline)
	for _, x := range []exchange.Exchange{s.Store, s.other} {
		reading.Go(func() {
			var got []exchange.Entry
			for c := (exchange.Cursor{}); len(got) < total && time.Now().Before(end) && !t.Failed(); time.Sleep(time.Millisecond) {
				more, next, err := x.Read(team, c)
				if err != nil {
					t.Errorf("Read: %v", err)
					return
				}
				got, c = append(got, more...), next
			}
			if len(got) != total {
				t.Errorf("read %d entries, want %d", len(got), total)
				return
			}
			last := make(map[int]stamp)
			for i, e := range got {
				st := stampOf(t, e)
				if e.Seq != uint64(i+1) {
					t.Errorf("entry %d has seq %d", i+1, e.Seq)
					return
				}
				prev, some := last[st.Writer]
				follows := st == stamp{st.Writer, 0, 0, 1} && !some
				if some && st.N == 0 {
					follows = st.Batch == prev.Batch+1 && prev.N == prev.Of-1
				} else if some {
					neighbour := stampOf(t, got[i-1])
					follows = neighbour == stamp{st.Writer, st.Batch, st.N - 1, st.Of}
				}
				if !follows {
					t.Errorf("entry %d is %+v, after %+v of the same appender", e.Seq, st, prev)
					return
				}
				last[st.Writer] = st
			}
			mu.Lock()
			defer mu.Unlock()
			for _, e := range got {
				if st, ok := returned[e.Seq]; ok && st != stampOf(t, e) {
					t.Errorf("entry %d is %+v, Append returned %+v", e.Seq, stampOf(t, e), st)
				}
			}
		})
	}
	writing.Wait()
	reading.Wait()
	if len(returned) != total && !t.Failed() {
		t.Errorf("Append returned %d numbers, want %d", len(returned), total)
	}
}

// odd keeps every other entry.
func odd(es []exchange.Entry) []exchange.Entry {
	return slices.DeleteFunc(slices.Clone(es), func(e exchange.Entry) bool { return e.Seq%2 == 0 })
}

func testRewrite(_ *testing.T, s *suite) {
	early := s.appendText(s.Store, "1", "2", "3", "4")
	_, middle := s.read(s.other, exchange.Cursor{})
	late := s.appendText(s.other, "5", "6", "7")
	_, end := s.read(s.other, exchange.Cursor{})
	s.must("Rewrite", s.Store.Rewrite(team, func(es []exchange.Entry) []exchange.Entry {
		s.wantEntries("given to keep", es, slices.Concat(early, late))
		return odd(es)
	}))
	more := s.appendText(s.other, "8", "9")
	if more[0].Seq != 8 {
		s.t.Errorf("after a rewrite the next entry has seq %d, want 8", more[0].Seq)
	}
	for _, x := range []exchange.Exchange{s.Store, s.other} {
		got, next := s.read(x, exchange.Cursor{})
		s.wantEntries("a fresh reader", got, slices.Concat(odd(early), odd(late), more))
		got, _ = s.read(x, middle)
		s.wantEntries("a reader in the middle", got, slices.Concat(odd(late), more))
		got, _ = s.read(x, end)
		s.wantEntries("a reader at the end", got, more)
		got, _ = s.read(x, next)
		s.wantEntries("nothing new", got, nil)
	}
}

// A second rewrite is given what the first one kept.
func testRewriteTwice(_ *testing.T, s *suite) {
	all := s.appendText(s.Store, "1", "2", "3", "4", "5", "6", "7")
	s.must("Rewrite", s.Store.Rewrite(team, odd))
	_, between := s.read(s.Store, exchange.Cursor{Seq: 3})
	all = append(all, s.appendText(s.other, "8", "9")...)
	kept := append(odd(all[:7]), all[7:]...)
	s.must("Rewrite", s.other.Rewrite(team, func(es []exchange.Entry) []exchange.Entry {
		s.wantEntries("given to the second rewrite", es, kept)
		return slices.DeleteFunc(slices.Clone(es), func(e exchange.Entry) bool { return e.Seq == 5 || e.Seq == 9 })
	}))
	want := []exchange.Entry{all[0], all[2], all[6], all[7]}
	for _, x := range []exchange.Exchange{s.Store, s.other} {
		got, _ := s.read(x, exchange.Cursor{})
		s.wantEntries("a fresh reader", got, want)
		got, _ = s.read(x, between)
		s.wantEntries("a reader from between", got, want[3:])
	}
	if next := s.appendText(s.Store, "10"); next[0].Seq != 10 {
		s.t.Errorf("the next entry has seq %d, want 10", next[0].Seq)
	}
}

func testRewriteToNothing(_ *testing.T, s *suite) {
	s.appendText(s.Store, "1", "2")
	_, middle := s.read(s.Store, exchange.Cursor{})
	s.appendText(s.other, "3", "4")
	nothing := func([]exchange.Entry) []exchange.Entry { return nil }
	s.must("Rewrite", s.Store.Rewrite(team, nothing))
	got, _ := s.read(s.other, exchange.Cursor{})
	s.wantEntries("a fresh reader", got, nil)
	got, middle = s.read(s.other, middle)
	s.wantEntries("a reader in the middle", got, nil)
	s.must("Rewrite", s.other.Rewrite(team, nothing)) // of nothing
	next := s.appendText(s.Store, "5")
	if next[0].Seq != 5 {
		s.t.Errorf("the next entry has seq %d, want 5", next[0].Seq)
	}
	got, _ = s.read(s.other, middle)
	s.wantEntries("a reader in the middle", got, next)
	got, _ = s.read(s.other, exchange.Cursor{})
	s.wantEntries("a fresh reader", got, next)
}

// A reader that follows sees every entry once, however often the journal is
// rewritten around it, as long as what it has not read is kept.
func testRewriteWhileAppending(t *testing.T, s *suite) {
	const total = 120
	var mu sync.Mutex
	var read uint64
	var work sync.WaitGroup
	work.Go(func() {
		for i := range total {
			if _, err := s.Store.Append(team, entry(fmt.Sprint(i))); err != nil {
				t.Errorf("Append: %v", err)
				return
			}
		}
	})
	done := make(chan struct{})
	var rewriting sync.WaitGroup
	rewriting.Go(func() {
		for {
			select {
			case <-done:
				return
			case <-time.After(2 * time.Millisecond):
			}
			mu.Lock()
			upTo := read
			mu.Unlock()
			err := s.other.Rewrite(team, func(es []exchange.Entry) []exchange.Entry {
				return slices.DeleteFunc(slices.Clone(es), func(e exchange.Entry) bool { return e.Seq <= upTo && e.Seq%7 != 0 })
			})
			if err != nil && !errors.Is(err, exchange.ErrBusy) {
				t.Errorf("Rewrite: %v", err)
			}
		}
	})
	var c exchange.Cursor
	for end := time.Now().Add(deadline); c.Seq < total && time.Now().Before(end); {
		more, next, err := s.other.Read(team, c)
		s.must("Read", err)
		for i, e := range more {
			if want := c.Seq + uint64(i) + 1; e.Seq != want {
				t.Fatalf("read entry %d, want %d", e.Seq, want)
			}
		}
		c = next
		mu.Lock()
		read = c.Seq
		mu.Unlock()
	}
	if c.Seq != total {
		t.Errorf("read up to %d, want %d", c.Seq, total)
	}
	work.Wait()
	close(done)
	rewriting.Wait()
	got, _ := s.read(s.Store, exchange.Cursor{})
	if want := total / 7; len(odd7(got)) != want {
		t.Errorf("%d entries that every rewrite kept, want %d: %s", len(odd7(got)), want, numbers(got))
	}
}

func odd7(es []exchange.Entry) []exchange.Entry {
	return slices.DeleteFunc(slices.Clone(es), func(e exchange.Entry) bool { return e.Seq%7 != 0 })
}
