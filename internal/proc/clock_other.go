//go:build unix && !linux && !darwin

package proc

import "time"

func bootClock() time.Duration { return time.Duration(time.Now().UnixNano()) }

func awakeClock() time.Duration { return bootClock() }
