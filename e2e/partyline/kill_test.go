//go:build linux

package partyline

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"switchboard/e2e/rig"
	"switchboard/internal/exchange"
	"switchboard/internal/proc"
)

// A recipient that dies while the messages are being written is reported as
// such, and reads its message when it is resumed.
func TestRecipientDiesInTheMiddle(t *testing.T) {
	t.Parallel()
	w := rig.NewWorld(t)
	s := store(t, w)
	a := startAs(t, w, "a")
	// A long row of sessions that the test plays, all written to before b.
	const row = 200
	for i := range row {
		k := key(fmt.Sprintf("row-%03d", i))
		lease, err := s.Own(k)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = lease.Release(false) })
		err = lease.Publish(exchange.Record{
			Key: k, Incarnation: exchange.NewID(time.Now()), Cwd: w.Dir, State: "idle", Agent: proc.Self(), Joined: time.Now().UTC(), Wakes: true,
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	b := startAs(t, w, "b")
	b.Run("hello")

	var killed sync.WaitGroup
	stop := make(chan struct{})
	killed.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			if ms, err := s.Waiting(key("row-000")); err == nil && len(ms) > 0 {
				// The sender stands still meanwhile, or it might be done first.
				for _, pid := range a.Sidecars() {
					_ = syscall.Kill(pid, syscall.SIGSTOP)
					defer syscall.Kill(pid, syscall.SIGCONT)
				}
				b.Kill(syscall.SIGKILL)
				b.WaitExit(rig.Watchdog)
				return
			}
		}
	})
	o := call(t, w, a, broadcast("middle-01.", w.Dir))
	close(stop)
	killed.Wait()
	if n := o.count(w.Dir); n != row+2 {
		t.Errorf("%d sessions matched, want %d", n, row+2)
	}
	if n := len(o.recipients()); n != row+1 || o.IsError {
		t.Errorf("%d deliveries, want %d: %s", n, row+1, o.Text)
	}
	contains(t, "the result", o.Text, "b (session b-id): left just now: the message waits seven days for its resume")
	for _, d := range o.Details.Delivered {
		if d.Left != (d.Entry.ID == "b-id") {
			t.Errorf("%s left: %v", d.Entry.ID, d.Left)
		}
	}
	// From now on it matches nobody.
	refused(t, "the dead one", call(t, w, a, broadcast("x-01.", "b", "row-000")), `no live session matches "b"`, "nothing was sent")
	b = startAs(t, w, "b")
	emptied(t, s, "b-id")
	once(t, b.SessionFile(), "middle-01.")
	if all, _ := received(t, b.SessionFile()); strings.Contains(all, "x-01.") {
		t.Error("a refused broadcast arrived")
	}
}

// A stopped recipient is told apart; killed while its message waits, it reads
// it after its resume. What can't be written is reported, and so is what nobody
// can tell.
func TestStoppedAndFailedRecipients(t *testing.T) {
	t.Parallel()
	w := rig.NewWorld(t)
	s := store(t, w)
	a, b, c := startAs(t, w, "a"), startAs(t, w, "b"), startAs(t, w, "c")
	d, e := startAs(t, w, "d"), startAs(t, w, "e")
	b.Run("hello")
	_ = syscall.Kill(b.PID, syscall.SIGSTOP)
	// c's inbox leads nowhere, so nothing can be in it; in the place of e's is
	// a file, of which nobody can tell what it holds.
	inbox := func(session string) string { return filepath.Join(root(w), "inboxes", session) }
	for _, session := range []string{"c-id", "e-id"} {
		if err := os.Remove(inbox(session)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("nowhere", inbox("c-id")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(inbox("e-id"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	o := call(t, w, a, broadcast("odd-01.", w.Dir))
	ids := o.recipients()
	slices.Sort(ids)
	if !slices.Equal(ids, []string{"b-id", "d-id"}) || len(o.Details.Failed) != 1 || len(o.Details.Indeterminate) != 1 || o.IsError {
		t.Errorf("in the inboxes of %v, failed %s, indeterminate %s, error %v", ids, o.Details.Failed, o.Details.Indeterminate, o.IsError)
	}
	contains(t, "the result", o.Text, "in 2 of 4 inboxes", "b (session b-id): does not respond at the moment", "NOT sent to c (session c-id): ", "perhaps sent to e (session e-id): ")
	if o := call(t, w, a, broadcast("odd-02.", "c")); !o.IsError || len(o.Details.Failed) != 1 {
		t.Errorf("a broadcast that reached nobody: %+v", o)
	}
	_ = syscall.Kill(b.PID, syscall.SIGKILL)
	b.WaitExit(rig.Watchdog)
	if n := waiting(t, s, "b-id"); n != 1 {
		t.Errorf("%d messages wait for the dead session, want 1", n)
	}
	b = startAs(t, w, "b")
	emptied(t, s, "b-id")
	once(t, b.SessionFile(), "odd-01.")
	emptied(t, s, "d-id")
	once(t, d.SessionFile(), "odd-01.")
	// Both find their inboxes again.
	for _, session := range []string{"c-id", "e-id"} {
		if err := os.Remove(inbox(session)); err != nil {
			t.Fatal(err)
		}
	}
	if o := call(t, w, a, broadcast("odd-03.", "c", "e")); len(o.recipients()) != 2 {
		t.Error(o.Text)
	}
	emptied(t, s, "c-id")
	emptied(t, s, "e-id")
	once(t, c.SessionFile(), "odd-03.")
	once(t, e.SessionFile(), "odd-03.")
}
