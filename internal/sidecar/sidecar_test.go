package sidecar_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"switchboard/internal/agent"
	"switchboard/internal/delivery"
	"switchboard/internal/exchange"
	"switchboard/internal/exchange/memstore"
	"switchboard/internal/proc"
	"switchboard/internal/sidecar"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// host is a small Pi: it takes every wake, and what it took is in its file.
type host struct {
	mu     sync.Mutex
	taken  []string
	unread []string
	told   []string
	status string
}

func (h *host) Wake(o agent.Handover) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.taken = append(h.taken, o.Details.IDs...)
	h.unread = append(h.unread, o.Details.IDs...)
}

func (h *host) Tell(text string, _ bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.told = append(h.told, text)
}

func (h *host) Hold(string, time.Duration) {}

func (h *host) Status(text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.status = text
}

func (h *host) Show(agent.View) {}

func (h *host) Deck(int) {}

func (h *host) Siblings([]exchange.Session) {}

func (h *host) Transcript() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	ids := h.unread
	h.unread = nil
	return ids
}

func (h *host) get(f func(*host) string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return f(h)
}

var key = exchange.SessionKey{Host: "pi", ID: "s"}

func start(store exchange.Exchange, h *host, pid int) *sidecar.Sidecar {
	return sidecar.Start(sidecar.Config{
		Exchange: store, Host: h, Log: slog.New(slog.DiscardHandler), Agent: proc.ID{PID: pid},
		Session: agent.Session{Key: key, Name: "s", Cwd: "/", PID: pid, Wakes: true},
	})
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("still waiting for %s", what)
		}
	}
}

func post(t *testing.T, store exchange.Exchange) string {
	t.Helper()
	id := exchange.NewID(time.Now())
	if err := store.Post(key, delivery.Message{ID: id, Kind: delivery.Call, Text: "x", Sent: time.Now()}); err != nil {
		t.Fatal(err)
	}
	return id
}

func empty(t *testing.T, store exchange.Exchange) func() bool {
	return func() bool {
		ms, err := store.Waiting(key)
		if err != nil {
			t.Fatal(err)
		}
		return len(ms) == 0
	}
}

func TestWakeSettleLeave(t *testing.T) {
	store, h := memstore.New(time.Now), &host{}
	s := start(store, h, 1)
	id := post(t, store)
	eventually(t, "the message to be settled", empty(t, store))
	if got := h.get(func(h *host) string { return h.taken[0] }); got != id {
		t.Errorf("the host was handed %s, want %s", got, id)
	}
	s.Leave(false)
	if _, err := store.Session(key); err != exchange.ErrGone {
		t.Errorf("after it left, Session = %v", err)
	}
	if _, err := s.Ask(t.Context(), func(r agent.Request) agent.Event { return agent.ToolAbout{Req: r} }); err == nil {
		t.Error("it answers after it left")
	}
	s.Event(agent.Ticked{}) // must not hang
	s.Leave(true)
}

// A successor of the same process waits for its predecessor without a word; a
// stranger says where the session is open, and takes over when it is free.
func TestHandOverAndTakeOver(t *testing.T) {
	store, h1, h2, h3 := memstore.New(time.Now), &host{}, &host{}, &host{}
	first := start(store, h1, 1)
	joined := func() exchange.Record {
		r, err := store.Session(key)
		if err != nil {
			return exchange.Record{}
		}
		return r.Record
	}
	eventually(t, "the first on the roster", func() bool { return joined().Generation != "" })
	before := joined()
	second := start(store, h2, 1)
	stranger := start(store, h3, 2)
	eventually(t, "the stranger's footer", func() bool { return h3.get(func(h *host) string { return h.status }) != "" })
	first.Leave(true)
	eventually(t, "the second to own", func() bool { return joined().Generation != before.Generation })
	if r := joined(); r.Incarnation != before.Incarnation || !r.Joined.Equal(before.Joined) {
		t.Errorf("the successor joined anew: %+v, before %+v", r, before)
	}
	eventually(t, "the successor's callsign", func() bool { return h2.get(func(h *host) string { return h.status }) == "📡 alpha" })
	second.Leave(false)
	eventually(t, "the stranger to own", func() bool { return joined().Agent.PID == 2 })
	if joined().Incarnation == before.Incarnation {
		t.Error("another process goes on as the same incarnation")
	}
	eventually(t, "a footer without trouble", func() bool { return h3.get(func(h *host) string { return h.status }) == "📡 alpha" })
	stranger.Leave(false)
}

// Killed between handover and settling, its successor settles by the
// transcript and hands nothing over twice.
func TestAdopts(t *testing.T) {
	store, h := memstore.New(time.Now), &host{}
	id := post(t, store)
	h.unread = []string{id} // it is in the file already
	s := start(store, h, 1)
	eventually(t, "the message to be settled", empty(t, store))
	s.Leave(false)
	if len(h.taken) > 0 {
		t.Errorf("handed over again: %v", h.taken)
	}
}

// A request whose time is up before its turn comes is dropped.
func TestLateRequest(t *testing.T) {
	s := start(memstore.New(time.Now), &host{}, 1)
	defer s.Leave(false)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if v, err := s.Ask(ctx, func(r agent.Request) agent.Event { return agent.ToolAbout{Req: r} }); err == nil {
		t.Errorf("a late request was answered: %v", v)
	}
}

// full is a store whose disk is full while it says so.
type full struct {
	*memstore.Store
	mu  sync.Mutex
	err error
}

type fullLease struct {
	exchange.Lease
	store *full
}

func (f *full) Own(key exchange.SessionKey) (exchange.Lease, error) {
	l, err := f.Store.Own(key)
	return fullLease{l, f}, err
}

func (f *full) set(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
}

func (l fullLease) Publish(r exchange.Record) error {
	l.store.mu.Lock()
	defer l.store.mu.Unlock()
	if l.store.err != nil {
		return l.store.err
	}
	return l.Lease.Publish(r)
}

// A record that can't be written is told once, shown as long as it lasts, and
// tried again.
func TestFullDisk(t *testing.T) {
	store, h := &full{Store: memstore.New(time.Now)}, &host{}
	store.set(errors.New("no space left on device"))
	s := start(store, h, 1)
	defer s.Leave(false)
	eventually(t, "the footer", func() bool { return strings.Contains(h.get(func(h *host) string { return h.status }), "off") })
	if got := h.get(func(h *host) string { return strings.Join(h.told, "|") }); strings.Count(got, "no space left on device") != 1 {
		t.Errorf("the human was told %q", got)
	}
	store.set(nil)
	eventually(t, "a footer without trouble", func() bool { return h.get(func(h *host) string { return h.status }) == "📡 alpha" })
	if _, err := store.Session(key); err != nil {
		t.Errorf("Session = %v", err)
	}
}
