//go:build linux

package firstlight

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"switchboard/e2e/model"
	"switchboard/e2e/rig"
)

// Where Pi runs and where its home is makes no difference.
func TestPlaces(t *testing.T) {
	t.Parallel()
	long := filepath.Join(os.TempDir(), "sb-"+strings.Repeat("l", 120)+"-")
	for _, c := range []struct {
		name  string
		world func(t *testing.T) *rig.World
	}{
		{"no repository", func(t *testing.T) *rig.World {
			w := rig.NewWorld(t)
			if err := os.RemoveAll(filepath.Join(w.Dir, ".git")); err != nil {
				t.Fatal(err)
			}
			return w
		}},
		{"no .local", func(t *testing.T) *rig.World {
			w := rig.NewWorld(t)
			if _, err := os.Stat(filepath.Join(w.Home, ".local")); err == nil {
				t.Fatal("the world has a .local already")
			}
			return w
		}},
		{"long home", func(t *testing.T) *rig.World {
			home, err := os.MkdirTemp(filepath.Dir(long), filepath.Base(long))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.RemoveAll(home) })
			return rig.NewWorldAt(t, home)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := c.world(t)
			b := start(t, w, rig.Options{Session: "b"})
			a := start(t, w, rig.Options{Session: "a"})
			w.Model.Script("a", send(b.SessionID(), "place-01."), model.Step{Text: "sent"})
			a.Run("tell b")
			once(t, w.Model.WaitRequest(t, "b", 1, rig.Watchdog), []string{"place-01."})
			if got := append(faults(a), faults(b)...); len(got) > 0 {
				t.Errorf("the human was told %q", got)
			}
		})
	}
}

// A root that can't be used: one line says what to do, and Pi goes on.
func TestUnusableRoots(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		root func(t *testing.T, w *rig.World) string
		want []string
	}{
		{"read-only", func(*testing.T, *rig.World) string { return "/proc/switchboard" }, []string{"/proc/switchboard", "SWITCHBOARD_DIR"}},
		{"of another user", func(t *testing.T, w *rig.World) string {
			dir := filepath.Join(w.Home, "theirs")
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.Chown(dir, 12345, 12345); err != nil {
				t.Skip("only root can give a folder away")
			}
			return dir
		}, []string{"another user", "SWITCHBOARD_DIR"}},
		{"open to others", func(t *testing.T, w *rig.World) string {
			dir := filepath.Join(w.Home, "open")
			if err := os.MkdirAll(filepath.Join(dir, "something"), 0o755); err != nil {
				t.Fatal(err)
			}
			return dir
		}, []string{"other users", "chmod 700"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := rig.NewWorld(t)
			b := w.StartPi(t, rig.Options{Session: "b", Env: []string{"SWITCHBOARD_DIR=" + c.root(t, w)}})
			w.Model.Script("b", touchtone(map[string]any{"action": "list"}), model.Step{Text: "went on"})
			if got := b.Run("hello"); got != "went on" {
				t.Errorf("Pi answered %q", got)
			}
			told := faults(b)
			if len(told) != 1 {
				t.Fatalf("the human was told %q, want one line", told)
			}
			for _, want := range c.want {
				if !strings.Contains(told[0], want) {
					t.Errorf("the line lacks %q: %s", want, told[0])
				}
			}
			if answer := w.Model.Turns("b")[1].Last().Text; !strings.Contains(answer, "switchboard is off") {
				t.Errorf("the tool answered %q", answer)
			}
		})
	}
}

// Without the program Pi works as before, and its human reads one line.
func TestNoProgram(t *testing.T) {
	t.Parallel()
	w := rig.NewWorld(t)
	b := w.StartPi(t, rig.Options{Session: "b", Env: []string{"SWITCHBOARD_BIN=/no/such/program"}})
	if got := b.Run("hello"); got != "ok" {
		t.Errorf("Pi answered %q", got)
	}
	if got := faults(b); len(got) != 1 || !strings.Contains(got[0], "/no/such/program") {
		t.Errorf("the human was told %q", got)
	}
}

func TestDisabled(t *testing.T) {
	t.Parallel()
	w := rig.NewWorld(t)
	b := w.StartPi(t, rig.Options{Session: "b", Env: []string{"SWITCHBOARD_DISABLE=1"}})
	b.Run("hello")
	if got := b.Sidecars(); len(got) > 0 {
		t.Errorf("sidecars %v run", got)
	}
	for _, tool := range w.Model.Turns("b")[0].Tools {
		if tool == "touchtone" {
			t.Error("the tool is offered")
		}
	}
}

