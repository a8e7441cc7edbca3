package repo

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

const hash = "0123456789abcdef0123456789abcdef01234567"

// makeTree creates files from a map of paths, below a new folder whose path it
// returns. A path that ends in a slash is a folder; ROOT in a content is the new
// folder's path.
func makeTree(t *testing.T, files map[string]string) string {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range files {
		path := filepath.Join(root, filepath.FromSlash(name))
		dir := filepath.Dir(path)
		if strings.HasSuffix(name, "/") {
			dir = path
		}
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if dir == path {
			continue
		}
		if err := os.WriteFile(path, []byte(strings.ReplaceAll(content, "ROOT", root)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestFind(t *testing.T) {
	tests := []struct {
		name  string
		files map[string]string
		dir   string
		want  Checkout // paths below the tree's root
		err   string   // part of the error
	}{
		{
			"plain, from below",
			map[string]string{"r/.git/HEAD": "ref: refs/heads/main\n", "r/a/b/": ""},
			"r/a/b",
			Checkout{"r", "r/.git", "r/.git", "main", ""},
			"",
		},
		{
			"detached",
			map[string]string{"r/.git/HEAD": hash + "\n"},
			"r",
			Checkout{"r", "r/.git", "r/.git", "", hash[:12]},
			"",
		},
		{
			"no HEAD",
			map[string]string{"r/.git/": ""},
			"r",
			Checkout{"r", "r/.git", "r/.git", "", ""},
			"",
		},
		{
			"the nearest counts",
			map[string]string{"r/.git/HEAD": "", "r/in/.git/HEAD": "ref: refs/heads/x/y\n", "r/in/a/": ""},
			"r/in/a",
			Checkout{"r/in", "r/in/.git", "r/in/.git", "x/y", ""},
			"",
		},
		{
			"worktree, absolute",
			map[string]string{
				"w/.git":                       "gitdir: ROOT/r/.git/worktrees/w\n",
				"r/.git/worktrees/w/commondir": "../..\n",
				"r/.git/worktrees/w/HEAD":      "ref: refs/heads/topic\n",
			},
			"w",
			Checkout{"w", "r/.git/worktrees/w", "r/.git", "topic", ""},
			"",
		},
		{
			"worktree, relative, common folder absolute",
			map[string]string{
				"w/.git":                       "gitdir: ../r/.git/worktrees/w",
				"r/.git/worktrees/w/commondir": "ROOT/r/.git",
			},
			"w",
			Checkout{"w", "r/.git/worktrees/w", "r/.git", "", ""},
			"",
		},
		{
			"submodule",
			map[string]string{
				"r/.git/HEAD":           "ref: refs/heads/main\n",
				"r/.git/modules/s/HEAD": "ref: refs/heads/sub\n",
				"r/s/.git":              "gitdir: ../.git/modules/s\n",
			},
			"r/s",
			Checkout{"r/s", "r/.git/modules/s", "r/.git/modules/s", "sub", ""},
			"",
		},
		{"malformed", map[string]string{"r/.git": "hello\n"}, "r", Checkout{Root: "r"}, "r/.git is malformed"},
		{"empty", map[string]string{"r/.git": ""}, "r", Checkout{Root: "r"}, "r/.git is malformed"},
		{"two lines", map[string]string{"r/.git": "gitdir: a\nb\n"}, "r", Checkout{Root: "r"}, "r/.git is malformed"},
		{"leads nowhere", map[string]string{"r/.git": "gitdir: ../x\n"}, "r", Checkout{Root: "r"}, "r/.git leads nowhere"},
		{"leads to a file", map[string]string{"r/.git": "gitdir: ../x\n", "x": ""}, "r", Checkout{Root: "r"}, "r/.git leads nowhere"},
		{"common folder malformed", map[string]string{"r/.git/commondir": "\n"}, "r", Checkout{Root: "r"}, "commondir is malformed"},
		{"huge", map[string]string{"r/.git": "gitdir: " + strings.Repeat("x", maxSmall)}, "r", Checkout{Root: "r"}, "r/.git has more than"},
		{"no such folder", map[string]string{}, "none", Checkout{}, "none"},
		{"a file", map[string]string{"f": ""}, "f", Checkout{}, "not a folder"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			root := makeTree(t, tt.files)
			want := tt.want
			for _, p := range []*string{&want.Root, &want.GitDir, &want.CommonDir} {
				if *p != "" {
					*p = filepath.Join(root, filepath.FromSlash(*p))
				}
			}
			got, err := Find(filepath.Join(root, filepath.FromSlash(tt.dir)))
			if got != want {
				t.Errorf("Find(%q) = %+v, want %+v", tt.dir, got, want)
			}
			if tt.err == "" && err != nil || tt.err != "" && (err == nil || !strings.Contains(filepath.ToSlash(err.Error()), tt.err)) {
				t.Errorf("Find(%q): error %v, want %q", tt.dir, err, tt.err)
			}
		})
	}
}

func TestFindWithoutGit(t *testing.T) {
	dir := filepath.Join(makeTree(t, map[string]string{"a/b/": ""}), "a", "b")
	got, err := Find(dir)
	if err != nil {
		t.Fatal(err)
	}
	if got.CommonDir != "" {
		t.Skipf("the folder for temporary files is in a checkout: %+v", got)
	}
	if want := (Checkout{Root: dir}); got != want {
		t.Errorf("Find(%q) = %+v, want %+v", dir, got, want)
	}
}

func TestFindThroughLink(t *testing.T) {
	root := makeTree(t, map[string]string{"r/.git/HEAD": "ref: refs/heads/main", "r/a/": "", "x/": ""})
	link := filepath.Join(root, "x", "link")
	symlink(t, filepath.Join(root, "r", "a"), link)
	got, err := Find(link)
	if want := filepath.Join(root, "r"); got.Root != want || err != nil {
		t.Errorf("Find through a link = %+v, %v; want root %q", got, err, want)
	}
}

func TestKey(t *testing.T) {
	root := makeTree(t, map[string]string{"a/.git/": "", "b/.git/": "", "c/": ""})
	key := func(dir string) string {
		t.Helper()
		c, err := Find(filepath.Join(root, dir))
		if err != nil {
			t.Fatal(err)
		}
		return c.Key()
	}
	a := key("a")
	if len(a) != 32 || strings.Trim(a, "0123456789abcdef") != "" {
		t.Errorf("Key() = %q, want 32 hexadecimal digits", a)
	}
	if key("a") != a {
		t.Error("the key of one repository differs from call to call")
	}
	if key("b") == a || key("c") == a {
		t.Error("two repositories have the same key")
	}

	// A repository that was moved is the same.
	if err := os.Rename(filepath.Join(root, "a"), filepath.Join(root, "moved")); err != nil {
		t.Fatal(err)
	}
	if key("moved") != a {
		t.Error("the key changed with the path")
	}

	// Folders that are gone are told apart by their paths.
	gone := Checkout{Root: filepath.Join(root, "1")}.Key()
	if again := (Checkout{Root: filepath.Join(root, "1")}).Key(); again != gone {
		t.Errorf("the key of a folder that is gone is %q, then %q", gone, again)
	}
	if other := (Checkout{Root: filepath.Join(root, "2")}).Key(); other == gone {
		t.Errorf("two folders that are gone have the key %q", gone)
	}
}

// What the real git makes is understood.
func TestRealGit(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	root := makeTree(t, map[string]string{"main/f": "1", "lib/f": "2"})
	git := func(dir string, args ...string) string {
		t.Helper()
		cmd := exec.Command("git", append([]string{
			"-c", "protocol.file.allow=always", "-c", "user.name=t", "-c", "user.email=t@example.com",
			"-c", "commit.gpgsign=false", "-c", "init.defaultBranch=trunk",
		}, args...)...)
		cmd.Dir = filepath.Join(root, dir)
		// Nothing of the person who runs the test, or of a hook it runs in.
		for _, v := range os.Environ() {
			if !strings.HasPrefix(v, "GIT_") {
				cmd.Env = append(cmd.Env, v)
			}
		}
		cmd.Env = append(cmd.Env, "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_SYSTEM="+os.DevNull)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %q: %v: %s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	for _, dir := range []string{"lib", "main"} {
		git(dir, "init", "-q")
		git(dir, "add", ".")
		git(dir, "commit", "-qm", "first")
	}
	git("main", "submodule", "--quiet", "add", filepath.Join(root, "lib"), "sub")
	git("main", "commit", "-qm", "second")
	git("main", "worktree", "add", "-q", "-b", "topic/x", filepath.Join(root, "tree"))
	git("main", "worktree", "add", "-q", "--detach", filepath.Join(root, "loose"))

	found := map[string]Checkout{}
	for _, dir := range []string{"main", "lib", "tree", "loose", "main/sub"} {
		c, err := Find(filepath.Join(root, dir))
		if err != nil {
			t.Fatal(err)
		}
		found[dir] = c
		for _, q := range []struct{ got, ask string }{
			{c.Root, "--show-toplevel"},
			{c.GitDir, "--absolute-git-dir"},
			{c.CommonDir, "--git-common-dir"},
		} {
			want := from(filepath.Join(root, dir), git(dir, "rev-parse", q.ask))
			if q.got != want {
				t.Errorf("%s: %q, want what git rev-parse %s says, %q", dir, q.got, q.ask, want)
			}
		}
		if want := git(dir, "branch", "--show-current"); c.Branch != want {
			t.Errorf("%s: branch %q, want %q", dir, c.Branch, want)
		}
		wantHead := ""
		if c.Branch == "" {
			wantHead = git(dir, "rev-parse", "HEAD")[:shortHash]
		}
		if c.Head != wantHead {
			t.Errorf("%s: head %q, want %q", dir, c.Head, wantHead)
		}
	}

	team := found["main"].Key()
	for dir, same := range map[string]bool{"tree": true, "loose": true, "main/sub": false, "lib": false} {
		if got := found[dir].Key() == team; got != same {
			t.Errorf("%s is in the team of main: %v, want %v", dir, got, same)
		}
	}
	if found["main/sub"].Key() == found["lib"].Key() {
		t.Error("a submodule is in the team of the repository it was cloned from")
	}
}

func symlink(t *testing.T, target, link string) {
	t.Helper()
	if err := os.Symlink(target, link); err != nil {
		if runtime.GOOS == "windows" {
			t.Skip("links need a privilege here:", err)
		}
		t.Fatal(err)
	}
}
