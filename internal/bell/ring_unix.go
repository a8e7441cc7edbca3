//go:build unix

package bell

import (
	"errors"
	"fmt"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Ring rings the bell at path, an absolute path as Path returned it. It never
// blocks. A bell whose owner hasn't come to listen to earlier rings has rung
// already, which is no error. If nobody listens the error is ErrNobody.
func Ring(path string) error {
	if err := checkPath(path); err != nil {
		return fmt.Errorf("ring bell %s: %w", path, err)
	}
	switch err := sender.ring(path); {
	case err == nil:
		return nil
	case errors.Is(err, unix.ENOENT), // never there, or closed
		errors.Is(err, unix.ENOTDIR),
		errors.Is(err, unix.ECONNREFUSED), // its process died, or not a socket
		errors.Is(err, unix.ENOTSOCK),     // not a socket, on BSD
		errors.Is(err, unix.EPROTOTYPE),   // not our kind of socket
		errors.Is(err, unix.ECONNRESET):   // closed just now
		return fmt.Errorf("ring bell %s: %w", path, ErrNobody)
	default:
		return fmt.Errorf("ring bell %s: %w", path, err)
	}
}

// sender is the one socket from which this process rings.
var sender ringer

type ringer struct {
	mu   sync.Mutex // guards all below; never held across anything that blocks
	open bool
	fd   int
}

func (r *ringer) ring(path string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.open {
		fd, err := newSocket()
		if err != nil {
			return err
		}
		r.fd, r.open = fd, true
	}
	err := send(r.fd, path)
	if !isFull(err) {
		return err
	}

	// Either the bell's queue is full, or ours: on Linux what waits in the
	// queues of stopped processes counts against the socket that sent it, so
	// that a few of them would keep us from ringing anybody. A new socket
	// owes nothing, and can tell the two apart.
	fd, err := newSocket()
	if err != nil {
		return err
	}
	if err := send(fd, path); err != nil {
		_ = unix.Close(fd)
		if isFull(err) {
			return nil
		}
		return err
	}
	_ = unix.Close(r.fd) // what it sent still arrives
	r.fd = fd
	return nil
}

func send(fd int, path string) error {
	_, err := ignoringEINTR(func() (int, error) {
		return 0, unix.Sendto(fd, []byte{1}, unix.MSG_DONTWAIT, &unix.SockaddrUnix{Name: path})
	})
	return err
}

// isFull reports whether a datagram found no room: BSD says ENOBUFS.
func isFull(err error) bool {
	return errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.ENOBUFS)
}

// newSocket returns a socket that doesn't block and that children don't
// inherit. Not every unix can ask for both at once.
func newSocket() (int, error) {
	syscall.ForkLock.RLock()
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM, 0)
	if err == nil {
		unix.CloseOnExec(fd)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return -1, err
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		_ = unix.Close(fd)
		return -1, err
	}
	return fd, nil
}
