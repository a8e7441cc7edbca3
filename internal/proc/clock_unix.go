//go:build linux || darwin

package proc

import (
	"time"

	"golang.org/x/sys/unix"
)

func read(clock int32) time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(clock, &ts); err != nil {
		// Linux has had both clocks since 2.6.39 and macOS since 10.12, and
		// Go needs newer ones.
		panic("proc: read clock: " + err.Error())
	}
	return time.Duration(ts.Nano())
}
