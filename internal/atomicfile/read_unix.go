//go:build !windows

package atomicfile

import (
	"errors"
	"os"
	"syscall"
)

// openFile opens what is at path itself for reading. O_NONBLOCK lets the open
// of a pipe without a writer return; O_NOCTTY keeps a terminal from becoming
// ours.
func openFile(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
}

// notRegular reports whether an open failed for what the path names: a link
// (ELOOP, on FreeBSD EMLINK) or a socket (ENXIO, on macOS EOPNOTSUPP).
func notRegular(err error) bool {
	for _, e := range []error{syscall.ELOOP, syscall.EMLINK, syscall.ENXIO, syscall.EOPNOTSUPP} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
