//go:build linux || darwin

package proc

import (
	"errors"
	"os"
	"syscall"
	"testing"
)

func TestStopped(t *testing.T) {
	cmd, _ := startChild(t)
	id, err := Of(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	if id.Start == "" {
		t.Skip("this system tells no states here")
	}
	cmd.Process.Signal(syscall.SIGSTOP)
	waitState(t, id, Stopped)
	cmd.Process.Signal(syscall.SIGCONT)
	waitState(t, id, Alive)
	cmd.Process.Kill()
	waitState(t, id, Gone) // not waited for yet: a zombie
}

// The same pid with another start time is another process.
func TestPIDUsedAgain(t *testing.T) {
	id := Self()
	if id.Start == "" {
		t.Skip("this system doesn't tell start times here")
	}
	id.Start += "1"
	if got := State(id); got != Gone {
		t.Errorf("State with another start time = %s, want %s", got, Gone)
	}
}

func TestSignalable(t *testing.T) {
	if err := signalable(os.Getpid()); err != nil {
		t.Errorf("signalable(self) = %v", err)
	}
	if err := signalable(1); err != nil { // EPERM unless we're root
		t.Errorf("signalable(1) = %v", err)
	}
	if err := signalable(1 << 30); !errors.Is(err, ErrNoProcess) {
		t.Errorf("signalable(1<<30) = %v, want ErrNoProcess", err)
	}
}

func TestBootID(t *testing.T) {
	if BootID() == "" {
		t.Error("BootID() is empty")
	}
}
