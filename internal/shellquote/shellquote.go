// Package shellquote writes a word so that a POSIX shell reads it as that word
// and no more: for commands that a person pastes.
package shellquote

import "strings"

// Quote makes a path safe to paste into a shell. What needs no quotes stays as
// it is.
func Quote(path string) string {
	if path != "" && !strings.ContainsFunc(path, special) {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}

// special reports whether a shell might see more in r than a letter.
func special(r rune) bool {
	switch {
	case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9':
		return false
	}
	return !strings.ContainsRune("/._-+:@%", r)
}
