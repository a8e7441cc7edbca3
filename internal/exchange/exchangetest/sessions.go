package exchangetest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"switchboard/internal/exchange"
	"switchboard/internal/proc"
)

// A session has one owner; who comes second is told who the first is.
func testOwnedOnce(t *testing.T, s *suite) {
	k := key("a")
	l := s.own(s.Store, k)
	for name, x := range map[string]exchange.Exchange{"same handle": s.Store, "second handle": s.other} {
		_, err := x.Own(k)
		var owned *exchange.OwnedError
		if !errors.As(err, &owned) {
			t.Fatalf("%s: Own again: %v, want an OwnedError", name, err)
		}
		if owned.By.Key.ID != "" {
			t.Errorf("%s: OwnedError names %+v before anything was published", name, owned.By)
		}
	}
	s.must("Publish", l.Publish(record(k)))
	_, err := s.other.Own(k)
	var owned *exchange.OwnedError
	if !errors.As(err, &owned) {
		t.Fatalf("Own again: %v, want an OwnedError", err)
	}
	if owned.By.Key != k || owned.By.Generation != l.Generation() || owned.By.Agent != proc.Self() {
		t.Errorf("OwnedError names %+v, want the record of %s", owned.By, l.Generation())
	}
	if want := fmt.Sprint("process ", proc.Self().PID); !strings.Contains(err.Error(), want) {
		t.Errorf("the error %q does not say %q", err, want)
	}
	// The refused try has harmed nothing.
	s.wantPresence(k, exchange.Live)
	s.must("Beat", l.Beat())
}

func testOwnersAreApart(t *testing.T, s *suite) {
	a := s.join(s.Store, key("a"))
	b := s.join(s.other, key("b"))
	if a.Generation() == b.Generation() || a.Generation() == "" {
		t.Errorf("generations %q and %q", a.Generation(), b.Generation())
	}
	s.must("Release", a.Release(false))
	s.wantPresence(key("a"), exchange.Gone)
	s.wantPresence(key("b"), exchange.Live)
	again := s.join(s.other, key("a"))
	if again.Generation() == a.Generation() {
		t.Errorf("two ownerships are both %q", again.Generation())
	}
}

// With a hand-over a session stays on the roster until the lease ends, and a
// successor takes it on.
func testHandOver(t *testing.T, s *suite) {
	k := key("a")
	l := s.join(s.Store, k)
	s.must("Release", l.Release(true))
	s.wantPresence(k, exchange.Live)
	s.Age(k, exchange.LeaseTime-2*time.Second)
	s.wantPresence(k, exchange.Live)
	next := s.own(s.other, k)
	s.must("Publish", next.Publish(record(k)))
	s.wantPresence(k, exchange.Live)
	s.Age(k, exchange.LeaseTime+time.Second)
	s.wantPresence(k, exchange.Live) // it has an owner now
	// The late release of the old owner does not take it off.
	s.must("Release again", l.Release(false))
	s.wantPresence(k, exchange.Live)

	s.must("Release", next.Release(true))
	s.Age(k, exchange.LeaseTime+time.Second)
	s.wantPresence(k, exchange.Gone)
	s.wantPresence(k, exchange.Gone) // and stays so
	s.join(s.Store, k)
	s.wantPresence(k, exchange.Live)
}

// Without a hand-over it is gone at once; its mail stays.
func testRelease(t *testing.T, s *suite) {
	k := key("a")
	l := s.join(s.Store, k)
	m := s.post(s.other, k, "kept")
	s.must("Release", l.Release(false))
	s.wantPresence(k, exchange.Gone)
	s.wantMail(k, m)
	s.own(s.other, k)
	s.wantMail(k, m)
	s.wantPresence(k, exchange.Gone) // owned, and not published yet
}

