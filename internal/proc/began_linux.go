package proc

import (
	"strconv"
	"time"
)

// clockTick is the unit of start times below /proc, on every Linux.
const clockTick = time.Second / 100

func began(pid int) (time.Time, error) {
	f, err := lookup(pid)
	if err != nil {
		return time.Time{}, err
	}
	ticks, err := strconv.ParseInt(f.start, 10, 64)
	if err != nil {
		return time.Time{}, ErrNoProcess
	}
	return time.Now().Add(time.Duration(ticks)*clockTick - BootClock()).UTC(), nil
}
