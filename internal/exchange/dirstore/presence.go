package dirstore

import (
	"errors"
	"os"
	"slices"
	"time"

	"switchboard/internal/exchange"
	"switchboard/internal/filelock"
	"switchboard/internal/proc"
)

// beat is what an owner writes to say that it is there, and last when it goes.
type beat struct {
	Generation string        `json:"generation"`
	Boot       string        `json:"boot"`
	Awake      time.Duration `json:"awake"` // the clock that stands still while the machine sleeps
	Wall       time.Time     `json:"wall"`
	Released   bool          `json:"released,omitempty"` // handed over on purpose
}

func newBeat(generation string) beat {
	return beat{Generation: generation, Boot: proc.BootID(), Awake: proc.AwakeClock(), Wall: now()}
}

// age is how long ago the beat was. Time in which the machine slept doesn't
// count, so that nobody is declared gone for it.
func (b beat) age() time.Duration {
	if b.Wall.IsZero() {
		return time.Duration(1<<63 - 1)
	}
	if b.Boot != "" && b.Boot == proc.BootID() {
		return proc.AwakeClock() - b.Awake
	}
	return time.Since(b.Wall)
}

// presence judges whether the session of a record is there.
func (s *Store) presence(r exchange.Record) (exchange.Presence, beat) {
	slug := r.Key.Slug()
	// A missing or damaged beat is an old one: the lock decides.
	b, _ := s.beats.read(s.beatPath(slug), maxRecord)
	switch proc.State(r.Agent) {
	case proc.Gone:
		return exchange.Gone, b
	case proc.Foreign:
		// It can't be looked up from here: only its beats speak for it.
		if b.age() < exchange.Silent {
			return exchange.Live, b
		}
		return exchange.Gone, b
	case proc.Stopped:
		return exchange.Unresponsive, b
	}
	held, err := filelock.Held(s.lockPath(slug))
	if err != nil {
		held = true // never take a live peer for dead
	}
	switch {
	case !held && b.age() >= exchange.LeaseTime:
		return exchange.Gone, b
	case held && b.age() >= exchange.Silent:
		return exchange.Unresponsive, b
	}
	return exchange.Live, b
}

// Census lists the sessions of all records, those that are Gone too, by joining
// time. Nothing is removed.
func (s *Store) Census() ([]exchange.Session, error) {
	entries, err := s.list(sessionsDir)
	if err != nil {
		return nil, err
	}
	var out []exchange.Session
	for _, e := range entries {
		slug, ok := jsonName(e)
		if !ok {
			continue
		}
		if x, err := s.session(slug); err == nil { // else Problems lists it
			out = append(out, x)
		}
	}
	slices.SortStableFunc(out, func(a, b exchange.Session) int { return a.Joined.Compare(b.Joined) })
	return out, nil
}

// Sessions implements exchange.Exchange.
func (s *Store) Sessions() ([]exchange.Session, error) {
	all, err := s.Census()
	return slices.DeleteFunc(all, func(x exchange.Session) bool {
		gone := x.Presence == exchange.Gone
		if gone {
			s.prune(x.Record)
		}
		return gone
	}), err
}

// Session implements exchange.Exchange.
func (s *Store) Session(key exchange.SessionKey) (exchange.Session, error) {
	x, err := s.session(key.Slug())
	if err != nil || x.Presence == exchange.Gone { // without a record, with a damaged one or another's: Sessions leaves it out too
		return exchange.Session{}, exchange.ErrGone
	}
	return x, nil
}

// session is the session whose record lies under a slug, whatever became of it.
func (s *Store) session(slug string) (exchange.Session, error) {
	r, err := s.readRecord(slug)
	if err != nil {
		return exchange.Session{}, err
	}
	p, b := s.presence(r)
	x := exchange.Session{Record: r, Presence: p, LastBeat: b.Wall}
	if p != exchange.Gone {
		x.Values = s.values(slug)
	}
	return x, nil
}

// errForeign marks files that are not ours to use or to remove.
var errForeign = errors.New("not a record of this version")

// readRecord reads the record under a slug. A record that speaks for another
// session than its name says, or of a newer version, is not one.
func (s *Store) readRecord(slug string) (exchange.Record, error) {
	r, err := s.records.read(s.recordPath(slug), maxRecord)
	if err != nil {
		return r, err
	}
	if r.Version < 1 || r.Version > exchange.Version || r.Generation == "" || r.Key.ID == "" || r.Key.Slug() != slug {
		return r, errForeign
	}
	return r, nil
}

// prune removes the record of a session that is gone, unless it has a new
// owner or belongs to a machine that we can't see.
func (s *Store) prune(r exchange.Record) {
	if proc.State(r.Agent) == proc.Foreign {
		return
	}
	slug := r.Key.Slug()
	lock, err := filelock.TryLock(s.lockPath(slug))
	if err != nil {
		return
	}
	defer lock.Unlock()
	again, err := s.readRecord(slug)
	if err != nil || again.Generation != r.Generation {
		return
	}
	if p, _ := s.presenceLocked(again); p == exchange.Gone {
		_ = os.Remove(s.recordPath(slug))
		_ = os.Remove(s.beatPath(slug))
	}
}

// presenceLocked is presence for a caller that holds the session's owner lock
// itself: nobody else can.
func (s *Store) presenceLocked(r exchange.Record) (exchange.Presence, beat) {
	b, _ := s.beats.read(s.beatPath(r.Key.Slug()), maxRecord)
	if proc.State(r.Agent) == proc.Gone || b.age() >= exchange.LeaseTime {
		return exchange.Gone, b
	}
	return exchange.Live, b
}
