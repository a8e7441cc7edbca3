package dirstore

import (
	"errors"
	"io/fs"
	"os"
	"sync"
	"testing"
	"time"

	"switchboard/internal/exchange"
	"switchboard/internal/proc"
)

// presenceOf asks by key and by list; they must agree.
func presenceOf(t *testing.T, s *Store, id string) exchange.Presence {
	t.Helper()
	one := exchange.Gone
	if x, err := s.Session(key(id)); err == nil {
		one = x.Presence
	} else if !errors.Is(err, exchange.ErrGone) {
		t.Errorf("Session(%s): %v", id, err)
	}
	all, err := s.Sessions()
	if err != nil {
		t.Fatal(err)
	}
	listed := exchange.Gone
	for _, x := range all {
		if x.Key == key(id) {
			listed = x.Presence
		}
	}
	if one != listed {
		t.Errorf("Session(%s) is %s, in Sessions it is %s", id, one, listed)
	}
	return one
}

func exist(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// deadProcess is one that ran and ended.
func deadProcess(t *testing.T, s *Store) proc.ID {
	t.Helper()
	c := start(t, s, "own", "x-dead")
	c.expect("owned")
	id, err := proc.Of(c.cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	c.kill()
	return id
}

func TestPresence(t *testing.T) {
	s := newStore(t)
	self := proc.Self()
	change := func(f func(id *proc.ID)) proc.ID {
		id := self
		f(&id)
		return id
	}
	dead := deadProcess(t, s)
	reused := change(func(id *proc.ID) { id.Start += "0" })
	noStart := change(func(id *proc.ID) { id.Start = "" })
	otherBoot := change(func(id *proc.ID) { id.Boot = "another boot" })
	elsewhere := proc.ID{Host: "elsewhere", Boot: "its boot", PID: 1, Start: "1"}
	container := change(func(id *proc.ID) { id.PIDNS = "pid:[1]" })
	const s1 = time.Second

	for _, tt := range []struct {
		name   string
		agent  proc.ID
		held   bool
		age    time.Duration
		want   exchange.Presence
		pruned bool
	}{
		{"owned and fresh", self, true, 0, exchange.Live, false},
		{"owned, quiet for a while", self, true, 40 * s1, exchange.Live, false},
		{"owned, silent", self, true, 46 * s1, exchange.Unresponsive, false},
		{"owned, silent for days", self, true, 99 * time.Hour, exchange.Unresponsive, false},
		{"lock free, beat fresh", self, false, 0, exchange.Live, false},
		{"lock free, still in the lease", self, false, 5 * s1, exchange.Live, false},
		{"lock free, beat old", self, false, 11 * s1, exchange.Gone, true},
		{"start time unknown, owned", noStart, true, 0, exchange.Live, false},
		{"start time unknown, lock free", noStart, false, 11 * s1, exchange.Gone, true},
		{"process dead", dead, false, 0, exchange.Gone, true},
		{"process dead, its owner not yet", dead, true, 0, exchange.Gone, false},
		{"pid reused", reused, false, 0, exchange.Gone, true},
		{"another boot", otherBoot, false, 0, exchange.Gone, true},
		{"no pid", proc.ID{Host: self.Host, Boot: self.Boot, PIDNS: self.PIDNS}, false, 0, exchange.Gone, true},
		{"another machine, fresh", elsewhere, false, 0, exchange.Live, false},
		{"another machine, quiet for a while", elsewhere, false, 40 * s1, exchange.Live, false},
		{"another machine, silent", elsewhere, false, 46 * s1, exchange.Gone, false},
		{"another machine, silent for days", elsewhere, false, 99 * time.Hour, exchange.Gone, false},
		{"another container, fresh", container, false, 0, exchange.Live, false},
		{"another container, silent", container, false, 46 * s1, exchange.Gone, false},
	} {
		if tt.agent == container && self.PIDNS == "" || tt.agent == otherBoot && self.Boot == "" || tt.agent == reused && self.Start == "" {
			continue // this system doesn't tell
		}
		t.Run(tt.name, func(t *testing.T) {
			r := record("x")
			r.Agent = tt.agent
			l := publish(t, s, r)
			if !tt.held {
				l.die()
			}
			b := newBeat(l.generation)
			b.Awake, b.Wall = b.Awake-tt.age, b.Wall.Add(-tt.age)
			if tt.agent == elsewhere {
				b.Boot, b.Awake = "its boot", 12*time.Hour // its clock says nothing here
			}
			writeFile(t, s.beatPath("x"), b)
			if got := presenceOf(t, s, "x"); got != tt.want {
				t.Errorf("presence is %s, want %s", got, tt.want)
			}
			if pruned := !exist(s.recordPath("x")); pruned != tt.pruned {
				t.Errorf("record pruned: %v, want %v", pruned, tt.pruned)
			}
			if err := s.Sweep(); err != nil {
				t.Errorf("Sweep: %v", err)
			}
			if pruned := !exist(s.recordPath("x")); pruned != tt.pruned {
				t.Errorf("after Sweep, record pruned: %v, want %v", pruned, tt.pruned)
			}
			_ = os.Remove(s.recordPath("x"))
			_ = os.Remove(s.beatPath("x"))
			l.die()
		})
	}
}

// A beat that can't be read is an old one: the lock decides.
func TestDamagedBeat(t *testing.T) {
	s := newStore(t)
	for _, text := range []string{"", "{", `{"awake":"x"}`, "missing"} {
		l := publish(t, s, record("a"))
		spoil := func() {
			writeFile(t, s.beatPath("a"), text)
			if text == "missing" {
				_ = os.Remove(s.beatPath("a"))
			}
		}
		spoil()
		if got := presenceOf(t, s, "a"); got == exchange.Gone || !exist(s.recordPath("a")) {
			t.Errorf("beat %q, lock held: %s", text, got)
		}
		if err := l.Beat(); err != nil {
			t.Fatal(err)
		}
		if got := presenceOf(t, s, "a"); got != exchange.Live {
			t.Errorf("after a beat: %s, want live", got)
		}
		spoil()
		l.die()
		if got := presenceOf(t, s, "a"); got != exchange.Gone || exist(s.recordPath("a")) {
			t.Errorf("beat %q, lock free: %s, want gone and pruned", text, got)
		}
	}
}

// Who looked at a dead owner's record, and then is slow, must not remove the
// successor's.
func TestPruneLeavesTheSuccessor(t *testing.T) {
	s := newStore(t)
	r := record("a")
	old := publish(t, s, r)
	age(t, s, "a", time.Hour)
	old.die()
	seen, err := s.readRecord("a")
	if err != nil {
		t.Fatal(err)
	}
	next := publish(t, s, r)
	s.prune(seen)
	if !next.Published() {
		t.Fatal("the record of an owner was pruned")
	}
	// Even when that one has just handed over, and nobody holds the lock.
	if err := next.Release(true); err != nil {
		t.Fatal(err)
	}
	s.prune(seen)
	if got := presenceOf(t, s, "a"); got != exchange.Live {
		t.Errorf("after a late prune the session is %s, want live", got)
	}
	// The same owner, which has beaten since.
	now, err := s.readRecord("a")
	if err != nil {
		t.Fatal(err)
	}
	s.prune(now)
	if got := presenceOf(t, s, "a"); got != exchange.Live {
		t.Errorf("after a prune of a fresh record the session is %s, want live", got)
	}
}

// Peers that clean up are never taken for an owner, and never take a new
// owner's record.
func TestOwnWhilePeersPrune(t *testing.T) {
	s := newStore(t)
	done := make(chan struct{})
	var peers sync.WaitGroup
	for range 3 {
		peer := open(t, s.root)
		peers.Go(func() {
			for {
				select {
				case <-done:
					return
				case <-time.After(time.Millisecond):
				}
				if _, err := peer.Sessions(); err != nil {
					t.Errorf("Sessions: %v", err)
				}
			}
		})
	}
	for range 60 {
		x, err := s.Own(key("a"))
		if err != nil {
			t.Errorf("Own: %v", err)
			continue
		}
		l := x.(*lease)
		if err := l.Publish(record("a")); err != nil {
			t.Errorf("Publish: %v", err)
		}
		if !l.Published() {
			t.Error("a peer took the record of an owner")
		}
		if err := writeJSON(s.beatPath("a"), beat{Generation: l.generation, Wall: now().Add(-time.Hour)}); err != nil {
			t.Error(err)
		}
		l.die()
	}
	close(done)
	peers.Wait()
}

// The owner is another process: it is named, and its death frees the session.
func TestOwnedByAnotherProcess(t *testing.T) {
	s := newStore(t)
	c := start(t, s, "own", "a")
	c.expect("owned")
	_, err := s.Own(key("a"))
	var owned *exchange.OwnedError
	if !errors.As(err, &owned) || owned.By.Agent.PID != c.cmd.Process.Pid {
		t.Fatalf("Own: %v, want an OwnedError that names process %d", err, c.cmd.Process.Pid)
	}
	if got := presenceOf(t, s, "a"); got != exchange.Live {
		t.Errorf("it is %s, want live", got)
	}
	m := post(t, s, "a", "kept")
	c.kill()
	if got := presenceOf(t, s, "a"); got != exchange.Gone {
		t.Errorf("after kill -9 it is %s, want gone", got)
	}
	own(t, s, "a")
	if got, err := s.Waiting(key("a")); len(got) != 1 || got[0].ID != m.ID || err != nil {
		t.Errorf("Waiting = %v, %v; want what was posted", got, err)
	}
}

// A sidecar that dies is not missed while a successor may come.
func TestOwnerDiesAgentLives(t *testing.T) {
	s := newStore(t)
	c := start(t, s, "own for parent", "a")
	c.expect("owned")
	c.kill()
	if got := presenceOf(t, s, "a"); got != exchange.Live {
		t.Errorf("right after kill -9 of the owner it is %s, want live", got)
	}
	age(t, s, "a", exchange.LeaseTime+time.Second)
	if got := presenceOf(t, s, "a"); got != exchange.Gone || exist(s.recordPath("a")) {
		t.Errorf("after the lease it is %s, want gone and pruned", got)
	}
	publish(t, s, record("a"))
	if got := presenceOf(t, s, "a"); got != exchange.Live {
		t.Errorf("with a successor it is %s, want live", got)
	}
}

// An orderly end of another process takes its record.
func TestOtherProcessReleases(t *testing.T) {
	s := newStore(t)
	c := start(t, s, "own for parent", "a")
	c.expect("owned")
	if err := c.stdin.Close(); err != nil {
		t.Fatal(err)
	}
	until(t, "the session is gone", func() bool { return !exist(s.recordPath("a")) })
	until(t, "the lock is free", func() bool {
		l, err := s.Own(key("a"))
		if err == nil {
			err = l.Release(false)
		}
		return err == nil
	})
}
