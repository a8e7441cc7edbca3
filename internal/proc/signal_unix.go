//go:build unix

package proc

import (
	"errors"

	"golang.org/x/sys/unix"
)

// signalable returns ErrNoProcess when pid can't be signalled because there is
// no such process. One that we may not signal (EPERM) exists.
func signalable(pid int) error {
	if errors.Is(unix.Kill(pid, 0), unix.ESRCH) {
		return ErrNoProcess
	}
	return nil
}
