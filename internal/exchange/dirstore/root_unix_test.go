//go:build unix

package dirstore

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"switchboard/internal/exchange"
)

// nasty is a folder name that a shell would take apart.
const nasty = "it's a \"root\" $HOME `x` \\ *;#"

// wantRootError opens a root that can't be opened. Who only looks at it must
// give the same advice.
func wantRootError(t *testing.T, root, problem string) *RootError {
	t.Helper()
	r, lookErr := Inspect(root)
	if r.Store != nil {
		_, lookErr = r.Store.Folders()
	}
	_, err := Open(root, "test")
	var re *RootError
	if !errors.As(err, &re) {
		t.Fatalf("Open(%s): %v, want a RootError", root, err)
	}
	if !strings.Contains(re.Problem, problem) || re.Mend == "" {
		t.Errorf("Open: problem %q, mended with %q; want %q and a command", re.Problem, re.Mend, problem)
	}
	var looked *RootError
	if !errors.As(lookErr, &looked) || looked.Path != re.Path || looked.Mend != re.Mend || !strings.Contains(looked.Problem, problem) {
		t.Errorf("Inspect: %v; Open: %v", lookErr, err)
	}
	return re
}

// mend runs the command of an error; then the root must be usable.
func mend(t *testing.T, re *RootError, root string) {
	t.Helper()
	cmd := exec.Command("sh", "-c", re.Mend)
	cmd.Dir = t.TempDir()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", re.Mend, err, out)
	}
	if _, err := Open(root, "test"); err != nil {
		t.Errorf("after %s: %v", re.Mend, err)
	}
}

func mkdir(t *testing.T, path string, mode fs.FileMode) {
	t.Helper()
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil { // whatever the umask
		t.Fatal(err)
	}
}

func wantMode(t *testing.T, path string, want fs.FileMode) {
	t.Helper()
	info, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := info.Mode().Perm(); got != want {
		t.Errorf("%s has mode %04o, want %04o", path, got, want)
	}
}

func TestOpenMakesPrivateWhatIsEmpty(t *testing.T) {
	for _, mode := range []fs.FileMode{0o755, 0o777, 0o710, 0o701} {
		root := filepath.Join(t.TempDir(), nasty)
		mkdir(t, root, mode)
		open(t, root)
		wantMode(t, root, 0o700)
	}
}

func TestOpenRefusesWhatOthersCouldUse(t *testing.T) {
	root := filepath.Join(t.TempDir(), nasty)
	mkdir(t, root, 0o755)
	writeFile(t, filepath.Join(root, "something"), "x")
	re := wantRootError(t, root, "can be used by other users (mode 0755)")
	if !strings.Contains(re.Error(), re.Mend) {
		t.Errorf("%q does not say how to mend it", re)
	}
	wantMode(t, root, 0o755)
	mend(t, re, root)
	wantMode(t, root, 0o700)
	if text := readFile(t, filepath.Join(root, "something")); text != "x" {
		t.Errorf("the stranger holds %q", text)
	}
}

