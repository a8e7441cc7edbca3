package proc

import (
	"fmt"
	"os"
	"strings"
)

func tty(pid int) string {
	for fd := range 3 {
		path, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", pid, fd))
		if err == nil && (strings.HasPrefix(path, "/dev/pts/") || strings.HasPrefix(path, "/dev/tty")) {
			return path
		}
	}
	return ""
}
