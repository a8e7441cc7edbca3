//go:build linux

package firstlight

import (
	"os"
	"strings"
	"syscall"
	"testing"

	"switchboard/e2e/model"
	"switchboard/e2e/rig"
)

// A sidecar that is stopped in the middle of a call of our tool: the call ends
// with an error after a while, in print mode too, and Pi goes on.
func TestToolWithStoppedSidecar(t *testing.T) {
	t.Parallel()
	w := rig.NewWorld(t)
	w.Model.Script("p", bash("until [ -e go ]; do sleep 0.02; done"), touchtone(map[string]any{"action": "list"}), model.Step{Text: "went on"})
	p := w.StartPi(t, rig.Options{Session: "p", Mode: rig.Print, Args: []string{"--session-id", "stopped", "work"}})
	listed(t, w, "stopped")
	_ = syscall.Kill(p.Sidecars()[0], syscall.SIGSTOP)
	w.Write("go", "")
	answer := w.Model.WaitRequest(t, "p", 3, rig.Watchdog).Last().Text
	if !strings.Contains(answer, "does not respond") {
		t.Errorf("the tool answered %q", answer)
	}
	if code := p.WaitExit(rig.Watchdog); code != 0 {
		t.Errorf("exit %d", code)
	}
}

// The root is removed while sessions run: they are back on a new roster within
// moments, and calls go through.
func TestRootRemoved(t *testing.T) {
	t.Parallel()
	w := rig.NewWorld(t)
	b := start(t, w, rig.Options{Session: "b"})
	a := start(t, w, rig.Options{Session: "a"})
	removed := store(t, w).Root()
	rig.Eventually(t, rig.Watchdog, "the root to be removed", func() bool { return os.RemoveAll(removed) == nil })
	listed(t, w, a.SessionID(), b.SessionID())
	w.Model.Script("a", send(b.SessionID(), "rebuilt-01."), model.Step{Text: "ok"})
	a.Run("tell b")
	once(t, w.Model.WaitRequest(t, "b", 1, rig.Watchdog), []string{"rebuilt-01."})
	emptied(t, store(t, w), b.SessionID())
}

// After the root was removed a second process may be the first to own the
// session again. Whoever is second yields and says so.
func TestRootRemovedUnderTwo(t *testing.T) {
	t.Parallel()
	w := rig.NewWorld(t)
	first := start(t, w, rig.Options{Session: "first", Args: []string{"--session-id", "shared"}})
	first.Run("hello")
	// A session that writes meanwhile can make one removal fail.
	root := store(t, w).Root()
	rig.Eventually(t, rig.Watchdog, "the root to be removed", func() bool { return os.RemoveAll(root) == nil })
	second := w.StartPi(t, rig.Options{Session: "second", Args: []string{"--session", first.SessionFile()}})
	elsewhere := func(p *rig.Pi) bool { return strings.Contains(p.Statuses()["switchboard"], "session open elsewhere") }
	rig.Eventually(t, rig.Watchdog, "one of the two to yield", func() bool { return elsewhere(first) != elsewhere(second) })
	owner := second
	if elsewhere(second) {
		owner = first
	}
	for range 20 {
		if r, err := store(t, w).Session(key("shared")); err != nil || r.Agent.PID != owner.PID {
			t.Fatalf("the roster names process %d (%v), the owner is %d", r.Agent.PID, err, owner.PID)
		}
	}
}

// A stopped sidecar that outlives its Pi holds the session: the human of the
// resumed session reads which process that is and what mends it.
func TestLeftoverSidecar(t *testing.T) {
	t.Parallel()
	w := rig.NewWorld(t)
	s := store(t, w)
	first := start(t, w, rig.Options{Session: "first", Args: []string{"--session-id", "stuck"}})
	leftover := first.Sidecars()[0]
	_ = syscall.Kill(leftover, syscall.SIGSTOP)
	first.Kill(syscall.SIGKILL)
	first.WaitExit(rig.Watchdog)
	second := w.StartPi(t, rig.Options{Session: "second", Args: []string{"--session-id", "stuck"}})
	second.SessionID()
	rig.Eventually(t, rig.Watchdog, "a line for the human", func() bool { return len(faults(second)) > 0 })
	told := faults(second)[0]
	_, command, ok := strings.Cut(told, "mend it with: ")
	if !ok || !strings.HasPrefix(command, "kill -9 ") {
		t.Fatalf("the human was told %q", told)
	}
	if out, err := w.Shell(command); err != nil {
		t.Fatalf("%s: %v: %s", command, err, out)
	}
	rig.Eventually(t, rig.Watchdog, "the second to own the session", func() bool {
		r, err := s.Session(key("stuck"))
		return err == nil && r.Agent.PID == second.PID
	})
}
