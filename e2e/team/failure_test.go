//go:build linux

package team

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"switchboard/e2e/rig"
	"switchboard/internal/exchange"
	"switchboard/internal/exchange/dirstore"
	"switchboard/internal/team"
)

func exchangeOf(t *testing.T, w *rig.World) *dirstore.Store {
	t.Helper()
	s, err := dirstore.Open(filepath.Join(w.Home, ".local", "state", "pi", "touchtone"), "test")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A peer that is stopped shows as unresponsive, is not taken for gone, and is
// there again when it goes on.
func TestUnresponsive(t *testing.T) {
	t.Parallel()
	w := rig.NewWorld(t)
	alpha := start(t, w, rig.Options{Session: "alpha"})
	bravo := start(t, w, rig.Options{Session: "bravo"})
	rig.Eventually(t, rig.Watchdog, "both", func() bool { return footer(alpha) == "📡 alpha · 1 peer" })
	board := func() string {
		w.Model.Script("alpha", telecom(map[string]any{"action": "board"}), ok)
		alpha.Run("who is there")
		turns := w.Model.Turns("alpha")
		return turns[len(turns)-1].Last().Text
	}
	bravo.Kill(syscall.SIGSTOP)
	defer bravo.Kill(syscall.SIGCONT)
	if got := board(); !strings.Contains(got, "• bravo [unresponsive]") {
		t.Errorf("while it is stopped:\n%s", got)
	}
	bravo.Kill(syscall.SIGCONT)
	if got := board(); !strings.Contains(got, "• bravo [idle") {
		t.Errorf("when it goes on:\n%s", got)
	}
	for _, l := range fold(t, w).Log(time.Time{}) {
		if l.What == team.HasLeft {
			t.Errorf("the log says that %s left", l.Callsign)
		}
	}
}

// A record that somebody removed is written again, and nobody has left.
func TestRemovedRecord(t *testing.T) {
	t.Parallel()
	w := rig.NewWorld(t)
	alpha := start(t, w, rig.Options{Session: "alpha"})
	bravo := start(t, w, rig.Options{Session: "bravo", Args: []string{"--session-id", "bravo-id"}})
	rig.Eventually(t, rig.Watchdog, "both", func() bool { return footer(alpha) == "📡 alpha · 1 peer" })
	record := filepath.Join(w.Home, ".local", "state", "pi", "touchtone", "sessions", "bravo-id.json")
	for range 3 {
		if err := os.Remove(record); err != nil {
			t.Fatal(err)
		}
		rig.Eventually(t, rig.Watchdog, "the record", func() bool { _, err := os.Stat(record); return err == nil })
	}
	alpha.Run("what is new")
	turns := w.Model.Turns("alpha")
	if got := turns[len(turns)-1].Transcript(); strings.Contains(got, "left") {
		t.Errorf("alpha was told:\n%s", got)
	}
	if got := callsign(bravo); got != "bravo" {
		t.Errorf("callsign %s", got)
	}
}

// One session open twice is one member. The younger process is in no team until
// the elder ends; then it goes on under the same callsign.
func TestSessionOpenTwice(t *testing.T) {
	t.Parallel()
	w := rig.NewWorld(t)
	w.Write("a.txt", "one\n")
	alpha := start(t, w, rig.Options{Session: "alpha"})
	elder := start(t, w, rig.Options{Session: "elder", Args: []string{"--session-id", "shared"}})
	elder.Run("hello")
	younger := w.StartPi(t, rig.Options{Session: "younger", Args: []string{"--session", elder.SessionFile()}})
	rig.Eventually(t, rig.Watchdog, "the younger's footer", func() bool { return footer(younger) == "📞 off (session open elsewhere)" })
	w.Model.Script("younger", write("a.txt", "younger\n"), telecom(map[string]any{"action": "board"}), ok)
	younger.Run("write it")
	turns := w.Model.Turns("younger")
	if got := turns[len(turns)-1].Last().Text; !strings.Contains(got, "also open in process") {
		t.Errorf("the younger's telecom answered %q", got)
	}
	foot(t, alpha, "📡 alpha · 1 peer")
	if f := fold(t, w); len(f.Members()) != 2 || len(editsOf(t, f, w, "a.txt")) != 0 {
		t.Errorf("members %v, edits %v", f.Members(), editsOf(t, f, w, "a.txt"))
	}
	elder.Kill(syscall.SIGKILL)
	rig.Eventually(t, rig.Watchdog, "the younger to take over", func() bool { return footer(younger) == "📡 bravo · 1 peer" })
}

// A host that drops a session without the usual shutdown leaves no member and
// no record behind.
func TestDisposed(t *testing.T) {
	t.Parallel()
	w := rig.NewWorld(t)
	script, err := filepath.Abs("../firstlight/testdata/two-sessions.mjs")
	if err != nil {
		t.Fatal(err)
	}
	host := w.StartScript(t, "host", script)
	s := exchangeOf(t, w)
	rig.Eventually(t, rig.Watchdog, "two members", func() bool { return len(fold(t, w).Members()) == 2 })
	host.Do("dispose 1")
	rig.Eventually(t, rig.Watchdog, "one to be left", func() bool {
		ms := fold(t, w).Members()
		_, err := s.Session(exchange.SessionKey{Host: exchange.PiHost, ID: "inner-1"})
		return len(ms) == 1 && ms[0].Session == "inner-2" && err != nil
	})
}

// A write waits for a peer's that is under way, and its helper dies meanwhile:
// the next helper is asked, and refuses it.
func TestHelperKilledWhileAWriteWaits(t *testing.T) {
	t.Parallel()
	w := rig.NewWorld(t)
	w.Write("gated.txt", "one\n")
	gate, err := filepath.Abs("testdata/gate.ts")
	if err != nil {
		t.Fatal(err)
	}
	alpha := start(t, w, rig.Options{Session: "alpha", ExtensionPaths: []string{gate}})
	bravo := start(t, w, rig.Options{Session: "bravo"})
	rig.Eventually(t, rig.Watchdog, "both", func() bool { return strings.Contains(footer(alpha), "1 peer") })
	w.Model.Script("bravo", read("gated.txt"), ok)
	bravo.Run("read it")
	began := func(callsign string) (seq uint64) {
		f := fold(t, w)
		m, _ := f.ByCallsign(callsign)
		for _, o := range f.OpenEdits(m.Session) {
			seq = o.Seq
		}
		return seq
	}
	w.Model.Script("alpha", write("gated.txt", "alpha\n"), ok)
	alpha.Prompt("write it")
	rig.Eventually(t, rig.Watchdog, "alpha's write to begin", func() bool { return began("alpha") > 0 })

	w.Model.Script("bravo", write("gated.txt", "bravo\n"), ok)
	bravo.Prompt("write it too")
	rig.Eventually(t, rig.Watchdog, "bravo's write to begin", func() bool { return began("bravo") > 0 })
	first, old := began("bravo"), bravo.Sidecars()
	_ = syscall.Kill(old[0], syscall.SIGKILL)
	rig.Eventually(t, rig.Watchdog, "the next helper to be asked", func() bool { return began("bravo") > first })
	w.Write("go", "")
	bravo.Settled()
	alpha.Settled()
	turns := w.Model.Turns("bravo")
	if got := turns[len(turns)-1].Last().Text; !strings.Contains(got, "alpha changed gated.txt") {
		t.Errorf("bravo's write was answered %q", got)
	}
	if got := fileText(t, inWorld(w, "gated.txt")); got != "alpha\n" {
		t.Errorf("the file is %q", got)
	}
	if got := turns[len(turns)-1].Transcript(); strings.Contains(got, "left") {
		t.Errorf("bravo was told:\n%s", got)
	}
	closed(t, w)
}
