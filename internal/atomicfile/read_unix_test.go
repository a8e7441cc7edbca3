//go:build !windows

package atomicfile

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// What somebody may plant where a file is expected must neither block nor be
// read.
func TestReadCappedRefuses(t *testing.T) {
	plant := map[string]func(path string) error{
		"pipe":          func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"link":          func(path string) error { return os.Symlink("/etc/hosts", path) },
		"dangling link": func(path string) error { return os.Symlink("nowhere", path) },
		"socket": func(path string) error {
			l, err := net.Listen("unix", path)
			if err == nil {
				t.Cleanup(func() { l.Close() })
			}
			return err
		},
	}
	for name, plant := range plant {
		// Not t.TempDir: its path may be too long for a socket.
		dir, err := os.MkdirTemp("", "af")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.RemoveAll(dir) })
		path := filepath.Join(dir, "x")
		if err := plant(path); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if _, err := ReadCapped(path, 100); !errors.Is(err, ErrNotRegular) {
			t.Errorf("ReadCapped of a %s = %v, want ErrNotRegular", name, err)
		}
	}
}