// Folders in a private root are ours to close.
func TestOpenClosesItsFolders(t *testing.T) {
	s := newStore(t)
	for _, name := range folders {
		if err := os.Chmod(s.path(name), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	open(t, s.root)
	for _, name := range folders {
		wantMode(t, s.path(name), 0o700)
	}
}

func TestOpenRefusesAnotherUsers(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give a folder away")
	}
	root := filepath.Join(t.TempDir(), "root")
	mkdir(t, root, 0o700)
	if err := os.Chown(root, 12345, -1); err != nil {
		t.Fatal(err)
	}
	wantRootError(t, root, "belongs to another user (uid 12345)")
	if entries, err := os.ReadDir(root); len(entries) != 0 || err != nil {
		t.Errorf("it holds %v, %v; want nothing", entries, err)
	}

	s := newStore(t)
	if err := os.Chown(s.path(inboxesDir), 12345, -1); err != nil {
		t.Fatal(err)
	}
	wantRootError(t, s.root, "belongs to another user")
}

func TestOpenResolvesLinks(t *testing.T) {
	dir := t.TempDir()
	real, link := filepath.Join(dir, "real"), filepath.Join(dir, "link")
	mkdir(t, real, 0o700)
	if err := os.Symlink(real, link); err != nil {
		t.Fatal(err)
	}
	s := open(t, link)
	want, err := filepath.EvalSymlinks(real)
	if err != nil {
		t.Fatal(err)
	}
	if s.Root() != want {
		t.Errorf("Root = %q, want %q", s.Root(), want)
	}
	// What the link leads to is judged like any other root.
	shared := filepath.Join(dir, "shared")
	mkdir(t, shared, 0o755)
	writeFile(t, filepath.Join(shared, "x"), "x")
	other := filepath.Join(dir, "other")
	if err := os.Symlink(shared, other); err != nil {
		t.Fatal(err)
	}
	if r, _ := Inspect(link); r.Root != want || r.Store == nil {
		t.Errorf("Inspect = %+v, want the root %q", r, want)
	}
	mend(t, wantRootError(t, other, "can be used by other users"), other)
}

func TestOpenWithSomethingInTheWay(t *testing.T) {
	dir := filepath.Join(t.TempDir(), nasty)
	mkdir(t, dir, 0o700)
	file := filepath.Join(dir, "file")
	writeFile(t, file, "kept")
	mend(t, wantRootError(t, file, "is not a folder"), file)
	if text := readFile(t, file+".old"); text != "kept" {
		t.Errorf("what was in the way holds %q", text)
	}

	parent := filepath.Join(dir, "parent")
	writeFile(t, parent, "kept")
	root := filepath.Join(parent, "a", "b")
	mend(t, wantRootError(t, root, "is not a folder"), root)

	for name, plant := range map[string]func(path string) error{
		"file": func(path string) error { return os.WriteFile(path, nil, 0o600) },
		"link": func(path string) error { return os.Symlink(t.TempDir(), path) },
		"pipe": func(path string) error { return syscall.Mkfifo(path, 0o600) },
	} {
		root := filepath.Join(dir, "root with "+name)
		mkdir(t, root, 0o700)
		if err := plant(filepath.Join(root, inboxesDir)); err != nil {
			t.Fatal(err)
		}
		mend(t, wantRootError(t, root, "is not a folder"), root)
	}
}

func TestOpenWhereNothingCanBeWritten(t *testing.T) {
	if _, err := os.Stat("/proc/self"); err == nil {
		// Not ours to make, to close or to write. Only trying shows it to root.
		for _, root := range []string{"/proc/switchboard/root", "/proc/self"} {
			var re *RootError
			if _, err := Open(root, "test"); !errors.As(err, &re) || re.Mend == "" {
				t.Errorf("Open(%s): %v, want a RootError with a command", root, err)
			}
		}
	}
	if os.Geteuid() != 0 {
		root := filepath.Join(t.TempDir(), nasty)
		mkdir(t, root, 0o500)
		mend(t, wantRootError(t, root, "cannot be written"), root)
	}
}

// Whatever the umask, nobody else can use anything.
func TestModes(t *testing.T) {
	old := syscall.Umask(0)
	defer syscall.Umask(old)
	s := open(t, filepath.Join(t.TempDir(), "new", "root"))
	l := publish(t, s, record("a"))
	post(t, s, "a", "one")
	post(t, s, "nobody", "one")
	appendNotes(t, s, "a", "b")
	for what, err := range map[string]error{
		"Beat":     l.Beat(),
		"Remember": l.Remember([]byte("x")),
		"Rewrite":  s.Rewrite(team, func(es []exchange.Entry) []exchange.Entry { return es[1:] }),
		"Sweep":    s.Sweep(),
	} {
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	publish(t, s, record("b")).die()
	seen := 0
	err := filepath.WalkDir(filepath.Dir(s.root), func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		want := fs.FileMode(0o600)
		if e.IsDir() {
			want = 0o700
		}
		if got := info.Mode().Perm(); got != want && (e.Type() != fs.ModeSocket || got&0o077 != 0) {
			t.Errorf("%s has mode %04o, want %04o", path, got, want)
		}
		seen++
		return nil
	})
	if err != nil || seen < 15 {
		t.Errorf("walked over %d, %v", seen, err)
	}
}
