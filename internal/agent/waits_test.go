package agent

import (
	"testing"
	"time"

	"switchboard/internal/delivery"
	"switchboard/internal/exchange"
)

func TestAwaits(t *testing.T) {
	now := time.Unix(1e9, 0)
	session := func(state string, p exchange.Presence, wakes bool, since time.Duration) exchange.Session {
		return exchange.Session{Record: exchange.Record{State: state, Wakes: wakes, Since: now.Add(-since)}, Presence: p}
	}
	tired := delivery.MaxHops + 1
	for _, tt := range []struct {
		name string
		s    exchange.Session
		age  time.Duration
		hops int
		want Await
	}{
		{"busy", session("working", exchange.Live, true, time.Hour), time.Minute, 0, AwaitTurnEnd},
		{"busy: a boundary takes what may not wake, too", session("working", exchange.Live, true, 0), 0, tired, AwaitTurnEnd},
		{"between two tries", session("retrying", exchange.Live, true, 0), 0, 0, AwaitTurnEnd},
		{"busy in print mode", session("working", exchange.Live, false, 0), 0, 0, AwaitTurnEnd},
		{"compacting", session("compacting", exchange.Live, true, 0), time.Hour, 0, AwaitCompacted},
		{"idle, just sent", session("idle", exchange.Live, true, time.Hour), time.Second, 0, AwaitWake},
		{"just came to rest", session("idle", exchange.Live, true, time.Second), time.Hour, 0, AwaitWake},
		{"idle and held", session("idle", exchange.Live, true, time.Minute), time.Hour, 0, AwaitPrompt},
		{"idle, woken too often", session("idle", exchange.Live, true, time.Hour), 0, tired, AwaitPrompt},
		{"idle at the limit", session("idle", exchange.Live, true, time.Hour), 0, delivery.MaxHops, AwaitWake},
		{"can't be woken", session("idle", exchange.Live, false, time.Hour), time.Hour, tired, AwaitStep},
		{"stopped", session("working", exchange.Unresponsive, true, 0), 0, 0, AwaitResponse},
		{"left", exchange.Session{Presence: exchange.Gone}, 0, 0, AwaitResume},
	} {
		if got := Awaits(tt.s, delivery.Message{Sent: now.Add(-tt.age), Hops: tt.hops}, now); got != tt.want {
			t.Errorf("%s: Awaits = %s, want %s", tt.name, got, tt.want)
		}
	}
}
