package rig

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// Sidecars returns the ids of the living children of a process that run
// "switchboard attach".
func Sidecars(pid int) []int {
	var pids []int
	for _, child := range allPids() {
		if parent, alive := parentOf(child); parent != pid || !alive {
			continue
		}
		cmdline, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", child))
		args := bytes.Split(cmdline, []byte{0})
		if slices.ContainsFunc(args, func(arg []byte) bool { return string(arg) == "attach" }) {
			pids = append(pids, child)
		}
	}
	return pids
}

// Alive reports whether a process runs or is stopped: a zombie does not count.
func Alive(pid int) bool {
	_, alive := parentOf(pid)
	return alive
}

func parentOf(pid int) (parent int, alive bool) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, false
	}
	// pid (name) state parent …, and a name may hold spaces and brackets.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 2 {
		return 0, false
	}
	parent, err = strconv.Atoi(fields[1])
	return parent, err == nil && fields[0] != "Z" && fields[0] != "X"
}

func allPids() []int {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	var pids []int
	for _, dir := range dirs {
		if pid, err := strconv.Atoi(filepath.Base(dir)); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

func kill(pid int, sig syscall.Signal) error {
	p, err := os.FindProcess(pid)
	if err != nil {
		return err
	}
	return p.Signal(sig)
}
