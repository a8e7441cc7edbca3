package memstore

import (
	"sync"
	"testing"
	"time"

	"switchboard/internal/exchange"
	"switchboard/internal/exchange/exchangetest"
)

// clock is a clock that only tests move.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) time() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) set(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = now
}

func newSubject(*testing.T) exchangetest.Subject {
	c := &clock{now: time.Now()}
	s := New(c.time)
	return exchangetest.Subject{
		Store:  s,
		Reopen: func() exchange.Exchange { return s },
		Age: func(key exchange.SessionKey, d time.Duration) {
			s.mu.Lock()
			beat := s.sessions[key].beat
			s.mu.Unlock()
			c.set(beat.Add(d))
		},
		Kill: func(key exchange.SessionKey, _ exchange.Lease) { s.Kill(key) },
		Remove: func(key exchange.SessionKey) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.sessions[key].record = nil
		},
	}
}

func TestConformance(t *testing.T) { exchangetest.Run(t, newSubject) }

// A clock that is set back does not turn the order of entries around.
func TestClockGoesBack(t *testing.T) {
	c := &clock{now: time.Now()}
	s := New(c.time)
	var last time.Duration
	for i := range 4 {
		out, err := s.Append("team", exchange.Entry{Kind: "note"})
		if err != nil {
			t.Fatal(err)
		}
		if out[0].At < last {
			t.Errorf("entry %d at %s, after one at %s", out[0].Seq, out[0].At, last)
		}
		last = out[0].At
		c.set(c.time().Add(-time.Hour))
		if i == 2 {
			if err := s.Rewrite("team", func([]exchange.Entry) []exchange.Entry { return nil }); err != nil {
				t.Fatal(err)
			}
		}
	}
}
