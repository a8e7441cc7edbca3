//go:build unix

package bell

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestPathShort(t *testing.T) {
	if got, err := Path("/run/x", "a.sock"); got != "/run/x/a.sock" || err != nil {
		t.Errorf("Path = %q, %v", got, err)
	}
	if got, err := Path("run/x", "a.sock"); err == nil {
		t.Errorf("Path of a relative folder = %q, want an error", got)
	}
}

func TestPathBound(t *testing.T) {
	run := shortDir(t)
	t.Setenv("XDG_RUNTIME_DIR", run)
	for _, n := range []int{MaxPath - 1, MaxPath, 300} {
		dir := "/" + strings.Repeat("d", n-len("//a.sock"))
		want := filepath.Join(dir, "a.sock")
		if len(want) != n {
			t.Fatalf("bad test: %d bytes, want %d", len(want), n)
		}
		got, err := Path(dir, "a.sock")
		if err != nil {
			t.Fatal(err)
		}
		if short := n < MaxPath; (got == want) != short {
			t.Errorf("Path of %d bytes = %q", n, got)
		}
		if len(got) >= MaxPath {
			t.Errorf("Path of %d bytes = %q, still %d bytes", n, got, len(got))
		}
	}
}

func TestPathFallback(t *testing.T) {
	long := "/" + strings.Repeat("d", MaxPath)
	folder := func(run string) string { return filepath.Join(run, "switchboard") }
	tests := []struct {
		name    string
		prepare func(run string) error
		ok      bool
	}{
		{"fresh", func(string) error { return nil }, true},
		{"there already", func(run string) error { return os.Mkdir(folder(run), 0o700) }, true},
		{"open to others", func(run string) error {
			if err := os.Mkdir(folder(run), 0o700); err != nil {
				return err
			}
			return os.Chmod(folder(run), 0o750)
		}, false},
		{"a file", func(run string) error { return os.WriteFile(folder(run), nil, 0o700) }, false},
		{"a link", func(run string) error { return os.Symlink(run, folder(run)) }, false},
		{"another's", func(run string) error {
			if os.Geteuid() != 0 {
				return os.WriteFile(folder(run), nil, 0o700) // can't give files away
			}
			if err := os.Mkdir(folder(run), 0o700); err != nil {
				return err
			}
			return os.Chown(folder(run), 12345, -1)
		}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			run := shortDir(t)
			t.Setenv("XDG_RUNTIME_DIR", run)
			if err := tt.prepare(run); err != nil {
				t.Fatal(err)
			}
			before, _ := os.Lstat(folder(run))
			place, placeErr := Place(long, "a")
			if after, _ := os.Lstat(folder(run)); (before == nil) != (after == nil) {
				t.Error("Place made a folder")
			}
			a, err := Path(long, "a")
			if place != a || (placeErr == nil) != (err == nil) {
				t.Errorf("Place = %q, %v; Path = %q, %v", place, placeErr, a, err)
			}
			if (err == nil) != tt.ok {
				t.Fatalf("Path = %q, %v; want ok %v", a, err, tt.ok)
			}
			if !tt.ok {
				return
			}
			if filepath.Dir(a) != folder(run) {
				t.Errorf("Path = %q, want it in %q", a, folder(run))
			}
			if again, _ := Path(long, "a"); again != a {
				t.Errorf("Path = %q, then %q", a, again)
			}
			if b, _ := Path(long, "b"); b == a {
				t.Errorf("two bells have the path %q", a)
			}
			mustListen(t, a)
			mustRing(t, a)
		})
	}
}

// A runtime folder that is gone or too long itself is passed over.
func TestPathPassesOver(t *testing.T) {
	tmp := shortDir(t)
	t.Setenv("TMPDIR", tmp)
	for _, run := range []string{filepath.Join(tmp, "none"), "/" + strings.Repeat("r", MaxPath), "relative", ""} {
		t.Setenv("XDG_RUNTIME_DIR", run)
		got, err := Path("/"+strings.Repeat("d", MaxPath), "a")
		if err != nil || filepath.Dir(filepath.Dir(got)) != tmp {
			t.Errorf("with XDG_RUNTIME_DIR=%q: Path = %q, %v; want it below %q", run, got, err, tmp)
		}
	}
}
