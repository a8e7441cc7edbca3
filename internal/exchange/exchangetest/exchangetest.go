// Package exchangetest checks that a store keeps the contract of package
// exchange, whatever it is made of.
package exchangetest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"switchboard/internal/delivery"
	"switchboard/internal/exchange"
	"switchboard/internal/proc"
)

// Subject is an empty store under test, and what the suite must be able to do
// to it from outside.
type Subject struct {
	Store exchange.Exchange
	// Reopen returns a second handle on the same exchange, as another process
	// would have it. It may return Store.
	Reopen func() exchange.Exchange
	// Age lets time pass for the owner of a session: its last beat is d older.
	Age func(key exchange.SessionKey, d time.Duration)
	// Kill ends an ownership the way the death of the owner's process does.
	Kill func(key exchange.SessionKey, l exchange.Lease)
	// Remove takes a session's record away, as somebody who cleans up might.
	Remove func(key exchange.SessionKey)
}

// Run runs the suite. New is called for each case.
func Run(t *testing.T, New func(t *testing.T) Subject) {
	for _, c := range []struct {
		name string
		run  func(t *testing.T, s *suite)
	}{
		{"OwnedOnce", testOwnedOnce},
		{"OwnersAreApart", testOwnersAreApart},
		{"HandOver", testHandOver},
		{"Release", testRelease},
		{"Released", testReleased},
		{"Killed", testKilled},
		{"Silent", testSilent},
		{"Record", testRecord},
		{"Published", testPublished},
		{"SessionsInOrder", testSessionsInOrder},
		{"NobodyThere", testNobodyThere},
		{"MailWaits", testMailWaits},
		{"MailThrough", testMailThrough},
		{"PostTwice", testPostTwice},
		{"SendingOrder", testSendingOrder},
		{"Settle", testSettle},
		{"MessageSize", testMessageSize},
		{"NotUTF8", testNotUTF8},
		{"NoKind", testNoKind},
		{"ChangedNeverMisses", testChangedNeverMisses},
		{"Rings", testRings},
		{"Memory", testMemory},
		{"StrangeKeys", testStrangeKeys},
		{"Journal", testJournal},
		{"JournalStamps", testJournalStamps},
		{"JournalRefuses", testJournalRefuses},
		{"JournalCursors", testJournalCursors},
		{"JournalsAreApart", testJournalsAreApart},
		{"JournalAppenders", testJournalAppenders},
		{"Rewrite", testRewrite},
		{"RewriteTwice", testRewriteTwice},
		{"RewriteToNothing", testRewriteToNothing},
		{"RewriteWhileAppending", testRewriteWhileAppending},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := New(t)
			c.run(t, &suite{Subject: x, t: t, other: x.Reopen()})
		})
	}
	t.Run("Model", func(t *testing.T) { testModel(t, New) })
}

// suite is one case's store, with helpers that end the case on trouble.
type suite struct {
	Subject
	t     *testing.T
	other exchange.Exchange
}

func key(id string) exchange.SessionKey { return exchange.SessionKey{Host: exchange.PiHost, ID: id} }

// deadline bounds every wait for something that must happen.
const deadline = 10 * time.Second

// until waits for a condition.
func until(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(deadline); !cond(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %s: %s", deadline, what)
		}
	}
}

func (s *suite) own(x exchange.Exchange, k exchange.SessionKey) exchange.Lease {
	s.t.Helper()
	l, err := x.Own(k)
	if err != nil {
		s.t.Fatalf("Own(%s): %v", k, err)
	}
	s.t.Cleanup(func() { l.Release(false) })
	return l
}

// record is a record as a sidecar would publish it; the session's process is
// this one.
func record(k exchange.SessionKey) exchange.Record {
	return exchange.Record{
		Key: k, Incarnation: "inc-" + k.ID, Name: "name of " + k.ID, Cwd: "/w/" + k.ID, Model: "lab/scripted", Mode: "rpc",
		File: "/s/" + k.ID + ".jsonl", State: "idle", Agent: proc.Self(), Wakes: true,
		Since: time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC), Joined: time.Date(2026, 7, 1, 11, 0, 0, 0, time.UTC),
	}
}

// join owns a session and publishes its record.
func (s *suite) join(x exchange.Exchange, k exchange.SessionKey) exchange.Lease {
	s.t.Helper()
	l := s.own(x, k)
	s.must("Publish", l.Publish(record(k)))
	return l
}

func (s *suite) must(what string, err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatalf("%s: %v", what, err)
	}
}

func message(text string) delivery.Message {
	now := time.Now()
	return delivery.Message{
		ID: exchange.NewID(now), Kind: delivery.Call, Text: text, Sent: now.UTC().Truncate(time.Millisecond),
		From: delivery.Sender{Session: "sender", Name: "ann", PID: 7, Cwd: "/w"},
	}
}

func (s *suite) post(x exchange.Exchange, to exchange.SessionKey, text string) delivery.Message {
	s.t.Helper()
	m := message(text)
	s.must("Post", x.Post(to, m))
	return m
}

// wantPresence asks both handles, by key and by list.
func (s *suite) wantPresence(k exchange.SessionKey, want exchange.Presence) {
	s.t.Helper()
	for name, x := range map[string]exchange.Exchange{"store": s.Store, "second handle": s.other} {
		got := exchange.Gone
		one, err := x.Session(k)
		switch {
		case err == nil:
			got = one.Presence
		case !errors.Is(err, exchange.ErrGone):
			s.t.Errorf("%s: Session(%s): %v, want it or ErrGone", name, k, err)
		}
		if got != want {
			s.t.Errorf("%s: Session(%s) is %s, want %s", name, k, got, want)
		}
		all, err := x.Sessions()
		s.must("Sessions", err)
		got = exchange.Gone
		for _, one := range all {
			if one.Key == k {
				got = one.Presence
			}
		}
		if got != want {
			s.t.Errorf("%s: in Sessions, %s is %s, want %s", name, k, got, want)
		}
	}
}

// wantMail asks both handles for the ids of an inbox, in order.
func (s *suite) wantMail(k exchange.SessionKey, want ...delivery.Message) {
	s.t.Helper()
	for name, x := range map[string]exchange.Exchange{"store": s.Store, "second handle": s.other} {
		got, err := x.Waiting(k)
		s.must("Waiting", err)
		if diff := mailDiff(want, got); diff != "" {
			s.t.Errorf("%s: Waiting(%s): %s", name, k, diff)
		}
	}
}

func mailDiff(want, got []delivery.Message) string {
	if !bytes.Equal(asJSON(want), asJSON(got)) {
		return fmt.Sprintf("got %s, want %s", brief(got), brief(want))
	}
	return ""
}

func brief(ms []delivery.Message) string {
	parts := make([]string, len(ms))
	for i, m := range ms {
		parts[i] = fmt.Sprintf("%s:%.20q", m.ID, m.Text)
	}
	return "[" + strings.Join(parts, " ") + "]"
}

func asJSON[T any](list []T) []byte {
	data, err := json.Marshal(append([]T{}, list...))
	if err != nil {
		panic(err) // plain structs
	}
	return data
}
