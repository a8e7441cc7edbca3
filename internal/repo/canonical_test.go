package repo

import (
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestCanonical(t *testing.T) {
	root := makeTree(t, map[string]string{"real/sub/f": "", "base/f": "", "home/f": "", "file": ""})
	t.Setenv("HOME", filepath.Join(root, "home"))
	t.Setenv("USERPROFILE", filepath.Join(root, "home"))
	for link, target := range map[string]string{
		"base/dir":      "../real",
		"base/abs":      filepath.Join(root, "real", "sub"),
		"base/flink":    "dir/sub/f",
		"base/dangling": "../real/new",
		"base/updown":   "dir/sub/../sub",
		"base/loop":     "loop",
		"base/ping":     "pong",
		"base/pong":     "ping",
		"link":          "base",
	} {
		symlink(t, filepath.FromSlash(target), filepath.Join(root, filepath.FromSlash(link)))
	}
	chain := "f"
	for i := range maxLinks + 1 {
		name := fmt.Sprint("c", i)
		symlink(t, chain, filepath.Join(root, "base", name))
		chain = name
	}
	slashed := "/" + strings.TrimPrefix(filepath.ToSlash(root), "/")

	tests := []struct {
		path string
		want string // below root; "" is an error
	}{
		{"f", "base/f"},
		{"./f", "base/f"},
		{"../base//f/", "base/f"},
		{"@f", "base/f"},
		{"@@f", "base/@f"},
		{"~/f", "home/f"},
		{"@~/f", "home/f"},
		{"~", "home"},
		{"~f", "base/~f"},
		{"a/~/f", "base/a/~/f"},
		{root + "/real/sub/f", "real/sub/f"},
		{"@" + root + "/real/sub/f", "real/sub/f"},
		{"file://" + slashed + "/real/sub/f", "real/sub/f"},
		{"@file://localhost" + slashed + "/real/s%75b/a%20b", "real/sub/a b"},
		{"new", "base/new"},
		{"no/such/folder/f", "base/no/such/folder/f"},
		{"dir/sub/f", "real/sub/f"},
		{"dir/none/f", "real/none/f"},
		{"abs/f", "real/sub/f"},
		{"flink", "real/sub/f"},
		{"dangling", "real/new"},
		{"dangling/x", "real/new/x"},
		{"updown/f", "real/sub/f"},
		{"dir/../f", "base/f"}, // the tools clean before they follow
		{"../link/dir/sub/f", "real/sub/f"},
		{"../file/x", "file/x"}, // can't be, but that isn't our business
		{fmt.Sprint("c", maxLinks-1), "base/f"},
		{fmt.Sprint("c", maxLinks), ""},
		{"loop", ""},
		{"loop/f", ""},
		{"ping", ""},
		{"", ""},
		{"@", ""},
		{"a\x00b", ""},
		{"file://%zz", ""},
		{"file://" + slashed + "/a%2fb", ""},
		{"file://" + slashed + "/a%00b", ""},
	}
	if runtime.GOOS != "windows" {
		tests = append(tests, struct{ path, want string }{"file://elsewhere/f", ""}, struct{ path, want string }{"file://", ""})
	}
	base := filepath.Join(root, "base")
	for _, tt := range tests {
		got, err := Canonical(base, tt.path)
		want := ""
		if tt.want != "" {
			want = filepath.Join(root, filepath.FromSlash(tt.want))
		}
		if got != want || (err == nil) != (want != "") {
			t.Errorf("Canonical(base, %q) = %q, %v; want %q", tt.path, got, err, want)
		}
		if err != nil {
			continue
		}
		if again, err := Canonical(base, got); again != got || err != nil {
			t.Errorf("Canonical(base, %q) = %q, %v; want it unchanged", got, again, err)
		}
	}

	// The base may be spelled through a link too.
	if got, _ := Canonical(filepath.Join(root, "link"), "f"); got != filepath.Join(base, "f") {
		t.Errorf("Canonical(link, f) = %q", got)
	}
}

// For what exists, the model is filepath.EvalSymlinks.
func TestCanonicalLikeEvalSymlinks(t *testing.T) {
	root := makeTree(t, map[string]string{"a/a/a": "", "a/b/c": "", "b/a": "", "b/b/b/": ""})
	for link, target := range map[string]string{
		"c": "a", "a/c": "../b", "b/c": root, "b/b/c": "../../a/c", "a/a/b": "c", "a/a/c": "../a/b", "b/b/b/a": "../../../c/b/c",
	} {
		symlink(t, target, filepath.Join(root, filepath.FromSlash(link)))
	}
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c", ".", ".."}), 1, 8).Draw(t, "parts")
		path := filepath.Join(append([]string{root}, parts...)...)
		want, err := filepath.EvalSymlinks(path)
		if err != nil {
			return // nothing to compare with
		}
		if got, err := Canonical(root, path); got != want || err != nil {
			t.Errorf("Canonical(%q) = %q, %v; want %q", path, got, err, want)
		}
	})
}
