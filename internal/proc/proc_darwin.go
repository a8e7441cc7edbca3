package proc

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// States of a process, from <sys/proc.h>.
const (
	sStop = 4
	sZomb = 5
)

func lookup(pid int) (facts, error) {
	if pid <= 0 {
		return facts{}, ErrNoProcess
	}
	info, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil {
		return facts{}, signalable(pid) // the sysctl has one error for everything
	}
	start := info.Proc.P_starttime
	return facts{
		name:    unix.ByteSliceToString(info.Proc.P_comm[:]),
		parent:  int(info.Eproc.Ppid),
		start:   fmt.Sprintf("%d.%06d", start.Sec, start.Usec),
		zombie:  info.Proc.P_stat == sZomb,
		stopped: info.Proc.P_stat == sStop,
	}, nil
}

// readBootID doesn't use kern.boottime, which moves when the time is set.
func readBootID() string {
	id, err := unix.Sysctl("kern.bootsessionuuid")
	if err != nil {
		return ""
	}
	return id
}

func pidNamespace() string { return "" }
