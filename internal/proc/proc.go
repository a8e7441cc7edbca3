// Package proc knows processes: which one a process is, beyond a number that
// the system uses again, and whether it still runs. A live process is never
// taken for dead: what can't be found out counts in its favour.
//
// It also has the clocks that go on being right when somebody sets the time.
package proc

import (
	"errors"
	"os"
	"sync"
	"time"
)

// ErrNoProcess means that no process has the given pid.
var ErrNoProcess = errors.New("no such process")

// ID says which process is meant, to every process that can read it, also after
// a reboot or on another machine. Its values are compared and never parsed; an
// empty one is unknown.
type ID struct {
	Host  string `json:"host"`            // name of the machine, as the process saw it
	Boot  string `json:"boot,omitempty"`  // which run of the machine
	PIDNS string `json:"pidns,omitempty"` // Linux: the pid namespace in which PID counts
	PID   int    `json:"pid"`
	Start string `json:"start,omitempty"` // start time, in the system's own units
}

// Status says what has become of a process. Its values may be stored.
type Status string

// The states of a process.
const (
	Alive   Status = "alive"
	Stopped Status = "stopped" // alive, but it answers nobody: Ctrl+Z, a debugger
	Gone    Status = "gone"    // it ended, is a zombie, or its pid is another's by now
	Foreign Status = "foreign" // on another machine or in another pid namespace: we can't see it
)

// Self returns the ID of this process.
func Self() ID {
	id, err := Of(os.Getpid())
	if err != nil {
		// We do exist. Without a start time the pid decides.
		id = here()
		id.PID = os.Getpid()
	}
	return id
}

// Of returns the ID of the process that has pid now, as seen from here, or
// ErrNoProcess. On unix a zombie still has its pid.
func Of(pid int) (ID, error) {
	f, err := lookup(pid)
	if err != nil {
		return ID{}, err
	}
	id := here()
	id.PID, id.Start = pid, f.start
	return id, nil
}

// here returns what the IDs of all processes that we can see have in common.
// None of it changes while we run, as far as we're concerned: a machine that
// gets another name keeps its boot.
var here = sync.OnceValue(func() ID {
	host, _ := os.Hostname() // empty is equal to empty
	return ID{Host: host, Boot: BootID(), PIDNS: pidNamespace()}
})

// BootID returns a string that differs from one run of the machine to the next,
// or "" where the system has none (Windows).
func BootID() string { return bootID() }

var bootID = sync.OnceValue(readBootID)

// State says what has become of the process id. It asks the system each time.
func State(id ID) Status { return judge(id, here(), lookup) }

// Parent returns the pid of pid's parent, or ErrNoProcess when pid isn't there,
// when its parent isn't, or when the system doesn't tell.
func Parent(pid int) (int, error) {
	f, err := lookup(pid)
	if err != nil {
		return 0, err
	}
	if f.parent <= 0 {
		return 0, ErrNoProcess
	}
	return f.parent, nil
}

// Began returns when a process was started, by the wall clock as it is set now,
// to a few hundredths of a second. ErrNoProcess if it isn't there,
// errors.ErrUnsupported where the system's unit is not known to us.
func Began(pid int) (time.Time, error) { return began(pid) }

// HasTerminal reports whether this process was started from a terminal: one
// controls it, and whoever leads the terminal's session is the process itself
// or above it. What was detached, or left behind by its parent, has none.
func HasTerminal() bool { return hasTerminal() }

// Name returns the short name of the program that pid runs, without its
// folder, or "" when that can't be found out. Linux and macOS cut it after 15
// bytes, and the process can change it to any bytes it likes.
func Name(pid int) string {
	f, err := lookup(pid)
	if err != nil {
		return ""
	}
	return f.name
}
