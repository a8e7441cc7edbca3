package dirstore

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"switchboard/internal/delivery"
	"switchboard/internal/exchange"
)

// sentAgo posts a message that is that old.
func sentAgo(t *testing.T, s *Store, id string, ago time.Duration) delivery.Message {
	t.Helper()
	at := time.Now().Add(-ago)
	m := newMessage("old")
	m.ID, m.Sent = ulid.MustNew(ulid.Timestamp(at), ulid.DefaultEntropy()).String(), at
	if err := s.Post(key(id), m); err != nil {
		t.Fatal(err)
	}
	return m
}

func wantMail(t *testing.T, s *Store, id string, want ...delivery.Message) {
	t.Helper()
	got, err := s.Waiting(key(id))
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != len(want) {
		t.Errorf("%s has %d messages, want %d", id, len(got), len(want))
		return
	}
	for i := range want {
		if got[i].ID != want[i].ID {
			t.Errorf("%s has %s, want %s", id, got[i].ID, want[i].ID)
		}
	}
}

// Mail and memory expire for those who are not there.
func TestSweepExpires(t *testing.T) {
	s := newStore(t)
	const week, hour = exchange.KeepMail, time.Hour
	mail := make(map[string][]delivery.Message)
	for _, id := range []string{"live", "leaving", "absent", "emptied"} {
		l := publish(t, s, record(id))
		if err := l.Remember([]byte("m")); err != nil {
			t.Fatal(err)
		}
		old := time.Now().Add(-week - hour)
		if err := os.Chtimes(s.memoryPath(id), old, old); err != nil {
			t.Fatal(err)
		}
		mail[id] = []delivery.Message{sentAgo(t, s, id, week+hour), sentAgo(t, s, id, week-hour), post(t, s, id, "new")}
		if id == "emptied" {
			if err := l.Settle(mail[id][1].ID, mail[id][2].ID); err != nil {
				t.Fatal(err)
			}
		}
		if id != "live" {
			if err := l.Release(id == "leaving"); err != nil {
				t.Fatal(err)
			}
		}
	}
	young := own(t, s, "young")
	if err := young.Remember([]byte("m")); err != nil {
		t.Fatal(err)
	}
	if err := young.Release(false); err != nil {
		t.Fatal(err)
	}
	for range 2 { // a second time there is nothing to do
		if err := s.Sweep(); err != nil {
			t.Fatal(err)
		}
		wantMail(t, s, "live", mail["live"]...)
		wantMail(t, s, "leaving", mail["leaving"]...) // still on the roster
		wantMail(t, s, "absent", mail["absent"][1:]...)
		wantMail(t, s, "emptied")
		for path, want := range map[string]bool{
			s.inboxPath("emptied"): false, s.inboxPath("absent"): true,
			s.memoryPath("live"): true, s.memoryPath("leaving"): true, s.memoryPath("absent"): false, s.memoryPath("young"): true,
		} {
			if got := exist(path); got != want {
				t.Errorf("%s exists: %v, want %v", path, got, want)
			}
		}
	}
}

// Half-written files of dead writers go; those of a writer at work stay.
func TestSweepTemporaryFiles(t *testing.T) {
	s := newStore(t)
	publish(t, s, record("a"))
	post(t, s, "absent", "x")
	var olds, fresh []string
	old := time.Now().Add(-2 * time.Hour)
	for _, dir := range []string{sessionsDir, ownersDir, journalsDir, memoryDir, bellsDir, filepath.Join(inboxesDir, "absent"), filepath.Join(inboxesDir, "a")} {
		path := s.path(dir, ".tmp-123")
		writeFile(t, path, "half")
		if err := os.Chtimes(path, old, old); err != nil {
			t.Fatal(err)
		}
		olds = append(olds, path)
		path = s.path(dir, ".tmp-456")
		writeFile(t, path, "half")
		fresh = append(fresh, path)
	}
	if problems, err := s.Problems(); len(problems) > 0 || err != nil {
		t.Errorf("Problems = %v, %v; want none", problems, err)
	}
	if err := s.Sweep(); err != nil {
		t.Fatal(err)
	}
	for _, path := range olds {
		if exist(path) {
			t.Errorf("%s is still there", path)
		}
	}
	for _, path := range fresh {
		if !exist(path) {
			t.Errorf("%s was removed", path)
		}
	}
}
