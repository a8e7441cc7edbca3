package proc

// TTY returns the terminal that a process has open as one of its standard
// files, such as "/dev/pts/3"; "" without one, or when the system doesn't tell
// (only Linux does).
func TTY(pid int) string { return tty(pid) }
