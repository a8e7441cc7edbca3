//go:build unix

package filelock

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// The fallback is tested everywhere, also where it isn't needed.
func TestFlock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	a, b := mustOpen(t, path), mustOpen(t, path)
	if err := flockTry(a); err != nil {
		t.Fatal(err)
	}
	if err := flockTry(b); !errors.Is(err, ErrHeld) {
		t.Errorf("second flock = %v, want ErrHeld", err)
	}
	for _, want := range []bool{true, false} {
		if got, err := askFile(path, flockAsk); got != want || err != nil {
			t.Errorf("flockAsk = %v, %v; want %v", got, err, want)
		}
		if err := flockUnlock(a); err != nil {
			t.Error(err)
		}
	}
	if err := flockTry(b); err != nil {
		t.Errorf("flock after unlock: %v", err)
	}
}

func mustOpen(t *testing.T, path string) handle {
	t.Helper()
	fd, err := open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeHandle(fd) })
	return fd
}

// A stopped holder keeps its lock; whoever waits gives up at the deadline, and
// a lock dies with a holder that never ran again.
func TestStoppedHolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	cmd, _ := startHolder(t, path)
	if err := cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	wantHeld(t, path, true)
	if _, err := TryLock(path); !errors.Is(err, ErrHeld) {
		t.Errorf("TryLock = %v, want ErrHeld", err)
	}
	cmd.Process.Kill()
	cmd.Wait()
	wantHeld(t, path, false)
}

func TestLockFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "lock")
	l, err := TryLock(path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Unlock()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := info.Mode(); got != 0o600 {
		t.Errorf("mode = %v, want 0600", got)
	}

	link := filepath.Join(dir, "link")
	if err := os.Symlink("lock", link); err != nil {
		t.Fatal(err)
	}
	if _, err := TryLock(link); !errors.Is(err, syscall.ELOOP) {
		t.Errorf("TryLock of a link = %v, want ELOOP", err)
	}
}
