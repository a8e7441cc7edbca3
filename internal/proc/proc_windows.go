package proc

import (
	"errors"
	"fmt"
	"strconv"
	"unsafe"

	"golang.org/x/sys/windows"
)

// lookup never reports a process as stopped: Windows suspends threads, not
// processes.
func lookup(pid int) (facts, error) {
	if pid <= 0 {
		return facts{}, ErrNoProcess
	}
	start, err := startTime(pid)
	if err != nil {
		return facts{}, err
	}
	f := facts{}
	if start != 0 {
		f.start = strconv.FormatInt(start, 10)
	}
	if entry, err := snapshot(pid); err == nil {
		f.name = windows.UTF16ToString(entry.ExeFile[:])
		f.parent = int(entry.ParentProcessID)
		// Windows keeps the number of a parent that ended. A process that
		// has it now and is younger than its child is another.
		if began, err := startTime(f.parent); err != nil || start != 0 && began > start {
			f.parent = 0
		}
	}
	return f, nil
}

// startTime returns when pid was started, in nanoseconds since 1970, 0 when it
// runs but doesn't let us look, or ErrNoProcess.
func startTime(pid int) (int64, error) {
	const access = windows.PROCESS_QUERY_LIMITED_INFORMATION | windows.SYNCHRONIZE
	h, err := windows.OpenProcess(access, false, uint32(pid))
	switch {
	case errors.Is(err, windows.ERROR_INVALID_PARAMETER):
		return 0, ErrNoProcess
	case errors.Is(err, windows.ERROR_ACCESS_DENIED):
		return 0, nil
	case err != nil:
		return 0, fmt.Errorf("open process %d: %w", pid, err)
	}
	defer windows.CloseHandle(h)

	// Somebody's open handle keeps a process that ended. Waiting tells, and
	// isn't fooled by an exit code of STILL_ACTIVE.
	if event, err := windows.WaitForSingleObject(h, 0); err == nil && event == windows.WAIT_OBJECT_0 {
		return 0, ErrNoProcess
	}
	var created, exited, kernel, user windows.Filetime
	if err := windows.GetProcessTimes(h, &created, &exited, &kernel, &user); err != nil {
		return 0, nil
	}
	return created.Nanoseconds(), nil
}

// snapshot returns the entry of pid in the list of all processes, the only
// documented place that names a parent.
func snapshot(pid int) (windows.ProcessEntry32, error) {
	var entry windows.ProcessEntry32
	h, err := windows.CreateToolhelp32Snapshot(windows.TH32CS_SNAPPROCESS, 0)
	if err != nil {
		return entry, err
	}
	defer windows.CloseHandle(h)
	entry.Size = uint32(unsafe.Sizeof(entry))
	for err = windows.Process32First(h, &entry); err == nil; err = windows.Process32Next(h, &entry) {
		if entry.ProcessID == uint32(pid) {
			return entry, nil
		}
	}
	return entry, err
}

// readBootID knows none: the boot time that Windows reports moves when the
// time is set. Start times are absolute there, so that State needs no boot.
func readBootID() string { return "" }

func pidNamespace() string { return "" }
