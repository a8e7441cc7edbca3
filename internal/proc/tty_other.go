//go:build !linux

package proc

func tty(int) string { return "" }
