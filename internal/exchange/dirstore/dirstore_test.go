package dirstore

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"switchboard/internal/delivery"
	"switchboard/internal/exchange"
	"switchboard/internal/exchange/exchangetest"
	"switchboard/internal/proc"
)

// The test binary is also the other process: DIRSTORE_TEST says what it does.
func TestMain(m *testing.M) {
	if role := os.Getenv("DIRSTORE_TEST"); role != "" {
		actAs(role)
		return
	}
	goleak.VerifyTestMain(m)
}

const deadline = 20 * time.Second

// until waits for a condition.
func until(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(deadline); !cond(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %s: %s", deadline, what)
		}
	}
}

func open(t *testing.T, root string) *Store {
	t.Helper()
	s, err := Open(root, "test")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// newStore is an exchange in an empty folder with a short path, so that its
// bells lie in it.
func newStore(t *testing.T) *Store {
	t.Helper()
	dir, err := os.MkdirTemp("", "ds")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return open(t, filepath.Join(dir, "x"))
}

func key(id string) exchange.SessionKey { return exchange.SessionKey{Host: exchange.PiHost, ID: id} }

func record(id string) exchange.Record {
	return exchange.Record{Key: key(id), Incarnation: "inc-" + id, Name: id, Cwd: "/w", State: "idle", Agent: proc.Self(), Joined: now()}
}

func own(t *testing.T, s *Store, id string) *lease {
	t.Helper()
	l, err := s.Own(key(id))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Release(false) })
	return l.(*lease)
}

// publish owns a session and publishes r for it.
func publish(t *testing.T, s *Store, r exchange.Record) *lease {
	t.Helper()
	l := own(t, s, r.Key.ID)
	if err := l.Publish(r); err != nil {
		t.Fatal(err)
	}
	return l
}

func newMessage(text string) delivery.Message {
	return delivery.Message{ID: exchange.NewID(time.Now()), Kind: delivery.Call, Text: text, Sent: now()}
}

func post(t *testing.T, s *Store, id, text string) delivery.Message {
	t.Helper()
	m := newMessage(text)
	if err := s.Post(key(id), m); err != nil {
		t.Fatal(err)
	}
	return m
}

// die lets go of what the system takes from a dead process, and no more.
func (l *lease) die() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.released = true
	if l.bell != nil {
		l.bell.Close()
	}
	_ = l.lock.Unlock()
}

// age makes a session's last beat d old.
func age(t *testing.T, s *Store, slug string, d time.Duration) {
	t.Helper()
	var b beat
	if err := readJSON(s.beatPath(slug), maxRecord, &b); err != nil {
		t.Fatal(err)
	}
	fresh := newBeat(b.Generation)
	b.Awake, b.Wall = fresh.Awake-d, fresh.Wall.Add(-d)
	writeFile(t, s.beatPath(slug), b)
}

// writeFile writes data, a string or something that becomes JSON, to a file.
func writeFile(t *testing.T, path string, data any) {
	t.Helper()
	text, ok := data.(string)
	if !ok {
		b, err := json.Marshal(data)
		if err != nil {
			t.Fatal(err)
		}
		text = string(b)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func newSubject(t *testing.T) exchangetest.Subject {
	s := newStore(t)
	return exchangetest.Subject{
		Store:  s,
		Reopen: func() exchange.Exchange { return open(t, s.root) },
		Age:    func(key exchange.SessionKey, d time.Duration) { age(t, s, key.Slug(), d) },
		Kill:   func(_ exchange.SessionKey, l exchange.Lease) { l.(*lease).die() },
		Remove: func(key exchange.SessionKey) {
			if err := os.Remove(s.recordPath(key.Slug())); err != nil {
				t.Error(err)
			}
		},
	}
}

func TestConformance(t *testing.T) { exchangetest.Run(t, newSubject) }

// A quiet inbox is not read again and again.
func TestChangedSettles(t *testing.T) {
	s := newStore(t)
	l := own(t, s, "a")
	post(t, s, "a", "one")
	if !l.Changed() {
		t.Error("Changed = false after a message")
	}
	until(t, "Changed settles", func() bool { return !l.Changed() })
	post(t, s, "a", "two")
	if !l.Changed() {
		t.Error("Changed = false after a message")
	}
}
