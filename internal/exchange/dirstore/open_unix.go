//go:build unix

package dirstore

import "syscall"

// noFollow refuses symbolic links, and does not wait for a pipe's other end.
const noFollow = syscall.O_NOFOLLOW | syscall.O_NONBLOCK | syscall.O_CLOEXEC
