package exchangetest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"switchboard/internal/delivery"
	"switchboard/internal/exchange"
)

func testMailWaits(_ *testing.T, s *suite) {
	k := key("a")
	first := s.post(s.Store, k, "before anybody was there")
	s.wantMail(k, first)
	l := s.join(s.other, k)
	second := s.post(s.Store, k, "while it is there")
	s.wantMail(k, first, second)
	s.must("Release", l.Release(true))
	third := s.post(s.other, k, "after it left")
	s.wantMail(k, first, second, third)
	s.join(s.Store, k)
	s.wantMail(k, first, second, third)
	s.wantMail(key("b"))
}

// What is read is what was sent, in every field, whatever happens to the
// sender's memory afterwards.
func testMailThrough(t *testing.T, s *suite) {
	k := key("a")
	m := message("<b>&\"\\\u2028 🦊\n\x00\x1b[0m end ")
	m.Hops, m.After = 7, []string{"one", "two"}
	m.From.Human = true
	want := m
	want.After = []string{"one", "two"}
	s.must("Post", s.Store.Post(k, m))
	m.After[0] = "changed"
	s.wantMail(k, want)
	got, err := s.Store.Waiting(k)
	s.must("Waiting", err)
	if len(got) == 1 {
		got[0].After[1] = "changed"
	}
	s.wantMail(k, want)
	if !got[0].Sent.Equal(want.Sent) || got[0].Text != want.Text {
		t.Errorf("got %+v, want %+v", got[0], want)
	}
}

func testPostTwice(t *testing.T, s *suite) {
	k := key("a")
	m := s.post(s.Store, k, "first")
	again := m
	again.Text = "second"
	for _, x := range []exchange.Exchange{s.Store, s.other} {
		if err := x.Post(k, again); err != nil {
			t.Errorf("Post of the same id: %v, want nil", err)
		}
	}
	s.wantMail(k, m)
	s.must("Post", s.Store.Post(key("b"), again)) // another inbox
	s.wantMail(key("b"), again)
}

func testSendingOrder(t *testing.T, s *suite) {
	k := key("a")
	var want []delivery.Message
	for i := range 20 {
		want = append(want, message(fmt.Sprintf("call %d", i)))
	}
	// Two senders, who reach the store in another order than they sent.
	var wg sync.WaitGroup
	for sender, x := range []exchange.Exchange{s.Store, s.other} {
		wg.Go(func() {
			for i := len(want) - 1 - sender; i >= 0; i -= 2 {
				if err := x.Post(k, want[i]); err != nil {
					t.Errorf("Post: %v", err)
				}
			}
		})
	}
	wg.Wait()
	s.wantMail(k, want...)
}

func testSettle(t *testing.T, s *suite) {
	k := key("a")
	l := s.join(s.Store, k)
	a, b, c := s.post(s.Store, k, "a"), s.post(s.other, k, "b"), s.post(s.Store, k, "c")
	foreign := s.post(s.Store, key("b"), "another's")
	if err := l.Settle(); err != nil {
		t.Errorf("Settle of nothing: %v", err)
	}
	unknown := []string{exchange.NewID(time.Now()), "", "x", "../../sessions/a", strings.ToLower(b.ID), foreign.ID}
	if err := l.Settle(unknown...); err != nil {
		t.Errorf("Settle of unknown ids: %v", err)
	}
	s.wantMail(k, a, b, c)
	s.wantMail(key("b"), foreign)
	if !l.Published() {
		t.Error("Settle took the record")
	}
	s.must("Settle", l.Settle("x", b.ID, a.ID, b.ID))
	s.wantMail(k, c)
	s.must("Settle", l.Settle(b.ID, c.ID))
	s.wantMail(k)
	s.wantPresence(k, exchange.Live)
}

// The limits hold to the byte, on what is stored: JSON without HTML escapes,
// and the end of its line.
func testMessageSize(t *testing.T, s *suite) {
	k := key("a")
	sized := func(stored int) delivery.Message {
		m := message("x")
		m.From.Cwd = "<"
		m.From.Cwd = strings.Repeat("<", 1+stored-storedSize(t, m))
		return m
	}
	text := func(s string) delivery.Message { return message(s) }
	for _, c := range []struct {
		name string
		m    delivery.Message
		ok   bool
	}{
		{"nothing", text(""), true},
		{"the longest text", text(strings.Repeat("t", delivery.MaxText)), true},
		{"a byte more", text(strings.Repeat("t", delivery.MaxText+1)), false},
		{"the longest text, in two-byte letters", text(strings.Repeat("é", delivery.MaxText/2)), true},
		{"a letter more", text(strings.Repeat("é", delivery.MaxText/2) + "t"), false},
		{"the longest message", sized(delivery.MaxMessage), true},
		{"longer", sized(delivery.MaxMessage + 1), false},
		{"a text that grows by its escapes", text(strings.Repeat("\x01", delivery.MaxText)), false},
	} {
		err := s.Store.Post(k, c.m)
		if c.ok && err != nil {
			t.Errorf("%s: Post: %v", c.name, err)
		}
		if !c.ok && !errors.Is(err, exchange.ErrTooLarge) {
			t.Errorf("%s: Post: %v, want ErrTooLarge", c.name, err)
		}
		// What was accepted is there; what was refused is not.
		got, err := s.other.Waiting(k)
		s.must("Waiting", err)
		there := len(got) > 0 && got[len(got)-1].ID == c.m.ID
		if there != c.ok {
			t.Errorf("%s: in the inbox: %v, want %v", c.name, there, c.ok)
		}
		if there && (got[len(got)-1].Text != c.m.Text || got[len(got)-1].From != c.m.From) {
			t.Errorf("%s: it is not what was sent", c.name)
		}
	}
}