func testReleased(t *testing.T, s *suite) {
	for _, handOver := range []bool{true, false} {
		k := key(fmt.Sprint("a-", handOver))
		l := s.join(s.Store, k)
		m := s.post(s.Store, k, "stays")
		s.must("Release", l.Release(handOver))
		if err := l.Release(!handOver); err != nil {
			t.Errorf("Release again: %v, want nil", err)
		}
		_, recallErr := l.Recall()
		for what, err := range map[string]error{
			"Publish":  l.Publish(record(k)),
			"Beat":     l.Beat(),
			"Settle":   l.Settle(m.ID),
			"Remember": l.Remember([]byte("x")),
			"Recall":   recallErr,
		} {
			if !errors.Is(err, exchange.ErrReleased) {
				t.Errorf("%s after Release(%v): %v, want ErrReleased", what, handOver, err)
			}
		}
		s.wantMail(k, m)
		if next, err := s.own(s.other, k).Recall(); next != nil || err != nil {
			t.Errorf("Recall of the successor = %q, %v; want nothing", next, err)
		}
	}
}

// An owner that dies is missed only when the lease is over.
func testKilled(t *testing.T, s *suite) {
	k := key("a")
	l := s.join(s.Store, k)
	m := s.post(s.other, k, "kept")
	s.Kill(k, l)
	s.wantPresence(k, exchange.Live)
	s.Age(k, exchange.LeaseTime+time.Second)
	s.wantPresence(k, exchange.Gone)
	s.wantMail(k, m)
	next := s.join(s.other, k)
	s.wantPresence(k, exchange.Live)
	s.wantMail(k, m)
	s.must("Settle", next.Settle(m.ID))
	s.wantMail(k)
}

// An owner that is there and says nothing is unresponsive, until it beats.
func testSilent(t *testing.T, s *suite) {
	k := key("a")
	l := s.join(s.Store, k)
	s.Age(k, exchange.Silent-5*time.Second)
	s.wantPresence(k, exchange.Live)
	s.Age(k, exchange.Silent+5*time.Second)
	s.wantPresence(k, exchange.Unresponsive)
	if !l.Published() {
		t.Error("the record of a silent owner was taken away")
	}
	s.must("Beat", l.Beat())
	s.wantPresence(k, exchange.Live)
}

func testRecord(t *testing.T, s *suite) {
	k := key("a")
	l := s.own(s.Store, k)
	s.wantPresence(k, exchange.Gone) // nothing published yet
	r := record(k)
	// What is the store's to say can't be claimed.
	r.Version, r.Generation, r.Owner, r.Key = 77, "forged", proc.ID{PID: 1}, key("b")
	before := time.Now().Add(-time.Minute)
	s.must("Publish", l.Publish(r))
	got, err := s.other.Session(k)
	s.must("Session", err)
	if got.Version != exchange.Version || got.Key != k || got.Generation != l.Generation() || got.Owner != proc.Self() {
		t.Errorf("published %+v, want version, key, generation and owner from the store", got.Record)
	}
	if got.Updated.Before(before) || got.LastBeat.Before(before) {
		t.Errorf("updated %s, last beat %s; want now", got.Updated, got.LastBeat)
	}
	want := record(k)
	if got.Incarnation != want.Incarnation || got.Name != want.Name || got.Cwd != want.Cwd || got.Model != want.Model ||
		got.Mode != want.Mode || got.File != want.File || got.State != want.State || got.Agent != want.Agent ||
		got.Wakes != want.Wakes || !got.Since.Equal(want.Since) || !got.Joined.Equal(want.Joined) {
		t.Errorf("published %+v, want %+v", got.Record, want)
	}
	want.State = "working"
	s.must("Publish", l.Publish(want))
	if got, err = s.other.Session(k); got.State != "working" || err != nil {
		t.Errorf("Session = %+v, %v; want the new state", got, err)
	}
	s.wantPresence(key("b"), exchange.Gone)
}

func testPublished(t *testing.T, s *suite) {
	k := key("a")
	l := s.own(s.Store, k)
	if l.Published() {
		t.Error("Published before Publish")
	}
	s.must("Publish", l.Publish(record(k)))
	if !l.Published() {
		t.Error("not Published after Publish")
	}
	s.Remove(k)
	if l.Published() {
		t.Error("Published though the record is gone")
	}
	s.wantPresence(k, exchange.Gone)
	s.must("Publish", l.Publish(record(k)))
	if !l.Published() {
		t.Error("not Published after Publish")
	}
	s.wantPresence(k, exchange.Live)
}

