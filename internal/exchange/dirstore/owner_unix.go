//go:build unix

package dirstore

import (
	"io/fs"
	"os"
	"syscall"
)

// ownedByUs reports who owns a file and whether that is this user.
func ownedByUs(info fs.FileInfo) (uid int, ours bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return -1, true
	}
	return int(st.Uid), int(st.Uid) == os.Geteuid()
}

func openToOthers(info fs.FileInfo) bool { return info.Mode().Perm()&0o077 != 0 }
