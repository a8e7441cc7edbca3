package atomicfile

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

func TestIsTemp(t *testing.T) {
	tests := map[string]bool{
		".tmp-123":                      true,
		filepath.Join("a", ".tmp-x"):    true,
		".tmp":                          false,
		"a.tmp-1":                       false,
		filepath.Join(".tmp-d", "file"): false,
		"":                              false,
	}
	for name, want := range tests {
		if got := IsTemp(name); got != want {
			t.Errorf("IsTemp(%q) = %v, want %v", name, got, want)
		}
	}
}

func TestWrite(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	for _, data := range []string{"one", "", "three"} {
		if err := Write(path, []byte(data)); err != nil {
			t.Fatalf("Write(%q): %v", data, err)
		}
		wantContent(t, path, data)
	}
	wantMode(t, path)
	wantNames(t, dir, "a")
}

// A folder can't be replaced by a file: the error leaves nothing behind.
func TestWriteErrorCleansUp(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "a"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := Write(filepath.Join(dir, "a"), []byte("x")); err == nil {
		t.Error("Write over a folder succeeded")
	}
	wantNames(t, dir, "a")

	if err := Write(filepath.Join(dir, "none", "a"), nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Write in a missing folder = %v, want fs.ErrNotExist", err)
	}
}

// creators are the ways in which Create may have to work.
var creators = map[string]func(path string, data []byte) error{
	"create": Create,
	"no links": func(path string, data []byte) error {
		temp, err := writeTemp(filepath.Dir(path), data)
		if err != nil {
			return err
		}
		if err := reserveAndRename(temp, path); err != nil {
			os.Remove(temp)
			return err
		}
		return nil
	},
}

func TestCreate(t *testing.T) {
	for name, create := range creators {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "a")
			if err := create(path, []byte("one")); err != nil {
				t.Fatal(err)
			}
			if err := create(path, []byte("two")); !errors.Is(err, fs.ErrExist) {
				t.Errorf("second create = %v, want fs.ErrExist", err)
			}
			wantContent(t, path, "one")
			wantMode(t, path)
			wantNames(t, dir, "a")
		})
	}
}

// Of many that create one file, one wins, and the content is the winner's.
func TestCreateRace(t *testing.T) {
	for name, create := range creators {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for round := range 50 {
				path := filepath.Join(dir, fmt.Sprint(round))
				var winner atomic.Int64
				var wg sync.WaitGroup
				for i := range 8 {
					wg.Go(func() {
						switch err := create(path, fmt.Append(nil, i)); {
						case err == nil:
							if !winner.CompareAndSwap(0, int64(i)+1) {
								t.Errorf("round %d: two creators succeeded", round)
							}
						case !errors.Is(err, fs.ErrExist):
							t.Errorf("create: %v", err)
						}
					})
				}
				wg.Wait()
				wantContent(t, path, fmt.Sprint(winner.Load()-1))
			}
		})
	}
}

// A reader that looks all the time sees whole contents only.
func TestWriteIsNeverPartial(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	content := func(i int) []byte { return bytes.Repeat([]byte{byte('a' + i%26)}, 20_000+i) }
	if err := Write(path, content(0)); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 300 {
			if err := Write(path, content(i)); err != nil {
				t.Errorf("Write: %v", err)
			}
		}
	}()
	for {
		data, err := ReadCapped(path, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		if i := len(data) - 20_000; i < 0 || !bytes.Equal(data, content(i)) {
			t.Fatalf("read %d bytes that nobody wrote", len(data))
		}
		select {
		case <-done:
			return
		default:
		}
	}
}

func TestReadCapped(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	if err := Write(path, []byte("12345")); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		path string
		max  int64
		want string
		err  error
	}{
		{path, 5, "12345", nil},
		{path, 1 << 40, "12345", nil},
		{path, 4, "", ErrTooLarge},
		{path, 0, "", ErrTooLarge},
		{filepath.Join(dir, "none"), 5, "", fs.ErrNotExist},
		{dir, 5, "", ErrNotRegular},
	}
	for _, tt := range tests {
		got, err := ReadCapped(tt.path, tt.max)
		if string(got) != tt.want || !errors.Is(err, tt.err) {
			t.Errorf("ReadCapped(%q, %d) = %q, %v; want %q, %v", tt.path, tt.max, got, err, tt.want, tt.err)
		}
	}
}

func wantContent(t *testing.T, path, want string) {
	t.Helper()
	got, err := os.ReadFile(path)
	if err != nil || string(got) != want {
		t.Errorf("content of %s = %q, %v; want %q", path, got, err, want)
	}
}

func wantMode(t *testing.T, path string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		return
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := info.Mode().Perm(); got != 0o600 {
		t.Errorf("mode of %s = %o, want 600", path, got)
	}
}

func wantNames(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("names in %s = %q, want %q", dir, got, want)
	}
}
