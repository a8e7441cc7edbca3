package repo

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
)

// Canonical returns the one spelling of the file that an agent named path while
// it worked in the folder base: absolute and clean, without symbolic links. A
// leading @ is dropped (once), ~ and ~/ are the home folder, file:// URLs are
// taken apart. The file, and folders above it, need not exist. Paths that no
// file can have, and links that lead in a circle, are errors.
func Canonical(base, path string) (string, error) {
	expanded, err := expand(path)
	if err != nil {
		return "", fmt.Errorf("path %q: %w", path, err)
	}
	if !filepath.IsAbs(expanded) {
		expanded = filepath.Join(base, expanded)
	}
	// Clean before links are followed, as the agents' tools do: for them
	// a/../b is b, also when a is a link.
	abs, err := filepath.Abs(expanded)
	if err != nil {
		return "", fmt.Errorf("path %q: %w", path, err)
	}
	resolved, err := followLinks(abs)
	if err != nil {
		return "", fmt.Errorf("path %q: %w", path, err)
	}
	return resolved, nil
}

// expand undoes the ways in which people and models abbreviate a path.
func expand(path string) (string, error) {
	path = strings.TrimPrefix(path, "@")
	if path == "" {
		return "", errors.New("is empty")
	}
	if strings.ContainsRune(path, 0) {
		return "", errors.New("contains a NUL byte")
	}
	if strings.HasPrefix(path, "file://") {
		return fromURL(path)
	}
	if path != "~" && (path[0] != '~' || !os.IsPathSeparator(path[1])) {
		return filepath.FromSlash(path), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(home, path[1:]), nil
}

// fromURL returns the path that a file:// URL names on this machine.
func fromURL(text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil {
		return "", errors.New("is a malformed URL")
	}
	if lower := strings.ToLower(u.EscapedPath()); strings.Contains(lower, "%2f") || strings.Contains(lower, "%00") {
		return "", errors.New("is a URL with an escaped slash or NUL byte")
	}
	path := filepath.FromSlash(u.Path)
	local := u.Host == "" || strings.EqualFold(u.Host, "localhost")
	if runtime.GOOS != "windows" {
		if !local || path == "" {
			return "", errors.New("is not a URL of a file on this machine; write file:///path")
		}
		return path, nil
	}
	if !local {
		return `\\` + u.Host + path, nil
	}
	path = strings.TrimPrefix(path, `\`) // file:///C:/x has the path /C:/x
	if filepath.VolumeName(path) == "" {
		return "", errors.New("is a URL without a drive; write file:///C:/path")
	}
	return path, nil
}

// maxLinks is how many symbolic links Linux follows in one path.
const maxLinks = 40

// followLinks resolves the symbolic links in path, which is absolute and clean.
// Unlike filepath.EvalSymlinks it goes on where nothing exists yet, also below a
// link whose target doesn't: that is where a new file would come to be.
func followLinks(path string) (string, error) {
	const sep = string(filepath.Separator)
	split := func(path string) (root string, parts []string) {
		root = filepath.VolumeName(path) + sep
		return root, strings.Split(path[min(len(root), len(path)):], sep)
	}

	done, todo := split(path)
	links := 0
	for len(todo) > 0 {
		part := todo[0]
		todo = todo[1:]
		switch part {
		case "", ".":
			continue
		case "..": // from a link's target; done has no links left
			done = filepath.Dir(done)
			continue
		}
		next := filepath.Join(done, part)
		info, err := os.Lstat(next)
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
			done = next
			continue
		case err != nil:
			return "", err
		}
		target, ok, err := linkTarget(next, info)
		if err != nil {
			return "", err
		}
		if !ok {
			done = next
			continue
		}
		if links++; links > maxLinks {
			return "", fmt.Errorf("too many symbolic links at %s", next)
		}
		target = filepath.FromSlash(target)
		var parts []string
		switch {
		case filepath.IsAbs(target):
			done, parts = split(target)
		case target != "" && os.IsPathSeparator(target[0]): // Windows: root of the same drive
			done, parts = split(filepath.VolumeName(done) + target)
		default:
			parts = strings.Split(target, sep)
		}
		todo = append(parts, todo...)
	}
	return done, nil
}

// linkTarget returns where the file at path leads, if it is a link.
func linkTarget(path string, info os.FileInfo) (target string, ok bool, err error) {
	if info.Mode()&fs.ModeSymlink != 0 {
		target, err = os.Readlink(path)
		return target, err == nil, err
	}
	if runtime.GOOS == "windows" && info.Mode()&fs.ModeIrregular != 0 {
		// Junctions are irregular files to Go, which reads them as links.
		// Other things that are irregular (files kept in a cloud) aren't.
		target, err = os.Readlink(path)
		return target, err == nil, nil
	}
	return "", false, nil
}
