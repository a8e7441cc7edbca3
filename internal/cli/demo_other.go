//go:build !unix

package cli

import "os/exec"

// detach does nothing here: a Ctrl-C reaches the children, too, which end by
// themselves.
func detach(*exec.Cmd) {}