func storedSize(t *testing.T, m delivery.Message) int {
	t.Helper()
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(exchange.Envelope{Version: exchange.Version, Message: m}); err != nil {
		t.Fatal(err)
	}
	return buf.Len()
}

// Bytes that are no text are refused or come out as replacement characters;
// what was acknowledged is never lost for it.
func testNotUTF8(t *testing.T, s *suite) {
	k := key("a")
	for _, c := range []struct {
		name string
		text string
		want string // when accepted
	}{
		{"one", "caf\xe9!", "caf\uFFFD!"},
		{"near the limit", strings.Repeat("x", 22000) + strings.Repeat("\xffx", 3400), strings.Repeat("x", 22000) + strings.Repeat("\uFFFDx", 3400)},
		{"mended beyond the limit", strings.Repeat("x", 22000) + strings.Repeat("\xffx", 3900), ""},
	} {
		m := message(c.text)
		err := s.Store.Post(k, m)
		got, werr := s.other.Waiting(k)
		s.must("Waiting", werr)
		there := len(got) > 0 && got[len(got)-1].ID == m.ID
		if there != (err == nil) {
			t.Errorf("%s: Post: %v, but in the inbox: %v", c.name, err, there)
		}
		if there && got[len(got)-1].Text != c.want {
			t.Errorf("%s: came out as %.40q…, want %.40q…", c.name, got[len(got)-1].Text, c.want)
		}
	}
}

// A message that no reader would take is not acknowledged.
func testNoKind(t *testing.T, s *suite) {
	m := message("of no kind")
	m.Kind = ""
	if err := s.Store.Post(key("a"), m); err == nil {
		t.Error("Post of a message without a kind: no error")
	}
	s.wantMail(key("a"))
	m.Kind = "fax" // of a newer Switchboard: the store keeps and shows it
	s.must("Post", s.Store.Post(key("a"), m))
	s.wantMail(key("a"), m)
}

// However close together a look and the next message are, each message is
// seen by a look that Changed asked for.
func testChangedNeverMisses(t *testing.T, s *suite) {
	k := key("a")
	l := s.join(s.Store, k)
	seen := 0
	look := func(want int) {
		t.Helper()
		if l.Changed() {
			got, err := s.Store.Waiting(k)
			s.must("Waiting", err)
			seen = len(got)
		}
		if seen != want {
			t.Fatalf("%d messages seen, want %d", seen, want)
		}
	}
	sent := 0
	for i := range 150 {
		s.post([]exchange.Exchange{s.Store, s.other}[i%2], k, "again")
		sent++
		if i%3 != 0 {
			look(sent)
		}
		if i%5 == 0 {
			look(sent) // twice in a row
		}
	}
	look(sent)
	// Also after a quiet time, in which a store may have settled on "no".
	end := time.Now().Add(time.Second)
	until(t, "a second without mail", func() bool { look(sent); return !l.Changed() || time.Now().After(end) })
	s.post(s.other, k, "at last")
	look(sent + 1)
	s.must("Release", l.Release(true))
	s.post(s.other, k, "between owners")
	next := s.own(s.other, k)
	if !next.Changed() {
		t.Error("the successor is not told of what waits")
	}
}

// A ring reaches the owner, for a message and without one.
func testRings(t *testing.T, s *suite) {
	a, b := s.join(s.Store, key("a")), s.join(s.Store, key("b"))
	heard := func(l exchange.Lease, why string) {
		t.Helper()
		select {
		case <-l.Rings():
		case <-time.After(deadline):
			t.Fatalf("no ring after %s", why)
		}
	}
	s.post(s.other, key("a"), "wake up")
	heard(a, "a message")
	s.other.Ring(key("nobody"), key("a"), key("b"))
	heard(a, "Ring")
	heard(b, "Ring")
	for range 1000 {
		s.other.Ring(key("a")) // nobody listens now: it doesn't block
	}
	heard(a, "many rings")

	s.must("Release", b.Release(true))
	s.other.Ring(key("b"))
	next := s.join(s.other, key("b"))
	s.Store.Ring(key("b"))
	heard(next, "a hand-over")
}
