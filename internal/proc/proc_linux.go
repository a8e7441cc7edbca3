package proc

import (
	"os"
	"strconv"
	"strings"
	"sync"
)

func lookup(pid int) (facts, error) {
	if pid <= 0 {
		return facts{}, ErrNoProcess
	}
	if procIsOurs() {
		text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		if err == nil {
			return parseStat(text)
		}
	}
	// Missing below /proc may also mean hidden (hidepid), so ask otherwise.
	return facts{}, signalable(pid)
}

// procIsOurs reports whether /proc is there and numbers processes as we do. In
// a pid namespace that was given no /proc of its own it shows the outer one's,
// in which our pids are somebody else's.
var procIsOurs = sync.OnceValue(func() bool {
	self, err := os.Readlink("/proc/self")
	return err == nil && self == strconv.Itoa(os.Getpid())
})

func readBootID() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(id))
}

// pidNamespace returns such as "pid:[4026531836]".
func pidNamespace() string {
	ns, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return ""
	}
	return ns
}
