package proc

import "golang.org/x/sys/windows"

// hasTerminal looks for a console that somebody reads or types on: also what
// runs hidden has one.
func hasTerminal() bool {
	var mode uint32
	return windows.GetConsoleMode(windows.Stdin, &mode) == nil || windows.GetConsoleMode(windows.Stderr, &mode) == nil
}
