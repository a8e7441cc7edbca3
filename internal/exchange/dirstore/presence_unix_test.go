//go:build unix

package dirstore

import (
	"errors"
	"syscall"
	"testing"

	"switchboard/internal/exchange"
)

// A stopped agent is there and answers nobody.
func TestStoppedAgent(t *testing.T) {
	s := newStore(t)
	c := start(t, s, "own", "a")
	c.expect("owned")
	if err := c.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	until(t, "a stopped agent is unresponsive", func() bool { return presenceOf(t, s, "a") == exchange.Unresponsive })
	post(t, s, "a", "waits") // and blocks nobody
	var owned *exchange.OwnedError
	if _, err := s.Own(key("a")); !errors.As(err, &owned) {
		t.Errorf("Own: %v, want an OwnedError", err)
	}
	if err := c.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	until(t, "it is live again", func() bool { return presenceOf(t, s, "a") == exchange.Live })
}
