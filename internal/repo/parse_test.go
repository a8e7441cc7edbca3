package repo

import (
	"strings"
	"testing"
)

func TestParseHead(t *testing.T) {
	long := strings.Repeat("ab", 32)
	tests := []struct{ text, branch, commit string }{
		{"ref: refs/heads/main\n", "main", ""},
		{"ref: refs/heads/feature/über-1", "feature/über-1", ""},
		{"ref:refs/heads/main", "main", ""},
		{"ref: \t refs/heads/main \r\n", "main", ""},
		{"ref: refs/heads/", "", ""},
		{"ref: refs/heads/.invalid\n", "", ""},
		{"ref: refs/remotes/origin/main\n", "", ""},
		{"ref: refs/heads/a\x1b[31mb\n", "", ""},
		{"ref: refs/heads/a\nb\n", "", ""},
		{"ref: refs/heads/a\xffb\n", "", ""},
		{hash + "\n", "", hash[:12]},
		{long, "", long[:12]},
		{hash[:39], "", ""},
		{strings.ToUpper(hash), "", ""},
		{"", "", ""},
	}
	for _, tt := range tests {
		if branch, commit := parseHead(tt.text); branch != tt.branch || commit != tt.commit {
			t.Errorf("parseHead(%q) = %q, %q; want %q, %q", tt.text, branch, commit, tt.branch, tt.commit)
		}
	}
}

func TestParseDotGit(t *testing.T) {
	tests := []struct {
		text, path string
		ok         bool
	}{
		{"gitdir: /a/b\n", "/a/b", true},
		{"gitdir: ../a b \r\n", "../a b ", true},
		{"gitdir: a", "a", true},
		{"gitdir:a", "", false},
		{"gitdir: \n", "", false},
		{"gitdir: a\x00b", "", false},
		{"gitdir: a\nb", "", false},
		{" gitdir: a", "", false},
		{"", "", false},
	}
	for _, tt := range tests {
		if path, ok := parseDotGit(tt.text); path != tt.path || ok != tt.ok {
			t.Errorf("parseDotGit(%q) = %q, %v; want %q, %v", tt.text, path, ok, tt.path, tt.ok)
		}
	}
}

func FuzzParseHead(f *testing.F) {
	for _, s := range []string{"ref: refs/heads/main\n", hash + "\n", "ref: ", "ref: refs/heads/.invalid", "\xff", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		branch, commit := parseHead(text)
		if branch != "" && commit != "" {
			t.Errorf("both a branch %q and a commit %q", branch, commit)
		}
		if !printable(branch) || branch != "" && !strings.Contains(text, branch) {
			t.Errorf("branch %q from %q", branch, text)
		}
		if len(commit) != 0 && len(commit) != shortHash {
			t.Errorf("commit %q", commit)
		}
	})
}

func FuzzParseDotGit(f *testing.F) {
	for _, s := range []string{"gitdir: /a/b\n", "gitdir: \n", "gitdir: a\nb", "gitdir: \x00", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		path, ok := parseDotGit(text)
		if ok != (path != "") || strings.ContainsAny(path, "\x00\n\r") {
			t.Errorf("parseDotGit(%q) = %q, %v", text, path, ok)
		}
		if again, ok2 := parseDotGit("gitdir: " + path); ok && (!ok2 || again != path) {
			t.Errorf("path %q comes back as %q, %v", path, again, ok2)
		}
	})
}
