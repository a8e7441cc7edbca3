// Package memstore is an exchange in memory: for tests, and for simulating
// many sessions under a clock of one's own.
package memstore

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"switchboard/internal/delivery"
	"switchboard/internal/exchange"
	"switchboard/internal/proc"
)

// Store is an exchange in memory. The zero Store is not ready; see New.
type Store struct {
	now func() time.Time

	mu       sync.Mutex // guards all below
	sessions map[exchange.SessionKey]*session
	journals map[exchange.TeamID]*journal
	serial   int
}

type session struct {
	values map[string]exchange.Values // by publisher
	owner  *lease                     // nil without one
	record *exchange.Record
	beat   time.Time
	inbox  map[string][]byte // envelopes as a store on disk would keep them, by message id
	memory []byte
}

type journal struct {
	seq     uint64
	at      time.Duration // of the last entry ever
	entries []exchange.Entry
}

var _ exchange.Exchange = (*Store)(nil)

// New returns an empty exchange whose clock is now.
func New(now func() time.Time) *Store {
	return &Store{now: now, sessions: make(map[exchange.SessionKey]*session), journals: make(map[exchange.TeamID]*journal)}
}

func (s *Store) sessionLocked(key exchange.SessionKey) *session {
	x := s.sessions[key]
	if x == nil {
		x = &session{inbox: make(map[string][]byte)}
		s.sessions[key] = x
	}
	return x
}

// Own implements exchange.Exchange.
func (s *Store) Own(key exchange.SessionKey) (exchange.Lease, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.sessionLocked(key)
	if x.owner != nil {
		err := &exchange.OwnedError{}
		if x.record != nil {
			err.By = *x.record
		}
		return nil, err
	}
	s.serial++
	x.owner = &lease{store: s, key: key, generation: fmt.Sprintf("g%d", s.serial), rings: make(chan struct{}, 1), dirty: true}
	return x.owner, nil
}

// Kill ends an ownership the way the death of its process would.
func (s *Store) Kill(key exchange.SessionKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if x := s.sessions[key]; x != nil {
		x.owner = nil
	}
}

func (s *Store) presenceLocked(x *session) exchange.Presence {
	age := s.now().Sub(x.beat)
	switch {
	case x.record == nil, x.owner == nil && age >= exchange.LeaseTime:
		return exchange.Gone
	case x.owner != nil && age >= exchange.Silent:
		return exchange.Unresponsive
	}
	return exchange.Live
}

// Sessions implements exchange.Exchange.
func (s *Store) Sessions() ([]exchange.Session, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []exchange.Session
	for _, x := range s.sessions {
		p := s.presenceLocked(x)
		if p == exchange.Gone {
			x.record = nil
			continue
		}
		out = append(out, exchange.Session{Record: *x.record, Presence: p, LastBeat: x.beat, Values: exchange.Merge(x.values)})
	}
	slices.SortFunc(out, func(a, b exchange.Session) int {
		if c := a.Joined.Compare(b.Joined); c != 0 {
			return c
		}
		return strings.Compare(a.Key.String(), b.Key.String())
	})
	return out, nil
}

// Session implements exchange.Exchange.
func (s *Store) Session(key exchange.SessionKey) (exchange.Session, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.sessions[key]
	if x == nil || s.presenceLocked(x) == exchange.Gone {
		return exchange.Session{}, exchange.ErrGone
	}
	return exchange.Session{Record: *x.record, Presence: s.presenceLocked(x), LastBeat: x.beat, Values: exchange.Merge(x.values)}, nil
}

// Post implements exchange.Exchange.
func (s *Store) Post(to exchange.SessionKey, m delivery.Message) error {
	data, err := exchange.EncodeEnvelope(m)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.sessionLocked(to)
	if _, there := x.inbox[m.ID]; !there {
		x.inbox[m.ID] = data
	}
	x.ringLocked()
	return nil
}

func (x *session) ringLocked() {
	if x.owner == nil {
		return
	}
	x.owner.dirty = true
	select {
	case x.owner.rings <- struct{}{}:
	default: // it has rung already
	}
}

// Waiting implements exchange.Exchange.
func (s *Store) Waiting(key exchange.SessionKey) ([]delivery.Message, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []delivery.Message
	if x := s.sessions[key]; x != nil {
		for _, data := range x.inbox {
			var e exchange.Envelope
			if err := json.Unmarshal(data, &e); err != nil {
				return nil, err // it came from EncodeEnvelope: a bug
			}
			out = append(out, e.Message)
		}
	}
	slices.SortFunc(out, func(a, b delivery.Message) int { return strings.Compare(a.ID, b.ID) })
	return out, nil
}

