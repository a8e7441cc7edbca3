package proc

import "errors"

// facts is what the system tells about a process. Empty values are unknown.
type facts struct {
	name    string
	parent  int
	start   string
	zombie  bool
	stopped bool
}

// judge says what has become of id, seen by a process whose own ID is like
// here. lookup asks about a pid; its error is ErrNoProcess only when it is
// certain that there is none.
func judge(id, here ID, lookup func(pid int) (facts, error)) Status {
	switch {
	case id.Boot != "" && id.Boot == here.Boot:
		// The same kernel, whatever it calls itself: laptops change their
		// name with the network, and containers have their own.
	case id.Host != here.Host:
		return Foreign
	case differ(id.Boot, here.Boot):
		return Gone
	}
	if differ(id.PIDNS, here.PIDNS) {
		return Foreign
	}
	if id.PID <= 0 {
		return Gone // 0 and below name no process, and kill takes them for groups
	}

	f, err := lookup(id.PID)
	switch {
	case errors.Is(err, ErrNoProcess):
		return Gone
	case err != nil:
		return Alive
	case f.zombie, differ(id.Start, f.start):
		return Gone
	case f.stopped:
		return Stopped
	}
	return Alive
}

// differ reports whether two values are known to be different.
func differ(a, b string) bool { return a != "" && b != "" && a != b }
