//go:build !windows

package cli

import (
	"fmt"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"switchboard/internal/exchange"
	"switchboard/internal/proc"
)

func TestWhy_Stopped(t *testing.T) {
	w := newWorld(t)
	child := exec.Command("sleep", "600")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = child.Process.Kill(); _ = child.Wait() }()
	id, err := proc.Of(child.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	bravo := w.session("id-bravo", "bravo", "app", func(r *exchange.Record) { r.Agent = id })
	w.post(bravo, "hello", time.Now(), 0)
	if err := child.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(10 * time.Second); proc.State(id) != proc.Stopped; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Skip("whether a process is stopped can't be told here")
		}
	}
	w.want(fmt.Sprintf("bravo does not respond: its process (%d) is stopped; 1 message waits for its process to respond", id.PID), "why", "bravo")
	w.want("📡 1 agent works in this repository:\n• bravo [unresponsive] on main  id id-bravo", "board")
}
