// Package repo tells which checkout and repository a folder belongs to, and on
// which branch it is, by reading what git keeps in .git; it starts no process
// and needs no git. It also gives each file one canonical spelling, so that
// two sessions that mean the same file write the same path.
package repo

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Checkout is a working tree: the nearest folder at or above some folder that
// contains .git, or that folder itself. All paths are absolute, without
// symbolic links.
type Checkout struct {
	Root      string // the folder of the working tree
	GitDir    string // what git keeps for this checkout alone; "" without git
	CommonDir string // what all checkouts of the repository share; "" without git
	Branch    string // the branch checked out, without refs/heads/; "" when none is, or it isn't known
	Head      string // first 12 digits of the commit, when no branch is checked out
}

// Find returns the checkout that contains the folder dir. A worktree shares its
// CommonDir with the repository it was added to; a submodule is a repository of
// its own.
//
// When .git is there but can't be followed, the error names the file, and the
// Checkout has its Root, so that one can go on as if there were no git.
func Find(dir string) (Checkout, error) {
	dir, err := realFolder(dir)
	if err != nil {
		return Checkout{}, fmt.Errorf("find checkout: %w", err)
	}
	for root := dir; ; root = filepath.Dir(root) {
		dotGit := filepath.Join(root, ".git")
		switch info, err := os.Stat(dotGit); {
		case err == nil:
			c, err := open(root, dotGit, info)
			if err != nil {
				return Checkout{Root: root}, fmt.Errorf("find checkout: %w", err)
			}
			return c, nil
		case !errors.Is(err, fs.ErrNotExist):
			return Checkout{Root: root}, fmt.Errorf("find checkout: %w", err)
		}
		if root == filepath.Dir(root) {
			return Checkout{Root: dir}, nil
		}
	}
}

// open reads the checkout at root, whose .git is there.
func open(root, dotGit string, info os.FileInfo) (Checkout, error) {
	c := Checkout{Root: root}
	var err error
	if c.GitDir, err = gitDir(dotGit, info); err != nil {
		return c, err
	}
	if c.CommonDir, err = commonDir(c.GitDir); err != nil {
		return c, err
	}
	// A HEAD that is missing or makes no sense only costs the name of the
	// branch, which is for people to see.
	if text, err := readSmall(filepath.Join(c.GitDir, "HEAD")); err == nil {
		c.Branch, c.Head = parseHead(text)
	}
	return c, nil
}

// gitDir returns the folder that a checkout's .git is or names.
func gitDir(dotGit string, info os.FileInfo) (string, error) {
	if info.IsDir() {
		return realFolder(dotGit)
	}
	text, err := readSmall(dotGit)
	if err != nil {
		return "", err
	}
	target, ok := parseDotGit(text)
	if !ok {
		return "", fmt.Errorf(`%s is malformed: want one line "gitdir: <path>"`, dotGit)
	}
	dir, err := realFolder(from(filepath.Dir(dotGit), target))
	if err != nil {
		return "", fmt.Errorf("%s leads nowhere: %w", dotGit, err)
	}
	return dir, nil
}

// commonDir returns the folder that gitDir shares with other checkouts. Only
// that of a worktree has a file that names it.
func commonDir(gitDir string) (string, error) {
	file := filepath.Join(gitDir, "commondir")
	text, err := readSmall(file)
	if errors.Is(err, fs.ErrNotExist) {
		return gitDir, nil
	}
	if err != nil {
		return "", err
	}
	target, ok := parsePath(text)
	if !ok {
		return "", fmt.Errorf("%s is malformed: want one line with a path", file)
	}
	dir, err := realFolder(from(gitDir, target))
	if err != nil {
		return "", fmt.Errorf("%s leads nowhere: %w", file, err)
	}
	return dir, nil
}

// from resolves a path that git wrote, relative to dir unless it is absolute.
func from(dir, path string) string {
	path = filepath.FromSlash(path)
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

// realFolder returns the absolute path of a folder that exists, without
// symbolic links.
func realFolder(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	resolved, err := filepath.EvalSymlinks(abs)
	if err != nil {
		return "", err
	}
	info, err := os.Stat(resolved)
	if err != nil {
		return "", err
	}
	if !info.IsDir() {
		return "", fmt.Errorf("%s is not a folder", dir)
	}
	return resolved, nil
}
