//go:build unix

package proc

import (
	"os"

	"golang.org/x/sys/unix"
)

func hasTerminal() bool {
	fd, err := unix.Open("/dev/tty", unix.O_RDONLY|unix.O_NOCTTY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	_ = unix.Close(fd)
	leader, err := unix.Getsid(0)
	if err != nil || leader <= 0 { // 0 is one that we can't see
		return false
	}
	if leader == os.Getppid() { // also where the system doesn't tell whose child is whose
		return true
	}
	for pid := os.Getpid(); err == nil; pid, err = Parent(pid) {
		if pid == leader {
			return true
		}
		if pid == 1 {
			return false
		}
	}
	return false
}
