// Package filelock holds exclusive locks on files, between processes and
// between two holders in one process. A lock vanishes with the process that
// holds it, however it dies. A stopped process keeps its locks, so nobody waits
// for one without a deadline.
//
// A lock belongs to the file behind the path, not to the path: lock files are
// never unlinked or replaced. They are empty, and apart from the data that
// they guard.
package filelock

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

// ErrHeld means that another process, or another holder in this one, has the
// lock.
var ErrHeld = errors.New("lock is held")

// Lock is a lock that was taken. It stays held until Unlock or the end of the
// process, also when the value itself is forgotten.
type Lock struct {
	path string

	mu     sync.Mutex // guards all below
	file   handle
	closed bool
}

// TryLock takes the lock on the file at path, which it creates when needed
// (mode 0600; the folder must exist). If somebody has it the error is ErrHeld.
func TryLock(path string) (*Lock, error) {
	// Where asking disturbs, one failure may be somebody's Held, which is
	// over at once. Three in a row are an owner.
	deadline := time.Time{}
	if askingDisturbs {
		deadline = time.Now().Add(3 * firstWait)
	}
	return LockUntil(path, deadline)
}

// The pauses between two tries. A journal's lock is held for tens of
// microseconds; the longest pause keeps two hundred waiters from burning a
// core.
const (
	firstWait = 250 * time.Microsecond
	lastWait  = 8 * time.Millisecond
)

// LockUntil is TryLock that tries until deadline before it gives up with
// ErrHeld. It tries at least once. Who waits longest has no precedence.
func LockUntil(path string, deadline time.Time) (*Lock, error) {
	for {
		l, err := lockOnce(path, deadline)
		// Somebody removed or replaced the file while we waited for it: what
		// we hold then excludes nobody.
		if err != nil || l.Current() {
			return l, err
		}
		if err := l.Unlock(); err != nil {
			return nil, err
		}
	}
}

func lockOnce(path string, deadline time.Time) (*Lock, error) {
	file, err := open(path)
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	for wait := firstWait; ; wait = min(2*wait, lastWait) {
		err := tryLock(file)
		if err == nil {
			return &Lock{path: path, file: file}, nil
		}
		left := time.Until(deadline)
		if !errors.Is(err, ErrHeld) || left <= 0 {
			_ = closeHandle(file)
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		// Half to all of it, so that waiters don't come back together.
		time.Sleep(min(left, wait/2+rand.N(wait/2)))
	}
}

// Current reports whether the path still names the file that is locked. When a
// clean-up has removed it, the lock excludes nobody any more.
func (l *Lock) Current() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.closed && same(l.file, l.path)
}

// Unlock lets the lock go. Only the first call does something.
func (l *Lock) Unlock() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil
	}
	l.closed = true
	// Unlock before closing: a child that is just being started may share
	// our handle until it runs its own program, and would keep the lock.
	if err := errors.Join(unlock(l.file), closeHandle(l.file)); err != nil {
		return fmt.Errorf("unlock %s: %w", l.path, err)
	}
	return nil
}

// Held reports whether somebody has the lock on the file at path, this process
// included. It never creates the file; one that isn't there is not held. On
// Linux asking is invisible to everybody else. Elsewhere it takes a shared
// lock for an instant, in which a LockUntil without time to wait may see
// ErrHeld; TryLock allows for that.
func Held(path string) (bool, error) {
	held, err := ask(path)
	if err != nil {
		return false, fmt.Errorf("ask for lock %s: %w", path, err)
	}
	return held, nil
}
