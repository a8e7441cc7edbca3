package proc

import (
	"time"
	"unsafe"

	"golang.org/x/sys/windows"
)

// bootClock advances in steps of 10 to 16 ms.
func bootClock() time.Duration { return windows.DurationSinceBoot() }

var queryUnbiased = windows.NewLazySystemDLL("kernel32.dll").NewProc("QueryUnbiasedInterruptTime")

func awakeClock() time.Duration {
	var ticks uint64 // of 100 ns
	// It fails only for a nil argument.
	_, _, _ = queryUnbiased.Call(uintptr(unsafe.Pointer(&ticks)))
	return time.Duration(ticks) * 100
}