func testSessionsInOrder(t *testing.T, s *suite) {
	start := record(key("x")).Joined
	var want []string
	for i, minutes := range []int{30, 10, 50, 20, 40} {
		k := key(fmt.Sprintf("s%d", i))
		l := s.own([]exchange.Exchange{s.Store, s.other}[i%2], k)
		r := record(k)
		r.Joined = start.Add(time.Duration(minutes) * time.Minute)
		s.must("Publish", l.Publish(r))
		want = append(want, fmt.Sprintf("%d %s", minutes, k.ID))
	}
	slices.Sort(want)
	all, err := s.other.Sessions()
	s.must("Sessions", err)
	var got []string
	for _, one := range all {
		got = append(got, fmt.Sprintf("%d %s", int(one.Joined.Sub(start).Minutes()), one.Key.ID))
	}
	if !slices.Equal(got, want) {
		t.Errorf("Sessions = %v, want %v", got, want)
	}
}

func testNobodyThere(t *testing.T, s *suite) {
	if all, err := s.Store.Sessions(); len(all) != 0 || err != nil {
		t.Errorf("Sessions = %v, %v; want none", all, err)
	}
	s.wantPresence(key("nobody"), exchange.Gone)
	s.wantMail(key("nobody"))
	s.Store.Ring()
	s.Store.Ring(key("nobody"), key("nobody else"))
}

// A session's memory is its successor's, however the owner went.
func testMemory(t *testing.T, s *suite) {
	k := key("a")
	l := s.join(s.Store, k)
	if data, err := l.Recall(); data != nil || err != nil {
		t.Errorf("Recall = %q, %v; want nothing", data, err)
	}
	s.must("Remember", l.Remember([]byte("one")))
	data := []byte("\x00two\n\xff")
	s.must("Remember", l.Remember(data))
	data[1] = 'T' // it was kept, not borrowed
	for _, end := range []func(){
		func() { s.must("Release", l.Release(true)) },
		func() { s.must("Release", l.Release(false)) },
		func() { s.Kill(k, l) },
	} {
		end()
		l = s.join(s.other, k)
		if data, err := l.Recall(); string(data) != "\x00two\n\xff" || err != nil {
			t.Errorf("Recall = %q, %v; want %q", data, err, "\x00two\n\xff")
		}
	}
	if data, err := s.own(s.Store, key("b")).Recall(); data != nil || err != nil {
		t.Errorf("Recall of another session = %q, %v; want nothing", data, err)
	}
}

// A key is data from outside: no spelling leads elsewhere, and no two keys
// are one session.
func testStrangeKeys(t *testing.T, s *suite) {
	keys := []exchange.SessionKey{
		key("plain"), key("Plain.json"), key("../../x"), key("a/b"), key("a\\b"), key(".hidden"), key("a\x00b"), key("a\nb"),
		key(strings.Repeat("long", 100)), key("ünï"), key(" "), key("con."), key("..."),
		{Host: "codex", ID: "plain"},
		{Host: "../pi", ID: "plain"},
		{Host: "", ID: "plain"},
		{Host: "codex", ID: "../../x"},
	}
	mail := make(map[exchange.SessionKey]string)
	for _, k := range keys {
		s.join(s.Store, k)
		mail[k] = s.post(s.other, k, "to "+k.String()).ID
	}
	all, err := s.other.Sessions()
	s.must("Sessions", err)
	if len(all) != len(keys) {
		t.Errorf("%d sessions, want %d", len(all), len(keys))
	}
	for _, k := range keys {
		s.wantPresence(k, exchange.Live)
		if got, err := s.Store.Waiting(k); len(got) != 1 || got[0].ID != mail[k] || err != nil {
			t.Errorf("Waiting(%q) = %s, %v", k, brief(got), err)
		}
	}
}
