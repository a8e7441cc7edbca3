//go:build linux

package beacon

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"switchboard/e2e/model"
	"switchboard/e2e/rig"
	"switchboard/internal/beacon"
	"switchboard/internal/lifecycle"
)

// one is the only other session of a document, the zero one if there isn't
// exactly one.
func one(d beacon.Document) beacon.Other {
	if len(d.Sessions) != 1 {
		return beacon.Other{}
	}
	return d.Sessions[0]
}

// pair waits until one of two sessions shows its process's beacon, and returns
// both: the one that joined first, by whatever order their helpers started in.
func pair(t *testing.T, w *rig.World, pid int) (first, other string) {
	t.Helper()
	d := until(t, w, pid, "both sessions", func(d beacon.Document) bool { return one(d).ID != "" })
	return d.SessionID, one(d).ID
}

// inner is what the host calls a session.
func inner(session string) string { return strings.TrimPrefix(session, "inner-") }

// Two sessions of one process: one document, the other listed in it.
func TestTwoSessions(t *testing.T) {
	t.Parallel()
	w := rig.NewWorld(t)
	host := w.StartScript(t, "host", testdata(t, "two-sessions.mjs"))
	first, other := pair(t, w, host.PID)
	untilOther := func(name, state string) {
		t.Helper()
		until(t, w, host.PID, other+" "+state, func(d beacon.Document) bool {
			return d.SessionID == first && one(d) == beacon.Other{ID: other, Name: name, State: state}
		})
	}
	untilOther("", "idle")
	host.Do("name " + inner(other) + " helper")
	untilOther("helper", "idle")

	gate := make(chan struct{})
	w.Model.Script("host", model.Step{Text: "done", Wait: gate})
	host.Do("begin " + inner(other))
	untilOther("helper", "working")
	if d := query(t, w, host.PID); d.State != lifecycle.Idle {
		t.Errorf("%s is %s while %s works", first, say(d), other)
	}
	close(gate)
	untilOther("helper", "idle")
	sub := subscribe(t, w, host.PID)
	host.Do("prompt " + inner(first))
	sub.expect([]string{"working", "idle"})

	// Both helpers die, and come back in any order.
	old := query(t, w, host.PID)
	for _, pid := range rig.Sidecars(host.PID) {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	until(t, w, host.PID, "another instance of "+first, func(d beacon.Document) bool {
		return d.Instance != old.Instance && d.SessionID == first && one(d).ID == other
	})
	if n := documents(t, w); n != 1 {
		t.Errorf("%d documents, want one", n)
	}
}

// The end of either session leaves the document to the other.
func TestOneOfTwoSessionsEnds(t *testing.T) {
	t.Parallel()
	for _, firstEnds := range []bool{true, false} {
		t.Run(fmt.Sprintf("the first ends %v", firstEnds), func(t *testing.T) {
			t.Parallel()
			w := rig.NewWorld(t)
			host := w.StartScript(t, "host", testdata(t, "two-sessions.mjs"))
			stays, ends := pair(t, w, host.PID)
			if firstEnds {
				stays, ends = ends, stays
			}
			host.Do("dispose " + inner(ends))
			until(t, w, host.PID, "only "+stays, func(d beacon.Document) bool { return d.SessionID == stays && len(d.Sessions) == 0 })
			// It stays, and follows what that session does.
			sub := subscribe(t, w, host.PID)
			host.Do("prompt " + inner(stays))
			sub.expect([]string{"working", "idle"})
			_ = syscall.Kill(host.PID, syscall.SIGKILL)
			dark(t, w, host.PID)
		})
	}
}

// documents counts those in the folder.
func documents(t *testing.T, w *rig.World) int {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir(w), "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	return len(names)
}

// A home too deep for a socket beside the document.
func TestLongHome(t *testing.T) {
	t.Parallel()
	home, err := os.MkdirTemp("", "sb-"+strings.Repeat("l", 120)+"-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(home) })
	w := rig.NewWorldAt(t, home)
	p := start(t, w, rig.Options{})
	d := query(t, w, p.PID)
	if filepath.Dir(d.Socket) == dir(w) {
		t.Errorf("the socket is said to be at %s", d.Socket)
	}
	for path, want := range map[string]os.FileMode{d.Socket: 0o600, filepath.Dir(d.Socket): 0o700} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v, want %v", path, info, err, want)
		}
	}
	sub := subscribe(t, w, p.PID)
	p.Run("work")
	sub.expect([]string{"working", "idle"})
	p.Kill(syscall.SIGKILL)
	dark(t, w, p.PID)
	rig.Eventually(t, rig.Watchdog, "the socket to be gone", func() bool {
		_, err := os.Lstat(d.Socket)
		return errors.Is(err, fs.ErrNotExist)
	})
}

// Without an exchange nobody can be called, but everybody can be seen.
func TestNoExchange(t *testing.T) {
	t.Parallel()
	w := rig.NewWorld(t)
	p := start(t, w, rig.Options{Env: []string{"SWITCHBOARD_DIR=/proc/switchboard"}})
	sub := subscribe(t, w, p.PID)
	w.Model.Script("main", failing(500, "boom"), model.Step{Text: "recovered"})
	p.Run("work")
	sub.expect([]string{"working", "retrying 1/3 in 300ms", "working", "idle"})
	p.Kill(syscall.SIGKILL)
	dark(t, w, p.PID)
}
