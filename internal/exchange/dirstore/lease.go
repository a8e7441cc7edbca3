package dirstore

import (
	"errors"
	"io/fs"
	"os"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"

	"switchboard/internal/atomicfile"
	"switchboard/internal/bell"
	"switchboard/internal/exchange"
	"switchboard/internal/filelock"
	"switchboard/internal/proc"
)

// lease is one ownership of a session.
type lease struct {
	store      *Store
	key        exchange.SessionKey
	slug       string
	generation string
	lock       *filelock.Lock
	bell       *bell.Bell
	bellPath   string

	mu       sync.Mutex // guards all below
	released bool
	beaten   time.Time // the last beat
	inbox    watched
}

// pruneTime is longer than a peer holds a dead session's lock to remove its
// record, on a busy machine too. It must not be taken for an owner.
const pruneTime = 100 * time.Millisecond

// Own implements exchange.Exchange.
func (s *Store) Own(key exchange.SessionKey) (exchange.Lease, error) {
	slug := key.Slug()
	lock, err := filelock.LockUntil(s.lockPath(slug), time.Now().Add(pruneTime))
	if errors.Is(err, fs.ErrNotExist) { // the root was removed under us
		if _, err := prepare(s.root); err != nil {
			return nil, err
		}
		lock, err = filelock.LockUntil(s.lockPath(slug), time.Now().Add(pruneTime))
	}
	if errors.Is(err, filelock.ErrHeld) {
		// Not being able to say who is no reason to hide that somebody does.
		r, _ := s.readRecord(slug)
		return nil, &exchange.OwnedError{By: r}
	}
	if err != nil {
		return nil, err
	}
	l := &lease{store: s, key: key, slug: slug, generation: ulid.Make().String(), lock: lock}
	if err := os.Mkdir(s.inboxPath(slug), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		_ = lock.Unlock()
		return nil, err
	}
	// Without a bell the session still hears of everything within a second.
	if path, err := s.bellPath(l.generation); err == nil {
		if b, err := bell.Listen(path); err == nil {
			l.bell, l.bellPath = b, path
		}
	}
	return l, nil
}

func (l *lease) Generation() string { return l.generation }

func (l *lease) Publish(r exchange.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.released {
		return exchange.ErrReleased
	}
	r.Version = exchange.Version
	r.Key = l.key
	r.Generation = l.generation
	r.Owner = proc.Self()
	r.Bell = l.bellPath
	r.Program = l.store.program
	r.Updated = now()
	// The beat comes first: a record without one looks like a dead owner's.
	if time.Since(l.beaten) >= exchange.BeatEvery {
		if err := l.beatLocked(false); err != nil {
			return err
		}
	}
	return writeJSON(l.store.recordPath(l.slug), r)
}

func (l *lease) Published() bool {
	r, err := l.store.readRecord(l.slug)
	return err == nil && r.Generation == l.generation
}

func (l *lease) Lost() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.released || l.lock.Current() {
		return false
	}
	l.released = true
	if l.bell != nil {
		l.bell.Close()
	}
	_ = l.lock.Unlock() // nobody can see it
	return true
}

func (l *lease) Beat() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.released {
		return exchange.ErrReleased
	}
	return l.beatLocked(false)
}

func (l *lease) beatLocked(released bool) error {
	b := newBeat(l.generation)
	b.Released = released
	l.beaten = time.Now()
	return writeJSON(l.store.beatPath(l.slug), b)
}

func (l *lease) Rings() <-chan struct{} {
	if l.bell == nil {
		return nil
	}
	return l.bell.C()
}

// racy is how long after its last change a folder is looked at again: its
// time may be too coarse to show a second change.
const racy = 50 * time.Millisecond

// watched remembers a folder's time as of the last look.
type watched struct {
	mod    time.Time
	stable bool
}

// changed looks at the folder again.
func (w *watched) changed(path string) bool {
	info, err := os.Stat(path)
	if err != nil {
		return true
	}
	mod := info.ModTime()
	same := w.stable && mod.Equal(w.mod)
	w.mod, w.stable = mod, time.Since(mod) > racy
	return !same
}

func (l *lease) Changed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.inbox.changed(l.store.inboxPath(l.slug))
}

func (l *lease) Settle(ids ...string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.released {
		return exchange.ErrReleased
	}
	var errs []error
	for _, id := range ids {
		if !validID(id) {
			continue
		}
		// One file's failure must not keep the others.
		if err := os.Remove(l.store.envelopePath(l.slug, id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// onDeck is how many messages wait for a session's model.
type onDeck struct {
	Version int       `json:"v"`
	Count   int       `json:"count"`
	Updated time.Time `json:"updated"`
}

func (l *lease) OnDeck(count int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.released {
		return exchange.ErrReleased
	}
	path := l.store.onDeckPath(l.slug)
	if count > 0 {
		return writeJSON(path, onDeck{Version: exchange.Version, Count: count, Updated: now()})
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// maxMemory bounds a sidecar's own memory, in bytes.
const maxMemory = 4 << 20

func (l *lease) Recall() ([]byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.released {
		return nil, exchange.ErrReleased
	}
	data, err := atomicfile.ReadCapped(l.store.memoryPath(l.slug), maxMemory)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return data, err
}

func (l *lease) Remember(data []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.released {
		return exchange.ErrReleased
	}
	return atomicfile.Write(l.store.memoryPath(l.slug), data)
}

func (l *lease) Release(handOver bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.released {
		return nil
	}
	l.released = true
	var err error
	if handOver {
		err = l.beatLocked(true)
	} else if r, readErr := l.store.readRecord(l.slug); readErr == nil && r.Generation == l.generation {
		err = os.Remove(l.store.recordPath(l.slug))
		_ = os.Remove(l.store.beatPath(l.slug))
		_ = os.Remove(l.store.inboxPath(l.slug)) // fails, as it should, while mail waits
	}
	if l.bell != nil {
		l.bell.Close()
	}
	return errors.Join(err, l.lock.Unlock())
}
