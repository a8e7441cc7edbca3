package proc

import "time"

// BootClock returns the time since the machine was started, including the time
// it slept. It never goes back and nobody can set it. All processes of one
// boot, see BootID, read the same clock, so that one may compare what another
// wrote down.
//
// Where the system has no such clock (BSD) it is the time of day, since 1970.
func BootClock() time.Duration { return bootClock() }

// AwakeClock is BootClock without the time that the machine slept: what a
// process could have used. Nobody is late by it because a lid was closed.
func AwakeClock() time.Duration { return awakeClock() }
