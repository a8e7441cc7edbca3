//go:build unix

package cli

import (
	"io"
	"os"
	"syscall"
)

// pollable reads a pipe through the runtime's poller: a thread that sleeps in
// read would have to ask for a processor when it wakes, at every line. What
// others may read too, a terminal or a file, stays as it is.
func pollable(r io.Reader) io.Reader {
	f, ok := r.(*os.File)
	if !ok {
		return r
	}
	info, err := f.Stat()
	if err != nil || info.Mode()&(os.ModeNamedPipe|os.ModeSocket) == 0 {
		return r
	}
	fd := f.Fd()
	if syscall.SetNonblock(int(fd), true) != nil {
		return r
	}
	return os.NewFile(fd, f.Name())
}
