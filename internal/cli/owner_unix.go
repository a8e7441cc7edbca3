//go:build unix

package cli

import (
	"io/fs"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// owner reports who owns a file, and whether that is this user.
func owner(info fs.FileInfo) (uid int, ours bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return -1, true
	}
	return int(st.Uid), int(st.Uid) == os.Geteuid()
}

// openToOthers reports whether other users can use a folder.
func openToOthers(info fs.FileInfo) bool { return info.Mode().Perm()&0o077 != 0 }

// writable reports whether something can be made in a folder. It only asks.
func writable(dir string) bool { return unix.Access(dir, unix.W_OK|unix.X_OK) == nil }

// bellsHavePaths is whether bells are sockets in the file system, whose paths
// have a limit.
const bellsHavePaths = true

// ownFolder is the name of this user's folder below a shared one, as package
// bell has it.
func ownFolder() string { return "switchboard-" + strconv.Itoa(os.Geteuid()) }
