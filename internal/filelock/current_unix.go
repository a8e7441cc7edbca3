//go:build unix

package filelock

import "golang.org/x/sys/unix"

// same reports whether path still names the open file.
func same(fd handle, path string) bool {
	var open, named unix.Stat_t
	if unix.Fstat(int(fd), &open) != nil || unix.Lstat(path, &named) != nil {
		return false
	}
	return open.Dev == named.Dev && open.Ino == named.Ino
}
