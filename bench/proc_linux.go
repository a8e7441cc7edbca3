package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// memory of a process, in MB.
type memory struct{ resident, private float64 }

func memoryOf(pid int) (memory, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return memory{}, err
	}
	var m memory
	for lines := bufio.NewScanner(bytes.NewReader(status)); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), ":")
		into := map[string]*float64{"VmRSS": &m.resident, "RssAnon": &m.private}[name]
		if into == nil {
			continue
		}
		kb, err := strconv.ParseFloat(strings.Fields(value)[0], 64)
		if err != nil {
			return memory{}, fmt.Errorf("memory of process %d: %w", pid, err)
		}
		*into = kb / 1024
	}
	return m, nil
}

// cpuTime is what a process has used so far, with threads that have ended. Its
// own clock tells nanoseconds, where /proc/<pid>/stat counts in ticks of 10 ms.
func cpuTime(pid int) (time.Duration, error) {
	const perProcess = 2 // CPUCLOCK_SCHED, see clock_getcpuclockid(3)
	var t unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|perProcess), &t); err != nil {
		return 0, fmt.Errorf("CPU clock of process %d: %w", pid, err)
	}
	return time.Duration(t.Nano()), nil
}
