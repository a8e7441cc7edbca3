package proc

import (
	"time"

	"golang.org/x/sys/unix"
)

func bootClock() time.Duration { return read(unix.CLOCK_BOOTTIME) }

// CLOCK_MONOTONIC stands still in suspend on Linux.
func awakeClock() time.Duration { return read(unix.CLOCK_MONOTONIC) }
