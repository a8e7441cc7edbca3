package agent

import (
	"testing"

	"switchboard/internal/team"
)

// What a text asks to call must work as it is written, from where the session
// was started.
func TestSays(t *testing.T) {
	for _, c := range []struct {
		below  string
		linked bool
		root   string
		rel    string
		want   string
	}{
		{"", false, "/repo", "a.txt", "a.txt"},
		{"", false, "/repo", "src/a.txt", "src/a.txt"},
		{"src", false, "/repo", "src/a.txt", "a.txt"},
		{"src", false, "/repo", "a.txt", "../a.txt"},
		{"src", false, "/repo", "srcs/a.txt", "../srcs/a.txt"},
		{"src/deep", false, "/repo", "src/a.txt", "../a.txt"},
		{"src/deep", false, "/repo", "test/a.txt", "../../test/a.txt"},
		{"src", true, "/repo", "src/a.txt", "a.txt"},
		{"src", true, "/repo", "a.txt", "/repo/a.txt"},
		{"", false, "/repo", "@a.txt", "./@a.txt"},
		{"", false, "/repo", "~/a.txt", "./~/a.txt"},
		{"~", false, "/repo", "~/@a.txt", "./@a.txt"},
		{"src", false, "/other", "src/a.txt", "/other/src/a.txt"},
		{"src", false, "", "", "/repo/"},
		{"", false, "/repo", "a file.txt", "a file.txt"},
		{"", false, "/repo", "odd\nname \x1b[31m\"é\u202e.txt", `"odd\u000aname \u001b[31m\"é\u202e.txt"`},
	} {
		a := New()
		a.place = Place{Checkout: Checkout{Root: "/repo"}, Below: c.below, Linked: c.linked}
		p := team.Path{File: c.root + "/" + c.rel, Root: c.root, Rel: c.rel}
		if c.root == "" {
			p.File = "/repo/"
		}
		if got := a.says(p); got != c.want {
			t.Errorf("%s %s from %q: %q, want %q", c.root, c.rel, c.below, got, c.want)
		}
	}
}
