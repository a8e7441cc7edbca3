package rig

import (
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// Script is a Node program of a test that embeds Pi.
type Script struct {
	PID int

	t     testing.TB
	stdin io.WriteCloser

	mu  sync.Mutex // guards out
	out strings.Builder
}

// StartScript runs a Node program with the pinned Node. PI_PACKAGE names the
// module to import Pi from, EXTENSION the extension of this checkout. It is
// killed when the test ends.
func (w *World) StartScript(t testing.TB, session, path string) *Script {
	t.Helper()
	s := &Script{t: t}
	cmd := exec.Command(filepath.Join(w.pins.NodeDir, "node"), path)
	cmd.Dir = w.Dir
	cmd.Env = w.Env(session, "SWITCHBOARD_BIN="+Binary(t),
		"PI_PACKAGE="+filepath.Join(filepath.Dir(w.pins.PiCLI), "..", "index.js"),
		"EXTENSION="+filepath.Join(ModuleRoot(t), "extension"))
	write := writerFunc(func(data []byte) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.out.Write(data)
	})
	cmd.Stdout, cmd.Stderr = write, write
	cmd.WaitDelay = 5 * time.Second
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatalf("rig: %v", err)
	}
	s.stdin = stdin
	if err := cmd.Start(); err != nil {
		t.Fatalf("rig: start %s: %v", filepath.Base(path), err)
	}
	s.PID = cmd.Process.Pid
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // an error means that it has ended
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("%s said:\n%s", filepath.Base(path), s.Output())
		}
	})
	return s
}

// Output is what the program has printed.
func (s *Script) Output() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out.String()
}

// Do writes a line to the program and waits until it prints "did <line>".
func (s *Script) Do(line string) {
	s.t.Helper()
	before := strings.Count(s.Output(), "did "+line)
	if _, err := fmt.Fprintln(s.stdin, line); err != nil {
		s.t.Fatalf("rig: %v", err)
	}
	Eventually(s.t, Watchdog, "the script to do "+line, func() bool { return strings.Count(s.Output(), "did "+line) > before })
}
