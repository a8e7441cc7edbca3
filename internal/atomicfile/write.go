// Package atomicfile writes files that other processes read at the same time:
// a reader sees the old content, the new content or no file, never a part.
// It also reads files that other processes wrote, without being stopped by
// what may lie there instead.
//
// Nothing is fsynced. The death of any process, at any instant, loses nothing
// that was written; a power cut may take the last moments, which costs a tenth
// of what syncing every message and record would.
package atomicfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// tempPrefix starts the name of every file that isn't finished. The dot hides
// it from globs and from people.
const tempPrefix = ".tmp-"

// IsTemp reports whether name, a path or its last element, is that of a file
// that is being written, or that was left by a writer that died. Whoever lists
// a folder skips these.
func IsTemp(name string) bool {
	return strings.HasPrefix(filepath.Base(name), tempPrefix)
}

// Write replaces the file at path, or creates it, with mode 0600. The folder
// must exist. On an error the old file is untouched.
func Write(path string, data []byte) error {
	temp, err := writeTemp(filepath.Dir(path), data)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := rename(temp, path); err != nil {
		_ = os.Remove(temp)
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// Create writes a file that must not exist yet, with mode 0600. Of several
// that create the same path exactly one succeeds; the others get an error that
// is fs.ErrExist. Where a file system can't link files, a reader may see the
// file empty, but still never in part, before it has its content.
func Create(path string, data []byte) error {
	temp, err := writeTemp(filepath.Dir(path), data)
	if err != nil {
		return fmt.Errorf("create %s: %w", path, err)
	}
	if err := renameNew(temp, path); err != nil {
		_ = os.Remove(temp)
		return fmt.Errorf("create %s: %w", path, err)
	}
	return nil
}

// writeTemp writes data to a new file in dir and returns its path.
func writeTemp(dir string, data []byte) (string, error) {
	f, err := os.CreateTemp(dir, tempPrefix+"*") // mode 0600, O_EXCL
	if err != nil {
		return "", err
	}
	_, err = f.Write(data)
	// Network file systems report a full disk only when the file is closed.
	if err := errors.Join(err, f.Close()); err != nil {
		_ = os.Remove(f.Name())
		return "", err
	}
	return f.Name(), nil
}

// reserveAndRename is Create for file systems without hard links: the empty
// file decides who is first, the rename fills it.
func reserveAndRename(temp, path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_ = f.Close()
	if err := rename(temp, path); err != nil {
		_ = os.Remove(path) // ours, and still empty
		return err
	}
	return nil
}

// isExist reports whether err means that the target is there already.
func isExist(err error) bool { return errors.Is(err, fs.ErrExist) }
