//go:build !windows

package repo

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// fileID returns a string that is the same for all paths of one file.
func fileID(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return "", errors.New("stat: no inode")
	}
	return fmt.Sprintf("%d:%d", st.Dev, st.Ino), nil
}
