package agent

import (
	"time"

	"switchboard/internal/delivery"
	"switchboard/internal/exchange"
	"switchboard/internal/lifecycle"
)

// Await is what a message in an inbox waits for. Scripts read it: values are
// added, never changed.
type Await string

// What a message can wait for.
const (
	AwaitTurnEnd   Await = "turn-end"   // of the turn that runs
	AwaitCompacted Await = "compacted"  // the end of a compaction
	AwaitWake      Await = "wake"       // starts a turn any moment
	AwaitPrompt    Await = "prompt"     // its human's next
	AwaitStep      Await = "step"       // of a run that no message can start
	AwaitResponse  Await = "responsive" // a process that is stopped or stuck
	AwaitResume    Await = "resume"     // of a session that left
)

// soon is how long a message may take to start a turn: a look at the inbox
// once a second, and a slow machine.
const soon = 5 * time.Second

// Awaits says what a message waits for, from what a session's record tells
// others.
func Awaits(s exchange.Session, m delivery.Message, now time.Time) Await {
	switch {
	case s.Presence == exchange.Gone:
		return AwaitResume
	case s.Presence == exchange.Unresponsive:
		return AwaitResponse
	case s.State == string(lifecycle.Compacting):
		return AwaitCompacted
	case s.State != string(lifecycle.Idle):
		return AwaitTurnEnd // takes all there is, whatever it may wake
	case !s.Wakes:
		return AwaitStep
	case s.Held && !m.Sent.After(s.Since):
		return AwaitPrompt
	case m.Hops > delivery.MaxHops, now.Sub(m.Sent) > soon && now.Sub(s.Since) > soon:
		return AwaitPrompt
	}
	return AwaitWake
}
