package proc

import (
	"time"

	"golang.org/x/sys/unix"
)

// CLOCK_MONOTONIC goes on in sleep on macOS.
func bootClock() time.Duration { return read(unix.CLOCK_MONOTONIC) }

func awakeClock() time.Duration { return read(unix.CLOCK_UPTIME_RAW) }
