package shellquote

import (
	"os/exec"
	"testing"
)

func TestQuote(t *testing.T) {
	for path, want := range map[string]string{
		"":                      "''",
		"/home/me/.pi/agent":    "/home/me/.pi/agent",
		"npm:@scope/pkg@1.2+a":  "npm:@scope/pkg@1.2+a",
		"/a folder":             "'/a folder'",
		"~/x":                   "'~/x'",
		"it's":                  `'it'\''s'`,
		"a\nb":                  "'a\nb'",
		"ü":                     "'ü'",
		"\xff":                  "'\xff'",
		"$HOME `x` \\ *;#\"&|<": "'$HOME `x` \\ *;#\"&|<'",
	} {
		if got := Quote(path); got != want {
			t.Errorf("Quote(%q) = %s, want %s", path, got, want)
		}
	}
}

// A shell gives back what was quoted.
func TestShellReadsIt(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("no shell here")
	}
	for _, path := range []string{"", "/plain", "it's a \"root\" $HOME `x` \\ *;#", "''", "'", "a\nb", "-n", "\xff", "!x", "{a,b}"} {
		out, err := exec.Command(sh, "-c", "printf %s "+Quote(path)).Output()
		if err != nil || string(out) != path {
			t.Errorf("the shell reads %s as %q, %v; want %q", Quote(path), out, err, path)
		}
	}
}