// Contribute implements exchange.Exchange.
func (s *Store) Contribute(key exchange.SessionKey, publisher string, values exchange.Values) error {
	if !exchange.ValidPublisher(publisher) {
		return fmt.Errorf("publisher %q cannot be one", publisher)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.sessionLocked(key)
	if x.values == nil {
		x.values = make(map[string]exchange.Values)
	}
	x.values[publisher] = values
	return nil
}

// Ring implements exchange.Exchange.
func (s *Store) Ring(keys ...exchange.SessionKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range keys {
		if x := s.sessions[key]; x != nil {
			x.ringLocked()
		}
	}
}

// Append implements exchange.Exchange.
func (s *Store) Append(team exchange.TeamID, entries ...exchange.Entry) ([]exchange.Entry, error) {
	if err := checkTeam(team); err != nil {
		return nil, err
	}
	for _, e := range entries {
		if e.Kind == "" || len(e.Body) > 0 && !json.Valid(e.Body) {
			return nil, fmt.Errorf("journal entry of kind %q cannot be stored (this is a bug)", e.Kind)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	j := s.journals[team]
	if j == nil {
		j = &journal{}
		s.journals[team] = j
	}
	now := s.now()
	j.at = max(j.at, time.Duration(now.UnixNano()))
	out := make([]exchange.Entry, len(entries))
	for i, e := range entries {
		j.seq++
		e.Version, e.Seq, e.Boot, e.At, e.Wall = exchange.Version, j.seq, "mem", j.at, now.UTC()
		e.Body = bytes.Clone(e.Body)
		j.entries = append(j.entries, e)
		out[i] = e
	}
	return out, nil
}

func checkTeam(team exchange.TeamID) error {
	if !team.Valid() {
		return fmt.Errorf("team id %q cannot name a journal", team)
	}
	return nil
}

// Read implements exchange.Exchange.
func (s *Store) Read(team exchange.TeamID, after exchange.Cursor) ([]exchange.Entry, exchange.Cursor, error) {
	if err := checkTeam(team); err != nil {
		return nil, after, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	j := s.journals[team]
	if j == nil {
		return nil, after, nil
	}
	var out []exchange.Entry
	for _, e := range j.entries {
		if e.Seq > after.Seq {
			out = append(out, e)
			after.Seq = e.Seq
		}
	}
	return out, after, nil
}

// Rewrite implements exchange.Exchange.
func (s *Store) Rewrite(team exchange.TeamID, keep func([]exchange.Entry) []exchange.Entry) error {
	if err := checkTeam(team); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if j := s.journals[team]; j != nil {
		j.entries = slices.Clone(keep(slices.Clone(j.entries)))
	}
	return nil
}

// lease is one ownership. Its fields are guarded by the store's mutex.
type lease struct {
	store      *Store
	key        exchange.SessionKey
	generation string
	rings      chan struct{}
	dirty      bool
}

// ownLocked returns the session if this lease still owns it.
func (l *lease) ownLocked() (*session, error) {
	x := l.store.sessionLocked(l.key)
	if x.owner != l {
		return nil, exchange.ErrReleased
	}
	return x, nil
}

func (l *lease) Generation() string { return l.generation }

func (l *lease) Publish(r exchange.Record) error {
	l.store.mu.Lock()
	defer l.store.mu.Unlock()
	x, err := l.ownLocked()
	if err != nil {
		return err
	}
	r.Version, r.Key, r.Generation, r.Owner, r.Updated = exchange.Version, l.key, l.generation, proc.Self(), l.store.now().UTC()
	x.record, x.beat = &r, l.store.now()
	return nil
}

func (l *lease) Published() bool {
	l.store.mu.Lock()
	defer l.store.mu.Unlock()
	x, err := l.ownLocked()
	return err == nil && x.record != nil && x.record.Generation == l.generation
}

func (l *lease) Lost() bool { return false }

func (l *lease) OnDeck(int) error {
	l.store.mu.Lock()
	defer l.store.mu.Unlock()
	_, err := l.ownLocked()
	return err
}

func (l *lease) Beat() error {
	l.store.mu.Lock()
	defer l.store.mu.Unlock()
	x, err := l.ownLocked()
	if err == nil {
		x.beat = l.store.now()
	}
	return err
}

func (l *lease) Rings() <-chan struct{} { return l.rings }

func (l *lease) Changed() bool {
	l.store.mu.Lock()
	defer l.store.mu.Unlock()
	dirty := l.dirty
	l.dirty = false
	return dirty
}

func (l *lease) Settle(ids ...string) error {
	l.store.mu.Lock()
	defer l.store.mu.Unlock()
	x, err := l.ownLocked()
	if err != nil {
		return err
	}
	for _, id := range ids {
		delete(x.inbox, id)
	}
	return nil
}

func (l *lease) Recall() ([]byte, error) {
	l.store.mu.Lock()
	defer l.store.mu.Unlock()
	x, err := l.ownLocked()
	if err != nil {
		return nil, err
	}
	return slices.Clone(x.memory), nil
}

func (l *lease) Remember(data []byte) error {
	l.store.mu.Lock()
	defer l.store.mu.Unlock()
	x, err := l.ownLocked()
	if err == nil {
		x.memory = slices.Clone(data)
	}
	return err
}

func (l *lease) Release(handOver bool) error {
	l.store.mu.Lock()
	defer l.store.mu.Unlock()
	x, err := l.ownLocked()
	if err != nil {
		return nil // released already: nothing is left to do
	}
	x.owner = nil
	if handOver {
		x.beat = l.store.now()
	} else if x.record != nil && x.record.Generation == l.generation {
		x.record = nil
	}
	return nil
}
