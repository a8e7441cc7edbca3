// Package rig runs the real Pi coding agent in tests: offline, against a
// scripted model, in a home of its own.
//
//	w := rig.NewWorld(t)
//	w.Model.Script("ann", model.Step{Text: "hello"})
//	pi := w.StartPi(t, rig.Options{Session: "ann"})
//	pi.Run("hi")
//
// A [World] is one user on one machine: a home, a git repository, the model
// server. A [Pi] is one process in it, driven through Pi's RPC mode; a [TUI]
// is one in a terminal. Everything a test starts is gone when it ends.
//
// Waiting is always for a condition. Deadlines are watchdogs, far above what
// the wait takes on a slow machine: they end a test, they do not measure.
//
// Methods that fail a test must be called from the test's own goroutine.
package rig

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"
)

// Watchdog is the deadline of waits that name none.
const Watchdog = 60 * time.Second

// Pins tells where the pinned Node and Pi are.
type Pins struct {
	NodeDir string // the folder of the node program, for PATH
	PiCLI   string // Pi's script
}

// Setup finds the pinned Node and Pi. It fails the test if they are not
// installed, and skips it with -short and where the rig does not work.
func Setup(t testing.TB) Pins {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("rig: needs Linux: /proc, and the Node package pinned for it")
	}
	if testing.Short() {
		t.Skip("rig: runs Pi, which takes longer than -short allows")
	}
	modules := filepath.Join(ModuleRoot(t), "e2e", "npm", "node_modules")
	arch := map[string]string{"amd64": "x64"}[runtime.GOARCH]
	if arch == "" {
		arch = runtime.GOARCH
	}
	p := Pins{
		NodeDir: filepath.Join(modules, "node-linux-"+arch, "bin"),
		PiCLI:   filepath.Join(modules, "@earendil-works", "pi-coding-agent", "dist", "bundle", "cli.js"),
	}
	for _, file := range []string{filepath.Join(p.NodeDir, "node"), p.PiCLI} {
		if _, err := os.Stat(file); err != nil {
			t.Fatalf("rig: %v\nhint: run e2e/setup.sh, which installs the pinned Node and Pi", err)
		}
	}
	return p
}

// ModuleRoot returns the folder of Switchboard's go.mod.
func ModuleRoot(t testing.TB) string {
	t.Helper()
	root, err := moduleRoot()
	if err != nil {
		t.Fatalf("rig: %v", err)
	}
	return root
}

// A test starts in its package's folder. Asked once, before one may leave it.
var moduleRoot = sync.OnceValues(func() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("find go.mod: not in this folder or above")
		}
		dir = parent
	}
})

// Binary returns the switchboard program: the one SWITCHBOARD_E2E_BIN names,
// or one built from this checkout once per test process, with the race
// detector if the test has it.
func Binary(t testing.TB) string {
	t.Helper()
	bin, err := binary()
	if err != nil {
		t.Fatalf("rig: %v", err)
	}
	return bin
}

var binary = sync.OnceValues(func() (string, error) {
	if bin := os.Getenv("SWITCHBOARD_E2E_BIN"); bin != "" {
		return filepath.Abs(bin)
	}
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}
	// Left for the system to remove: no test knows that it is the last.
	dir, err := os.MkdirTemp("", "switchboard-e2e-bin-")
	if err != nil {
		return "", err
	}
	bin := filepath.Join(dir, "switchboard")
	args := []string{"build", "-o", bin}
	if raceEnabled {
		args = append(args, "-race")
	}
	cmd := exec.Command("go", append(args, "./cmd/switchboard")...)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		_ = os.RemoveAll(dir)
		return "", fmt.Errorf("build switchboard: %w\n%s", err, out)
	}
	return bin, nil
})

// Eventually waits until ok returns true and fails the test with what if it
// does not in time.
func Eventually(t testing.TB, timeout time.Duration, what string, ok func() bool) {
	t.Helper()
	if !poll(timeout, ok) {
		t.Fatalf("not within %v: %s", timeout, what)
	}
}

func poll(timeout time.Duration, ok func() bool) bool {
	for deadline := time.Now().Add(timeout); !ok(); {
		if time.Now().After(deadline) {
			return false
		}
		time.Sleep(10 * time.Millisecond)
	}
	return true
}
