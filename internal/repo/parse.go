package repo

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxSmall bounds the files that we read, in bytes. Each holds one path or the
// name of one branch.
const maxSmall = 64 << 10

// readSmall reads one of git's one-line files. Anything but a regular file is
// refused, as a pipe would keep us waiting.
func readSmall(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() {
		return "", fmt.Errorf("%s is not a regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxSmall+1))
	if err != nil {
		return "", err
	}
	if len(text) > maxSmall {
		return "", fmt.Errorf("%s has more than %d bytes", path, maxSmall)
	}
	return string(text), nil
}

// parseDotGit returns the path in a .git file: "gitdir: <path>".
func parseDotGit(text string) (path string, ok bool) {
	path, ok = strings.CutPrefix(text, "gitdir: ")
	if !ok {
		return "", false
	}
	return parsePath(path)
}

// parsePath returns the path that is a file's only line. Spaces belong to it.
func parsePath(text string) (path string, ok bool) {
	path = strings.TrimRight(text, "\r\n")
	if path == "" || strings.ContainsAny(path, "\x00\r\n") {
		return "", false
	}
	return path, true
}

// shortHash is the number of digits of a commit that people are shown.
const shortHash = 12

// parseHead returns the branch that HEAD names, or the commit when it names
// none. Both are empty when it can't be understood.
func parseHead(text string) (branch, commit string) {
	line := strings.TrimRight(text, " \t\r\n")
	if ref, ok := strings.CutPrefix(line, "ref:"); ok {
		branch, ok := strings.CutPrefix(strings.TrimLeft(ref, " \t"), "refs/heads/")
		// With reftables HEAD is kept elsewhere, and the file names this
		// branch, which can't exist, for tools that don't know of them.
		if !ok || branch == ".invalid" || !printable(branch) {
			return "", ""
		}
		return branch, ""
	}
	// SHA-1 or SHA-256
	if (len(line) != 40 && len(line) != 64) || strings.Trim(line, "0123456789abcdef") != "" {
		return "", ""
	}
	return "", line[:shortHash]
}

// printable reports whether s can be shown as it is. Git allows nothing else in
// the name of a branch, and no spaces either.
func printable(s string) bool {
	if !utf8.ValidString(s) {
		return false
	}
	for _, r := range s {
		if !unicode.IsGraphic(r) || unicode.IsSpace(r) {
			return false
		}
	}
	return true
}
