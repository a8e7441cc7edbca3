package exchange

import (
	"crypto/rand"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"
)

var ids struct {
	sync.Mutex
	entropy *ulid.MonotonicEntropy
	last    uint64 // milliseconds
}

// NewID returns a ULID for a message sent at now: ids of one process sort in
// the order of their making, also when somebody sets the clock back, and those
// of several by their clocks.
func NewID(now time.Time) string {
	ids.Lock()
	defer ids.Unlock()
	if ids.entropy == nil {
		ids.entropy = ulid.Monotonic(rand.Reader, 0)
	}
	ids.last = max(ids.last, ulid.Timestamp(now))
	return ulid.MustNew(ids.last, ids.entropy).String()
}
