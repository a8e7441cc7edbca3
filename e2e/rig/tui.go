package rig

import (
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TUI is a Pi in a terminal, which is the only pane of its own tmux server.
type TUI struct {
	PID     int
	Session string // the script it plays

	t      testing.TB
	server []string // tmux arguments that name the server
	env    []string
	client *exec.Cmd
}

// StartTUI starts Pi in a terminal of the given size and waits until it takes
// input. The terminal is closed when the test ends.
func (w *World) StartTUI(t testing.TB, o Options, cols, rows int) *TUI {
	t.Helper()
	o = o.withDefaults(w)
	argv, env := w.command(o)
	u := &TUI{
		Session: o.Session,
		t:       t,
		// The socket's folder is the world's and the test's alone; a name is
		// still needed for several in one world.
		server: []string{"-u", "-f", "/dev/null", "-L", fmt.Sprintf("tui%d", time.Now().UnixNano())},
		env:    w.Env(o.Session, "TMUX_TMPDIR="+w.scratch),
	}
	start := []string{
		// Keep the last screen of a Pi that has ended.
		"set-option", "-g", "remain-on-exit", "on", ";",
		// All rows are Pi's.
		"set-option", "-g", "status", "off", ";",
		// Else an Escape waits for what may follow it.
		"set-option", "-s", "escape-time", "0", ";",
		"new-session", "-d", "-x", strconv.Itoa(cols), "-y", strconv.Itoa(rows), "-c", o.Cwd,
		// tmux adds its own to the environment; Pi must not look for it.
		"--", "env", "-i",
	}
	u.tmux(append(append(start, env...), argv...)...)
	t.Cleanup(u.close)
	u.attach()
	pid := u.tmux("display-message", "-p", "#{pane_pid}")
	var err error
	if u.PID, err = strconv.Atoi(strings.TrimSpace(pid)); err != nil {
		t.Fatalf("rig: pane of Pi %q: %v", o.Session, err)
	}
	u.WaitScreen("scripted", Watchdog) // the model's name, in the last line of a complete screen
	return u
}

// attach ties the terminal to this process: a tmux client that only stays, and
// the session ends with it. No Cleanup runs when a test times out or is killed,
// and a tmux server would go on for good.
func (u *TUI) attach() {
	u.t.Helper()
	u.client = u.command("-C", "attach-session", "-f", "no-output,ignore-size", ";", "set-option", "destroy-unattached", "on")
	// Never written to: the client leaves at its end.
	_, err := u.client.StdinPipe()
	if err == nil {
		err = u.client.Start()
	}
	if err != nil {
		u.t.Fatalf("rig: attach to tmux: %v", err)
	}
}

// emptyLines are more than a reader needs.
var emptyLines = regexp.MustCompile(`\n{4,}`)

func (u *TUI) close() {
	if u.t.Failed() {
		if screen, err := u.run("capture-pane", "-p"); err == nil {
			screen = emptyLines.ReplaceAllString(strings.TrimRight(screen, "\n"), "\n\n\n")
			u.t.Logf("Pi %q, pid %d, its screen:\n%s", u.Session, u.PID, screen)
		}
	}
	_, _ = u.run("kill-server") // an error means that it is gone
	if u.client != nil && u.client.Process != nil {
		_ = u.client.Process.Kill()
		_ = u.client.Wait() // says only how it was ended
	}
}

// Type types text as it is, without Enter.
func (u *TUI) Type(text string) {
	u.t.Helper()
	u.tmux("send-keys", "-l", "--", text)
}

// Keys presses keys by their tmux names: "Enter", "Escape", "C-c", "M-Up".
func (u *TUI) Keys(keys ...string) {
	u.t.Helper()
	u.tmux(append([]string{"send-keys"}, keys...)...)
}

// Submit types a text, waits until it stands in the editor, and presses Enter.
func (u *TUI) Submit(text string) {
	u.t.Helper()
	u.Type(text)
	u.WaitScreen(text, Watchdog)
	u.Keys("Enter")
}

// Capture returns the screen as plain text.
func (u *TUI) Capture() string {
	u.t.Helper()
	return u.tmux("capture-pane", "-p")
}

// CaptureANSI returns the screen with its colours as escape sequences, which
// each line begins anew.
func (u *TUI) CaptureANSI() string {
	u.t.Helper()
	// Without -N, tmux leaves out the colour behind a line's text.
	return canonical(u.tmux("capture-pane", "-e", "-N", "-p"))
}

// WaitScreen waits until the screen shows a text and returns the screen. A text
// that is wrapped to the next line is not found.
func (u *TUI) WaitScreen(substr string, timeout time.Duration) string {
	u.t.Helper()
	var screen string
	Eventually(u.t, timeout, fmt.Sprintf("the screen of Pi %q shows %q", u.Session, substr), func() bool {
		screen = u.Capture()
		return strings.Contains(screen, substr)
	})
	return screen
}

// Resize changes the size of the terminal.
func (u *TUI) Resize(cols, rows int) {
	u.t.Helper()
	u.tmux("resize-window", "-x", strconv.Itoa(cols), "-y", strconv.Itoa(rows))
}

// Sidecars returns the ids of Pi's living "switchboard attach" children.
func (u *TUI) Sidecars() []int { return Sidecars(u.PID) }

// Kill sends Pi a signal.
func (u *TUI) Kill(sig syscall.Signal) {
	u.t.Helper()
	if err := kill(u.PID, sig); err != nil {
		u.t.Fatalf("rig: signal Pi %q: %v", u.Session, err)
	}
}

// WaitExit waits until Pi has ended. Its last screen can still be captured; its
// exit status cannot be had, as tmux sometimes misses it.
func (u *TUI) WaitExit(timeout time.Duration) {
	u.t.Helper()
	Eventually(u.t, timeout, fmt.Sprintf("Pi %q ends", u.Session), func() bool {
		return !Alive(u.PID) && strings.TrimSpace(u.tmux("display-message", "-p", "#{pane_dead}")) == "1"
	})
}

// tmux runs a command of the terminal's server and returns what it prints.
func (u *TUI) tmux(args ...string) string {
	u.t.Helper()
	out, err := u.run(args...)
	if err != nil {
		u.t.Fatalf("rig: tmux %s: %v: %s", args[0], err, out)
	}
	return out
}

func (u *TUI) run(args ...string) (string, error) {
	out, err := u.command(args...).CombinedOutput()
	return string(out), err
}

func (u *TUI) command(args ...string) *exec.Cmd {
	cmd := exec.Command("tmux", append(u.server[:len(u.server):len(u.server)], args...)...)
	cmd.Env = u.env
	return cmd
}
