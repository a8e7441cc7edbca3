//go:build unix

package bell

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Bell is a socket that others ring.
type Bell struct {
	path string
	self os.FileInfo // our socket's, to know it from a successor's
	conn *net.UnixConn
	c    chan struct{}
	done chan struct{} // closed when the goroutine ended

	closing  sync.Once
	closeErr error
}

// Listen makes a bell at path, which must be absolute, shorter than MaxPath bytes
// (see Path) and in a folder that only its owner can use. Only the owner
// can ring it (mode 0600). A socket that is there already is replaced, whether
// a dead process left it or a live one still listens to it; anything else that
// is there is an error that is fs.ErrExist.
func Listen(path string) (*Bell, error) {
	b, err := listen(path)
	if err != nil {
		return nil, fmt.Errorf("listen to bell %s: %w", path, err)
	}
	go b.run()
	return b, nil
}

func listen(path string) (*Bell, error) {
	if err := checkPath(path); err != nil {
		return nil, err
	}
	switch old, err := os.Lstat(path); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	case old.Mode().Type() != fs.ModeSocket:
		return nil, fs.ErrExist
	default:
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}

	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		return nil, err
	}
	// The folder is private, so that nobody else got in before this.
	err = os.Chmod(path, 0o600)
	self, errStat := os.Lstat(path)
	if err := errors.Join(err, errStat); err != nil {
		_ = conn.Close()
		_ = os.Remove(path)
		return nil, err
	}
	return &Bell{
		path: path, self: self, conn: conn,
		c:    make(chan struct{}, 1),
		done: make(chan struct{}),
	}, nil
}

// C returns the channel on which the bell says "look again". It holds at most
// one such word, for all rings since it was last received. It is never closed.
func (b *Bell) C() <-chan struct{} { return b.c }

// run empties the socket and passes the word on until the socket is closed.
func (b *Bell) run() {
	defer close(b.done)
	raw, err := b.conn.SyscallConn()
	if err != nil {
		return
	}
	for {
		// Other errors than that of a closed socket aren't known for
		// datagrams. Should there be one, the bell falls silent, which
		// costs its owner a second each time.
		var errDrain error
		if err := raw.Read(func(fd uintptr) (done bool) {
			done, errDrain = drain(int(fd))
			return done
		}); err != nil || errDrain != nil {
			return
		}
		select {
		case b.c <- struct{}{}:
		default: // the last word wasn't heard yet
		}
	}
}

// maxDrain bounds how many rings become one, so that a flood of them can't
// keep the word from being passed on.
const maxDrain = 1024

// drain receives what is there, and reports whether that was anything.
func drain(fd int) (bool, error) {
	var buf [1]byte // the rest of a longer datagram is dropped
	for n := 0; n < maxDrain; n++ {
		_, err := ignoringEINTR(func() (int, error) { return unix.Read(fd, buf[:]) })
		if errors.Is(err, unix.EAGAIN) {
			return n > 0, nil
		}
		if err != nil {
			return true, err
		}
	}
	return true, nil
}

// Close ends the bell and removes its socket, unless another has taken its
// path. It returns when all is quiet. Only the first call does something.
func (b *Bell) Close() error {
	b.closing.Do(func() {
		// Unlink first: while our socket is open, nobody else's can have
		// its inode number. A successor that appears between the look and
		// the removal loses its path, and then hears by looking itself.
		var errRemove error
		if now, err := os.Lstat(b.path); err == nil && os.SameFile(now, b.self) {
			errRemove = os.Remove(b.path)
			if errors.Is(errRemove, fs.ErrNotExist) {
				errRemove = nil
			}
		}
		errClose := b.conn.Close()
		<-b.done
		if err := errors.Join(errRemove, errClose); err != nil {
			b.closeErr = fmt.Errorf("close bell %s: %w", b.path, err)
		}
	})
	return b.closeErr
}

func ignoringEINTR(op func() (int, error)) (int, error) {
	for {
		n, err := op()
		if !errors.Is(err, syscall.EINTR) {
			return n, err
		}
	}
}
