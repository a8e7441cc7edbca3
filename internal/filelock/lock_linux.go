package filelock

import (
	"errors"

	"golang.org/x/sys/unix"
)

// Linux has locks of the open file description: they behave like flock's
// (independent for two opens in one process, gone with the last descriptor),
// and one can ask for them without taking them. Kernels without them (gVisor,
// WSL 1) say EINVAL, to every process alike, so that all fall back together.
const askingDisturbs = false

func tryLock(fd handle) error {
	switch _, err := ofd(fd, unix.F_OFD_SETLK, unix.F_WRLCK); {
	case errors.Is(err, unix.EINVAL):
		return flockTry(fd)
	case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EACCES):
		return ErrHeld
	default:
		return err
	}
}

func unlock(fd handle) error {
	_, err := ofd(fd, unix.F_OFD_SETLK, unix.F_UNLCK)
	if errors.Is(err, unix.EINVAL) {
		return flockUnlock(fd)
	}
	return err
}

func ask(path string) (bool, error) {
	return askFile(path, func(fd handle) (bool, error) {
		// The kernel answers with the lock that stands in the way.
		found, err := ofd(fd, unix.F_OFD_GETLK, unix.F_WRLCK)
		if errors.Is(err, unix.EINVAL) {
			return flockAsk(fd)
		}
		return found != unix.F_UNLCK, err
	})
}

// ofd issues cmd for the whole file and returns the type of lock that came
// back.
func ofd(fd handle, cmd int, typ int16) (int16, error) {
	lk := unix.Flock_t{Type: typ} // from 0, length 0: all of it; Pid must be 0
	_, err := retryInterrupted(func() (int, error) { return 0, unix.FcntlFlock(uintptr(fd), cmd, &lk) })
	return lk.Type, err
}
