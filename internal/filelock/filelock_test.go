package filelock

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// The test binary is also the other process: FILELOCK_TEST says what it does
// with the lock named by its argument.
func TestMain(m *testing.M) {
	switch os.Getenv("FILELOCK_TEST") {
	case "hold":
		hold(os.Args[1])
	case "count":
		count(os.Args[1])
	default:
		os.Exit(m.Run())
	}
}

// hold keeps the lock until standard input ends.
func hold(path string) {
	l, err := TryLock(path)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("held")
	io.Copy(io.Discard, os.Stdin)
	l.Unlock()
}

// count adds one, many times, to a number in a file beside the lock.
func count(path string) {
	for range counts {
		l, err := LockUntil(path, time.Now().Add(30*time.Second))
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		data, _ := os.ReadFile(path + ".count")
		n, _ := strconv.Atoi(string(data))
		err = os.WriteFile(path+".count", []byte(strconv.Itoa(n+1)), 0o600)
		if err := errors.Join(err, l.Unlock()); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	}
}

const (
	counters = 4
	counts   = 100
)

func child(t *testing.T, what, path string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, path)
	cmd.Env = append(os.Environ(), "FILELOCK_TEST="+what)
	return cmd
}

// startHolder returns a process that has the lock on path.
func startHolder(t *testing.T, path string) (cmd *exec.Cmd, stop io.Closer) {
	t.Helper()
	cmd = child(t, "hold", path)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	if line, err := bufio.NewReader(out).ReadString('\n'); strings.TrimSpace(line) != "held" {
		t.Fatalf("holder said %q, %v", line, err)
	}
	return cmd, in
}

func wantHeld(t *testing.T, path string, want bool) {
	t.Helper()
	if got, err := Held(path); got != want || err != nil {
		t.Errorf("Held(%q) = %v, %v; want %v", path, got, err, want)
	}
}

func TestHeldOfMissingFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	wantHeld(t, path, false)
	if _, err := os.Stat(path); err == nil {
		t.Error("Held created the file")
	}
}

func TestSameProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	l, err := TryLock(path)
	if err != nil {
		t.Fatal(err)
	}
	wantHeld(t, path, true)
	if _, err := TryLock(path); !errors.Is(err, ErrHeld) {
		t.Errorf("second TryLock = %v, want ErrHeld", err)
	}
	// Neither the question nor the failed attempt let go of the first.
	wantHeld(t, path, true)
	for range 2 {
		if err := l.Unlock(); err != nil {
			t.Errorf("Unlock: %v", err)
		}
	}
	wantHeld(t, path, false)
	l2, err := TryLock(path)
	if err != nil {
		t.Fatalf("TryLock after Unlock: %v", err)
	}
	// A late Unlock of the old lock isn't ours.
	l.Unlock()
	wantHeld(t, path, true)
	l2.Unlock()
}

func TestOtherProcess(t *testing.T) {
	tests := map[string]func(cmd *exec.Cmd, stop io.Closer){
		"exits":  func(_ *exec.Cmd, stop io.Closer) { stop.Close() },
		"killed": func(cmd *exec.Cmd, _ io.Closer) { cmd.Process.Kill() },
	}
	for name, end := range tests {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "lock")
			cmd, stop := startHolder(t, path)
			wantHeld(t, path, true)
			if _, err := TryLock(path); !errors.Is(err, ErrHeld) {
				t.Errorf("TryLock = %v, want ErrHeld", err)
			}
			start := time.Now()
			if _, err := LockUntil(path, start.Add(30*time.Millisecond)); !errors.Is(err, ErrHeld) {
				t.Errorf("LockUntil = %v, want ErrHeld", err)
			}
			if took := time.Since(start); took < 30*time.Millisecond {
				t.Errorf("LockUntil gave up after %v, want 30ms", took)
			}

			end(cmd, stop)
			l, err := LockUntil(path, time.Now().Add(10*time.Second))
			if err != nil {
				t.Fatalf("LockUntil after the holder's end: %v", err)
			}
			l.Unlock()
			wantHeld(t, path, false)
		})
	}
}

// A child started while the lock is held must not inherit it.
func TestChildDoesNotInherit(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "lock")
	l, err := TryLock(path)
	if err != nil {
		t.Fatal(err)
	}
	startHolder(t, filepath.Join(dir, "another")) // lives on
	l.Unlock()
	wantHeld(t, path, false)
}

func TestExcludes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	var wg sync.WaitGroup
	for range counters {
		cmd := child(t, "count", path)
		wg.Go(func() {
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("counter: %v: %s", err, out)
			}
		})
	}
	stop := make(chan struct{})
	var asker sync.WaitGroup
	asker.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			if _, err := Held(path); err != nil {
				t.Errorf("Held: %v", err)
			}
			time.Sleep(50 * time.Microsecond)
		}
	})
	wg.Wait()
	close(stop)
	asker.Wait()
	data, err := os.ReadFile(path + ".count")
	if want := strconv.Itoa(counters * counts); string(data) != want {
		t.Errorf("count = %q, %v; want %s", data, err, want)
	}
}

// A deadline in the past still means one try.
func TestLockUntilPast(t *testing.T) {
	l, err := LockUntil(filepath.Join(t.TempDir(), "lock"), time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	l.Unlock()
}

func TestMissingFolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "none", "lock")
	if _, err := TryLock(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("TryLock in a missing folder = %v, want fs.ErrNotExist", err)
	}
	wantHeld(t, path, false)
}