// Another extension has a tool of our name: Pi starts, theirs is offered, the
// human is told, and calls still come in.
func TestTakenName(t *testing.T) {
	t.Parallel()
	w := rig.NewWorld(t)
	b := start(t, w, rig.Options{Session: "b", ExtensionPaths: []string{testdata(t, "other-touchtone.ts")}})
	w.Model.Script("b", touchtone(map[string]any{}), model.Step{Text: "ok"})
	b.Run("call it")
	if got := w.Model.Turns("b")[1].Last().Text; got != "the other touchtone" {
		t.Errorf("the tool answered %q", got)
	}
	if got := faults(b); len(got) != 1 || !strings.Contains(got[0], "touchtone") {
		t.Errorf("the human was told %q", got)
	}
	post(t, store(t, w), b.SessionID(), "taken-01.")
	once(t, w.Model.WaitRequest(t, "b", 3, rig.Watchdog), []string{"taken-01."})
}

// Two sessions in one process, as a web front end or a foreground subagent
// has them: each is on the roster and gets its own calls.
func TestTwoSessionsInOneProcess(t *testing.T) {
	t.Parallel()
	w := rig.NewWorld(t)
	s := store(t, w)
	host := w.StartScript(t, "host", testdata(t, "two-sessions.mjs"))
	listed(t, w, "inner-1", "inner-2")
	if first, err := s.Session(key("inner-1")); err != nil || first.Agent.PID == 0 {
		t.Errorf("inner-1: %v, %v", first.Agent, err)
	} else if second, err := s.Session(key("inner-2")); err != nil || second.Agent != first.Agent {
		t.Errorf("inner-2 runs in %v, inner-1 in %v (%v)", second.Agent, first.Agent, err)
	}
	post(t, s, "inner-1", "for-one.")
	post(t, s, "inner-2", "for-two.")
	for i, want := range [][2]string{{"for-one.", "for-two."}, {"for-two.", "for-one."}} {
		host.Do(fmt.Sprintf("prompt %d", i+1))
		r := w.Model.WaitRequest(t, "host", i+1, rig.Watchdog)
		once(t, r, want[:1])
		if count(r, want[1]) != 0 {
			t.Errorf("session %d was shown its neighbour's call", i+1)
		}
		emptied(t, s, fmt.Sprintf("inner-%d", i+1))
	}
	// A host may drop a session without saying so.
	host.Do("dispose 1")
	rig.Eventually(t, rig.Watchdog, "inner-1 to leave the roster", func() bool {
		live := roster(t, w)
		_, one := live["inner-1"]
		_, two := live["inner-2"]
		return !one && two
	})
}

// Two processes open one session: the first has it, the second says where it
// is open, and takes over when the first dies.
func TestSameSessionTwice(t *testing.T) {
	t.Parallel()
	w := rig.NewWorld(t)
	s := store(t, w)
	first := start(t, w, rig.Options{Session: "first", Args: []string{"--session-id", "shared"}})
	first.Run("hello") // so that the file exists
	second := w.StartPi(t, rig.Options{Session: "second", Args: []string{"--session", first.SessionFile()}})
	if id := second.SessionID(); id != "shared" {
		t.Fatalf("the second opened %s", id)
	}
	rig.Eventually(t, rig.Watchdog, "the second's footer", func() bool {
		return strings.Contains(second.Statuses()["switchboard"], "session open elsewhere")
	})
	rig.Eventually(t, rig.Watchdog, "the second's human to be told", func() bool { return len(faults(second)) > 0 })
	if got := faults(second); len(got) != 1 || !strings.Contains(got[0], "process") {
		t.Errorf("the second's human was told %q", got)
	}
	post(t, s, "shared", "shared-01.")
	once(t, w.Model.WaitRequest(t, "first", 2, rig.Watchdog), []string{"shared-01."})
	emptied(t, s, "shared")
	w.Model.Script("second", send("shared", "x"), model.Step{Text: "ok"})
	second.Run("call")
	if got := w.Model.Turns("second")[1].Last().Text; !strings.Contains(got, "also open in process") {
		t.Errorf("the second's tool answered %q", got)
	}
	n := len(w.Model.Turns("second"))
	first.Kill(syscall.SIGKILL)
	rig.Eventually(t, rig.Watchdog, "the second to take over", func() bool {
		r, err := s.Session(key("shared"))
		return err == nil && r.Agent.PID == second.PID
	})
	post(t, s, "shared", "shared-02.")
	once(t, w.Model.WaitRequest(t, "second", n+1, rig.Watchdog), []string{"shared-02."})
	rig.Eventually(t, rig.Watchdog, "its callsign in the footer", func() bool { return strings.HasPrefix(second.Statuses()["switchboard"], "📡 alpha") })
}
