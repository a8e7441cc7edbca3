//go:build unix

package bell

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// Sockets is whether bells are sockets in the file system, whose paths have a
// limit.
const Sockets = true

// Path returns where the bell called name in the folder dir, an absolute path,
// shall be: dir/name when that is short enough (see MaxPath), else a name
// derived from it in a short private folder, which Path creates:
// $XDG_RUNTIME_DIR/switchboard, or switchboard-<uid> below the folder for
// temporary files. That folder must belong to us and be closed to everybody
// else, or Path fails.
//
// Two processes may have different environments: publish what Path returned
// instead of working it out again elsewhere.
func Path(dir, name string) (string, error) {
	path, err := Place(dir, name)
	if err == nil && path != filepath.Join(dir, name) {
		err = makePrivate(filepath.Dir(path))
	}
	if err != nil {
		return "", err
	}
	return path, nil
}

// Place returns what Path would, and makes nothing. It says what Path could
// not use; whether a folder that isn't there can be made, only making it shows.
func Place(dir, name string) (string, error) {
	if err := checkName(name); err != nil {
		return "", err
	}
	path := filepath.Join(dir, name)
	if len(path) < MaxPath {
		return path, checkPath(path)
	}

	// 96 bits: nobody else's long path comes out the same.
	sum := sha256.Sum256([]byte(path))
	short := hex.EncodeToString(sum[:12])
	for _, dir := range shortFolders() {
		path := filepath.Join(dir, short)
		if checkPath(path) != nil {
			continue
		}
		err := checkPrivate(dir)
		if errors.Is(err, fs.ErrNotExist) {
			// XDG_RUNTIME_DIR can outlive the login that had it.
			if _, err := os.Stat(filepath.Dir(dir)); err != nil {
				continue
			}
			err = nil // not made yet
		}
		if err != nil {
			return "", err
		}
		return path, nil
	}
	return "", fmt.Errorf("path of a bell is too long, and no shorter folder was found; set XDG_RUNTIME_DIR or TMPDIR to one: %s", path)
}

// checkPath refuses what can't be the path of a bell. Relative ones would depend
// on the working directory, and such as "@x" aren't files on Linux.
func checkPath(path string) error {
	switch {
	case !filepath.IsAbs(path):
		return errors.New("path of a bell must be absolute")
	case strings.ContainsRune(path, 0):
		return errors.New("path of a bell contains a NUL byte")
	case len(path) >= MaxPath:
		return fmt.Errorf("path of a bell must be shorter than %d bytes, it has %d", MaxPath, len(path))
	}
	return nil
}

// shortFolders returns the candidates, best first. TMPDIR may be long itself.
func shortFolders() []string {
	own := "switchboard-" + strconv.Itoa(os.Geteuid())
	dirs := []string{filepath.Join(os.TempDir(), own), filepath.Join("/tmp", own)}
	if run := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(run) {
		dirs = append([]string{filepath.Join(run, "switchboard")}, dirs...)
	}
	return dirs
}

// makePrivate creates dir if needed, and makes sure that it is private.
func makePrivate(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return checkPrivate(dir)
}

// checkPrivate makes sure that dir is a folder of ours which nobody else can
// use. In a shared folder such as /tmp somebody else may have been there first.
func checkPrivate(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is not a folder; remove it", dir)
	}
	if st, ok := info.Sys().(*syscall.Stat_t); !ok || int(st.Uid) != os.Geteuid() {
		return fmt.Errorf("%s belongs to another user", dir)
	}
	if perm := info.Mode().Perm(); perm != 0o700 {
		return fmt.Errorf("%s has mode %#o, want 0700; run: chmod 700 %s", dir, perm, dir)
	}
	return nil
}
