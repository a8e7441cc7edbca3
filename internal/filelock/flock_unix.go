//go:build unix

package filelock

import (
	"errors"
	"io/fs"

	"golang.org/x/sys/unix"
)

// handle is a bare descriptor and not an os.File, whose finalizer would let
// the lock go when its holder is forgotten.
type handle = int

func open(path string) (handle, error) {
	return openFlags(path, unix.O_RDWR|unix.O_CREAT)
}

// openFlags opens without following a link and without waiting for the other
// end of a pipe that somebody planted. O_CLOEXEC: a child must not keep the
// lock when we die.
func openFlags(path string, flags int) (handle, error) {
	return retryInterrupted(func() (int, error) {
		return unix.Open(path, flags|unix.O_CLOEXEC|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600)
	})
}

func closeHandle(fd handle) error { return unix.Close(fd) }

func flock(fd handle, how int) error {
	_, err := retryInterrupted(func() (int, error) { return 0, unix.Flock(fd, how|unix.LOCK_NB) })
	if errors.Is(err, unix.EWOULDBLOCK) {
		return ErrHeld
	}
	return err
}

func flockTry(fd handle) error    { return flock(fd, unix.LOCK_EX) }
func flockUnlock(fd handle) error { return flock(fd, unix.LOCK_UN) }

// flockAsk tries a shared lock, which others that ask can have as well.
func flockAsk(fd handle) (bool, error) {
	switch err := flock(fd, unix.LOCK_SH); {
	case errors.Is(err, ErrHeld):
		return true, nil
	case err != nil:
		return false, err
	}
	return false, flockUnlock(fd)
}

// askFile opens the file at path for a question, if it is there.
func askFile(path string, question func(handle) (bool, error)) (bool, error) {
	fd, err := openFlags(path, unix.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer closeHandle(fd)
	return question(fd)
}

func retryInterrupted(op func() (int, error)) (int, error) {
	for {
		n, err := op()
		if !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}
