//go:build unix

package atomicfile

import "golang.org/x/sys/unix"

// Writable reports whether this user can make files in a folder. It only asks.
func Writable(dir string) bool { return unix.Access(dir, unix.W_OK|unix.X_OK) == nil }
