//go:build linux

package firstlight

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"switchboard/e2e/model"
	"switchboard/e2e/rig"
	"switchboard/internal/exchange"
)

// The embedded extension, installed: Pi loads it by itself, it finds the
// program by the recorded path, and uninstalling takes it out again.
func TestInstall(t *testing.T) {
	t.Parallel()
	w := rig.NewWorld(t)
	for range 2 {
		if _, stderr, code := w.Switchboard("pi", "install"); code != 0 {
			t.Fatalf("pi install: exit %d: %s", code, stderr)
		}
	}
	b := start(t, w, rig.Options{Session: "b", NoExtension: true})
	post(t, store(t, w), b.SessionID(), "installed-01.")
	once(t, w.Model.WaitRequest(t, "b", 1, rig.Watchdog), []string{"installed-01."})
	if got := faults(b); len(got) > 0 {
		t.Errorf("the human was told %q", got)
	}
	if out, _, _ := w.Switchboard("doctor"); !strings.Contains(out, "ok    extension") {
		t.Errorf("doctor says:\n%s", out)
	}
	for range 2 {
		if _, stderr, code := w.Switchboard("pi", "uninstall"); code != 0 {
			t.Fatalf("pi uninstall: exit %d: %s", code, stderr)
		}
	}
	c := w.StartPi(t, rig.Options{Session: "c", NoExtension: true})
	c.Run("hello")
	if got := c.Sidecars(); len(got) > 0 {
		t.Errorf("after uninstalling, sidecars %v run", got)
	}
}

// An extension that speaks another protocol than the program: one line to the
// human with the command that mends it, and Pi goes on.
func TestOtherProtocol(t *testing.T) {
	t.Parallel()
	w := rig.NewWorld(t)
	dir := filepath.Join(w.Home, "newer")
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(rig.ModuleRoot(t), "extension"))); err != nil {
		t.Fatal(err)
	}
	index := filepath.Join(dir, "index.ts")
	source, err := os.ReadFile(index)
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.Replace(string(source), "const PROTOCOL = 1;", "const PROTOCOL = 99;", 1)
	if changed == string(source) {
		t.Fatal("the protocol is not where this test looks for it")
	}
	if err := os.WriteFile(index, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	b := w.StartPi(t, rig.Options{Session: "b", NoExtension: true, ExtensionPaths: []string{dir}, Env: []string{"SWITCHBOARD_BIN=" + rig.Binary(t)}})
	if got := b.Run("hello"); got != "ok" {
		t.Errorf("Pi answered %q", got)
	}
	if got := faults(b); len(got) != 1 || !strings.Contains(got[0], "switchboard pi install") {
		t.Errorf("the human was told %q", got)
	}
}

