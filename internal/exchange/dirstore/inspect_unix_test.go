//go:build unix

package dirstore

import (
	"os"
	"path/filepath"
	"testing"
)

func TestInspectModes(t *testing.T) {
	root := filepath.Join(t.TempDir(), "root")
	mkdir(t, root, 0o755)
	if r, err := Inspect(root); err != nil || !r.Open || r.Mode != 0o755 || r.Store != nil {
		t.Errorf("Inspect of an open, empty root = %+v, %v", r, err)
	}
	wantMode(t, root, 0o755)

	s := newStore(t)
	if err := os.Chmod(s.path(bellsDir), 0o750); err != nil {
		t.Fatal(err)
	}
	all, err := s.Folders()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range all {
		if f.Missing || f.Loose != (f.Name == bellsDir) || f.Loose && f.Mode != 0o750 {
			t.Errorf("Folders has %+v", f)
		}
	}
	wantMode(t, s.path(bellsDir), 0o750)
}

func TestInspectLinkToNowhere(t *testing.T) {
	root := filepath.Join(t.TempDir(), "root")
	for _, to := range []string{"nowhere", "root"} {
		if err := os.Symlink(to, root); err != nil {
			t.Fatal(err)
		}
		if r, err := Inspect(root); err == nil {
			t.Errorf("Inspect of a link to %s = %+v, want an error", to, r)
		}
		if err := os.Remove(root); err != nil {
			t.Fatal(err)
		}
	}
}
