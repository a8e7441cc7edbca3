package cli

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"switchboard/internal/delivery"
	"switchboard/internal/exchange"
	"switchboard/internal/exchange/memstore"
)

// failing is a store that fails, in one way.
type failing struct {
	mailer
	post error
}

func (f failing) Post(to exchange.SessionKey, m delivery.Message) error {
	return errors.Join(f.post, f.mailer.Post(to, m))
}

// What became of each message is told apart, also of one whose recipient went
// while it was written.
func TestPost(t *testing.T) {
	store := memstore.New(time.Now)
	there := exchange.SessionKey{Host: exchange.PiHost, ID: "id-there"}
	lease, err := store.Own(there)
	if err != nil {
		t.Fatal(err)
	}
	defer lease.Release(false)
	if err := lease.Publish(exchange.Record{Key: there, Incarnation: "i", State: "idle", Wakes: true}); err != nil {
		t.Fatal(err)
	}
	gone := exchange.SessionKey{Host: exchange.PiHost, ID: "id-gone"}
	var all casted
	for _, tt := range []struct {
		to      exchange.SessionKey
		err     error
		status  string
		receipt string
	}{
		{there, nil, isWaiting, "idle: starts a turn"},
		{gone, nil, isLeft, "left just now: the message waits 7 days for its resume"},
		{there, errors.New("disk full"), isFailed, ""},
		{there, fmt.Errorf("%w: it vanished", exchange.ErrIndeterminate), isIndeterminate, ""},
	} {
		to := exchange.Session{Record: exchange.Record{Key: tt.to, State: "idle", Wakes: true}}
		r, err := postTo(failing{store, tt.err}, to, delivery.Message{Kind: delivery.PartyLine, Text: "t"})
		if r.Status != tt.status || r.Receipt != tt.receipt || !errors.Is(err, tt.err) || (r.Error != "") != (tt.err != nil) {
			t.Errorf("post to %s with %v = %+v, %v", tt.to, tt.err, r, err)
		}
		all.Recipients = append(all.Recipients, r)
	}
	if err := all.err(); err == nil || err.Error() != "not sent to 1 and perhaps sent to 1 of 4 sessions" {
		t.Errorf("err = %v", err)
	}
	all.Recipients = all.Recipients[:2]
	if err := all.err(); err != nil {
		t.Errorf("err = %v, want none for one that left", err)
	}
	var out strings.Builder
	if err := (&app{stdout: &out}).printCast(all); err != nil || !strings.Contains(out.String(), "  session id-gone: left just now") {
		t.Errorf("printed %q, %v", &out, err)
	}
}
