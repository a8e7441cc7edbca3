//go:build !unix

package atomicfile

// Writable is always true: only an attempt shows it on these systems.
func Writable(dir string) bool { return true }