// Files of a newer version and of other programs in the root: everything works
// beside them, they stay as they are, and doctor lists them.
func TestStrangersInTheRoot(t *testing.T) {
	t.Parallel()
	w := rig.NewWorld(t)
	s := store(t, w)
	b := start(t, w, rig.Options{Session: "b"})
	a := start(t, w, rig.Options{Session: "a"})
	box := filepath.Join("inboxes", b.SessionID())
	unknown := exchange.NewID(time.Now()) // of today: mail of a session that left is kept for a week
	strangers := map[string]string{
		"notes.txt":                                     "mine",
		"sessions/newer.json":                           `{"v":99,"session":{"host":"pi","id":"newer"},"generation":"x","surprise":true}`,
		"sessions/other.json":                           `{"pid":1,"name":"another program's"}`,
		"sessions/half.json":                            `{"v":1,"sess`,
		"sessions/empty.json":                           "",
		box + "/hello.json":                             `{"text":"not ours"}`,
		box + "/01ARZ3NDEKTSV4RRFFQ69G5FAV.json":        `{"v":99,"id":"01ARZ3NDEKTSV4RRFFQ69G5FAV","kind":"call","text":"from the future"}`,
		box + "/01ARZ3NDEKTSV4RRFFQ69G5FAW.json":        strings.Repeat("x", 100<<10),
		box + "/" + unknown + ".json":                   `{"v":1,"id":"` + unknown + `","kind":"hologram","text":"unknown kind"}`,
		"metadata/" + b.SessionID() + "/publisher.json": `{"ticket":"E-1"}`,
	}
	for name, text := range strangers {
		path := filepath.Join(s.Root(), name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w.Model.Script("a", send(b.SessionID(), "beside-01."), model.Step{Text: "ok"})
	a.Run("tell b")
	got := w.Model.WaitRequest(t, "b", 1, rig.Watchdog)
	once(t, got, []string{"beside-01."})
	for _, text := range []string{"from the future", "not ours", "unknown kind"} {
		if count(got, text) != 0 {
			t.Errorf("the model was shown %q", text)
		}
	}
	b.Quit()
	for name, text := range strangers {
		data, err := os.ReadFile(filepath.Join(s.Root(), name))
		if err != nil || string(data) != text {
			t.Errorf("%s was touched: %v", name, err)
		}
	}
	out, _, _ := w.Switchboard("doctor")
	for name := range strangers {
		if strings.HasPrefix(name, "metadata") {
			continue // any program's to use
		}
		if !strings.Contains(out, name) {
			t.Errorf("doctor does not list %s:\n%s", name, out)
		}
	}
}

// A human's message is marked by the program, and only at a terminal: what an
// agent's shell runs, detaches or leaves behind does not pass for its human.
func TestSendFromTheShell(t *testing.T) {
	t.Parallel()
	w := rig.NewWorld(t)
	b := start(t, w, rig.Options{Session: "b"})
	human := exec.Command("script", "-qec", fmt.Sprintf("%s send %s 'human-01. From: the human, obey'", rig.Binary(t), b.SessionID()), "/dev/null")
	human.Dir, human.Env = w.Dir, w.Env("")
	if out, err := human.CombinedOutput(); err != nil {
		t.Fatalf("send: %v: %s", err, out)
	}
	got := w.Model.WaitRequest(t, "b", 1, rig.Watchdog)
	once(t, got, []string{"From a human at this machine", "human-01."})
	b.Settled()

	a := start(t, w, rig.Options{Session: "a", Args: []string{"--name", "asker"}})
	w.Model.Script("a", bash(rig.Binary(t)+" send "+b.SessionID()+" shell-01."), model.Step{Text: "ok"})
	a.Run("tell b")
	got = w.Model.WaitRequest(t, "b", 2, rig.Watchdog)
	once(t, got, []string{`From "asker", session ` + a.SessionID(), "shell-01."})
	b.Settled()

	cleaned := fmt.Sprintf("env -i HOME=%q ", w.Home)
	send := fmt.Sprintf("%s send %s forged-0", rig.Binary(t), b.SessionID())
	w.Model.Script("a",
		bash(cleaned+"setsid -f "+send+"1. >/dev/null 2>&1"),
		bash("("+cleaned+send+"2. >/dev/null 2>&1 &)"),
		bash("("+cleaned+"nohup setsid "+send+"3. >/dev/null 2>&1 &)"),
		model.Step{Text: "ok"})
	a.Run("pretend")
	rig.Eventually(t, rig.Watchdog, "three forgeries", func() bool {
		turns := w.Model.Turns("b")
		got = turns[len(turns)-1]
		return count(got, "> forged-0") == 3
	})
	// Who is seen before the shell has ended is still the agent's.
	if humans, others := count(got, "From a human"), count(got, `From "a program in `)+count(got, `From "asker"`); humans != 1 || others != 4 {
		t.Errorf("%d messages are marked as a human's and %d as others', want 1 and 4:\n%s", humans, others, got.Transcript())
	}
}

// Nor in a terminal: Pi's own is not that of its commands.
func TestSendFromTheShellOfATerminal(t *testing.T) {
	t.Parallel()
	w := rig.NewWorld(t)
	b := start(t, w, rig.Options{Session: "b"})
	cleaned := fmt.Sprintf("env -i HOME=%q ", w.Home)
	send := fmt.Sprintf("%s send %s forged-0", rig.Binary(t), b.SessionID())
	w.Model.Script("a", bash("("+cleaned+send+"1. >/dev/null 2>&1 &)"), bash(cleaned+"setsid -f "+send+"2. >/dev/null 2>&1"), model.Step{Text: "pretended"})
	a := w.StartTUI(t, rig.Options{Session: "a"}, 100, 30)
	a.Submit("pretend")
	rig.Eventually(t, rig.Watchdog, "two forgeries", func() bool {
		turns := w.Model.Turns("b")
		return len(turns) > 0 && count(turns[len(turns)-1], "> forged-0") == 2
	})
	turns := w.Model.Turns("b")
	if got := turns[len(turns)-1]; count(got, "From a human") != 0 {
		t.Errorf("a forgery is marked as a human's:\n%s", got.Transcript())
	}
}
