//go:build unix

package cli

import (
	"os/exec"
	"syscall"
)

// detach gives a child a process group of its own, as the extension does: a
// Ctrl-C in the terminal is for us, and we end our children.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
