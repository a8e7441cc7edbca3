package dirstore

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"switchboard/internal/atomicfile"
)

// Whatever was remembered, a reader sees what the file holds now.
func TestKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f.json")
	var k kept[int]
	old := time.Now().Add(-time.Hour)
	for i := range 300 {
		if err := atomicfile.Write(path, fmt.Appendf(nil, "%d", 100+i)); err != nil {
			t.Fatal(err)
		}
		if i%3 == 0 { // as if it had been lying there for long
			if err := os.Chtimes(path, old, old.Add(time.Duration(i)*time.Millisecond)); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 {
			if got, err := k.read(path, 1000); got != 100+i || err != nil {
				t.Fatalf("read %d, %v, want %d", got, err, 100+i)
			}
		}
	}
	if err := os.WriteFile(path, []byte("no number"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := k.read(path, 1000); err == nil {
		t.Errorf("a damaged file is read as %d", got)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if got, err := k.read(path, 1000); !os.IsNotExist(err) {
		t.Errorf("a removed file is read as %d, %v", got, err)
	}
}

func TestKeptIsBounded(t *testing.T) {
	dir, old := t.TempDir(), time.Now().Add(-time.Hour)
	var k kept[int]
	for i := range maxKept + 10 {
		path := filepath.Join(dir, fmt.Sprint(i))
		if err := os.WriteFile(path, []byte("1"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, old, old); err != nil {
			t.Fatal(err)
		}
		if _, err := k.read(path, 10); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(k.files); n > maxKept {
		t.Errorf("%d files are remembered", n)
	}
}
