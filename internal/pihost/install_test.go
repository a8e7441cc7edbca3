package pihost

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// filesOf makes an extension of name, content pairs.
func filesOf(pairs ...string) fs.FS {
	m := make(fstest.MapFS)
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = &fstest.MapFile{Data: []byte(pairs[i+1])}
	}
	return m
}

var version1 = []string{"index.ts", "one", "old.ts", "old", "lib/part.ts", "part", "package.json", `{"name":"switchboard-pi","version":"1.0.0"}`}

var version2 = []string{"index.ts", "two", "package.json", `{"name":"switchboard-pi","version":"2.0.0"}`}

// tree reads all files below a folder.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := make(map[string]string)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		out[filepath.ToSlash(name)] = string(data)
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return out
}

func put(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func install(t *testing.T, e Extension, version string, want bool) {
	t.Helper()
	changed, err := e.Install("/bin/switchboard", version)
	if err != nil || changed != want {
		t.Fatalf("Install = %v, %v; want %v", changed, err, want)
	}
}

func names(files map[string]string) []string { return slices.Sorted(maps.Keys(files)) }

func TestInstallAndUninstall(t *testing.T) {
	dir := t.TempDir()
	old := Extension{Files: filesOf(version1...), AgentDir: dir}
	e := Extension{Files: filesOf(version2...), AgentDir: dir}

	install(t, old, "1", true)
	install(t, old, "1", false)
	if got := names(tree(t, old.Dir())); !slices.Equal(got, []string{"index.ts", "install.json", "lib/part.ts", "old.ts", "package.json"}) {
		t.Errorf("installed %q", got)
	}
	s, err := e.Status()
	if err != nil || s.Manifest.Version != "1" || s.Version != "1.0.0" || !slices.Equal(s.Other, []string{"index.ts", "lib/part.ts", "old.ts", "package.json"}) {
		t.Errorf("Status beside a newer program = %+v, %v", s, err)
	}

	install(t, e, "2", true)
	if got := tree(t, e.Dir()); len(got) != 3 || got["index.ts"] != "two" {
		t.Errorf("updated to %q", got)
	}
	install(t, e, "3", true) // another program: written down
	if s, _ := e.Status(); s.Manifest.Version != "3" || len(s.Other) > 0 {
		t.Errorf("Status = %+v", s)
	}

	for _, want := range []bool{true, false} {
		removed, left, err := e.Uninstall()
		if err != nil || removed != want || len(left) > 0 {
			t.Errorf("Uninstall = %v, %q, %v; want %v", removed, left, err, want)
		}
	}
	if entries, err := os.ReadDir(filepath.Join(dir, "extensions")); err != nil || len(entries) > 0 {
		t.Errorf("left in extensions: %v, %v", entries, err)
	}
}

func TestForeignFilesStay(t *testing.T) {
	dir := t.TempDir()
	old := Extension{Files: filesOf(version1...), AgentDir: dir}
	e := Extension{Files: filesOf(version2...), AgentDir: dir}
	install(t, old, "1", true)
	put(t, filepath.Join(e.Dir(), "notes.txt"), "mine")
	put(t, filepath.Join(e.Dir(), "lib", "mine.ts"), "mine too")

	install(t, e, "2", true)
	want := []string{"index.ts", "install.json", "lib/mine.ts", "notes.txt", "package.json"}
	if got := names(tree(t, e.Dir())); !slices.Equal(got, want) {
		t.Errorf("after an update: %q, want %q", got, want)
	}
	install(t, e, "2", false)
	removed, left, err := e.Uninstall()
	if err != nil || !removed || !slices.Equal(left, []string{"lib/mine.ts", "notes.txt"}) {
		t.Errorf("Uninstall = %v, %q, %v", removed, left, err)
	}
	got := tree(t, e.Dir())
	if diff := cmp.Diff(map[string]string{"lib/mine.ts": "mine too", "notes.txt": "mine"}, got); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
}

// An installation may die anywhere; the next one, or uninstall, puts it right.
func TestHalfInstalled(t *testing.T) {
	states := map[string]func(t *testing.T, e Extension){
		"no manifest": func(t *testing.T, e Extension) { put(t, e.path("index.ts"), "one") },
		"damaged manifest": func(t *testing.T, e Extension) {
			put(t, e.path("index.ts"), "two")
			put(t, e.path(manifestName), `{"bin`)
		},
		"manifest of odd names": func(t *testing.T, e Extension) {
			put(t, e.path("index.ts"), "two")
			put(t, e.path(manifestName), `{"files":["../outside.ts","/etc/passwd",".",""]}`)
		},
		"a temporary file": func(t *testing.T, e Extension) { put(t, e.path("index.ts"), "two"); put(t, e.path(".tmp-1"), "tw") },
		"died between the two renames": func(t *testing.T, e Extension) {
			stage := filepath.Join(filepath.Dir(e.Dir()), stagePrefix+"1")
			put(t, filepath.Join(stage, "old", "index.ts"), "one")
			put(t, filepath.Join(stage, "new", "index.ts"), "two")
			then := time.Now().Add(-time.Hour)
			if err := os.Chtimes(stage, then, then); err != nil {
				t.Fatal(err)
			}
		},
	}
	for name, prepare := range states {
		t.Run(name, func(t *testing.T) {
			for _, again := range []bool{true, false} {
				dir := t.TempDir()
				outside := filepath.Join(dir, "extensions", "outside.ts")
				put(t, outside, "not ours")
				e := Extension{Files: filesOf(version2...), AgentDir: dir}
				prepare(t, e)
				if again {
					install(t, e, "2", true)
					if got := names(tree(t, e.Dir())); !slices.Equal(got, []string{"index.ts", "install.json", "package.json"}) {
						t.Errorf("after Install: %q", got)
					}
				}
				if _, _, err := e.Uninstall(); err != nil {
					t.Error(err)
				}
				if got := names(tree(t, filepath.Dir(e.Dir()))); !slices.Equal(got, []string{"outside.ts"}) {
					t.Errorf("after Uninstall: %q", got)
				}
			}
		})
	}
}

// Pi looks one level deep for extensions: what is being prepared is no second
// copy, and another installation's is left to it.
func TestPreparedIsNoExtension(t *testing.T) {
	dir := t.TempDir()
	e := Extension{Files: filesOf(version2...), AgentDir: dir}
	running := filepath.Join(dir, "extensions", stagePrefix+"9", "new", "index.ts")
	put(t, running, "another's")
	install(t, e, "2", true)
	if _, err := os.Stat(running); err != nil {
		t.Error(err)
	}
	if c := Clashes(dir); len(c) > 0 {
		t.Errorf("Clashes = %+v", c)
	}
}

func TestLinkIsLeftAlone(t *testing.T) {
	dir := t.TempDir()
	e := Extension{Files: filesOf(version2...), AgentDir: dir}
	checkout := filepath.Join(dir, "checkout")
	put(t, filepath.Join(checkout, "index.ts"), "mine")
	if err := os.MkdirAll(filepath.Dir(e.Dir()), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(checkout, e.Dir()); err != nil {
		t.Skip(err)
	}
	var me *MendError
	if _, err := e.Install("/bin/switchboard", "2"); !errors.As(err, &me) {
		t.Errorf("Install over a link: %v", err)
	}
	if _, _, err := e.Uninstall(); !errors.As(err, &me) {
		t.Errorf("Uninstall of a link: %v", err)
	}
	if got := tree(t, checkout); got["index.ts"] != "mine" || len(got) != 1 {
		t.Errorf("behind the link: %q", got)
	}
}

func TestClashes(t *testing.T) {
	dir := t.TempDir()
	in := func(name, content string) { put(t, filepath.Join(dir, "extensions", name), content) }
	in("switchboard/index.ts", `name: "touchtone"`)
	in("harmless.ts", `pi.registerTool({ name: "grep" })`)
	in("Pi-Telecom/index.ts", "")
	in("calls.js", `pi.registerTool({ "name": 'touchtone' })`)
	in("renamed/package.json", `{"name":"@someone/pi-beacon"}`)
	put(t, filepath.Join(dir, "packages", "copy", "package.json"), `{"name":"switchboard-pi"}`)
	put(t, filepath.Join(dir, "settings.json"), `{"packages":["npm:fine",{"source":"git:host/u/pi-touchtone"},"packages/copy",7,null],"extensions":["/x/fine.ts"]}`)
	var got []string
	for _, c := range Clashes(dir) {
		where := c.Where
		if rel, err := filepath.Rel(dir, where); err == nil && filepath.IsAbs(where) {
			where = filepath.ToSlash(rel)
		}
		got = append(got, where+" "+c.Why)
	}
	want := []string{
		"extensions/Pi-Telecom is called after telecom",
		"extensions/calls.js registers a tool touchtone",
		"extensions/renamed is called after beacon",
		"git:host/u/pi-touchtone is called after touchtone",
		"packages/copy is this extension once more",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Clashes (-want +got):\n%s", diff)
	}
	put(t, filepath.Join(dir, "settings.json"), `not JSON`)
	if got := Clashes(dir); len(got) != 3 {
		t.Errorf("with damaged settings: %+v", got)
	}
	if got := Clashes(filepath.Join(dir, "none")); got != nil {
		t.Errorf("without an agent directory: %+v", got)
	}
}

func TestAgentDir(t *testing.T) {
	home := filepath.FromSlash("/home/u")
	for env, want := range map[string]string{
		"": "/home/u/.pi/agent", "~": "/home/u", "~/x/y": "/home/u/x/y", "/abs": "/abs", "~other": "~other",
	} {
		got := AgentDir(func(string) string { return env }, home)
		if filepath.ToSlash(got) != want {
			t.Errorf("AgentDir with %q = %q, want %q", env, got, want)
		}
	}
}

func TestOlder(t *testing.T) {
	tests := []struct {
		a, b string
		want bool
	}{
		{"1.2.9", "1.3", true},
		{"1.3", "1.3", false},
		{"1.3.0", "1.3", false},
		{"1.10", "1.3", false},
		{"0.99.1", "1.3", true},
		{"2.0", "1.3", false},
	}
	for _, tt := range tests {
		if got := older(tt.a, tt.b); got != tt.want {
			t.Errorf("older(%q, %q) = %v, want %v", tt.a, tt.b, got, tt.want)
		}
	}
}
