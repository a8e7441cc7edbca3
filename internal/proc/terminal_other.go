//go:build !unix && !windows

package proc

func hasTerminal() bool { return false }
