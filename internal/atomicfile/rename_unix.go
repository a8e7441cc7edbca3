//go:build !windows

package atomicfile

import "os"

func rename(from, to string) error { return os.Rename(from, to) }

// renameNew moves from to to unless to exists. A link fails when its target
// exists, which a rename doesn't.
func renameNew(from, to string) error {
	err := os.Link(from, to)
	if err == nil {
		// If this fails the content has a second, temporary name, which
		// everybody skips.
		_ = os.Remove(from)
		return nil
	}
	if isExist(err) {
		return err
	}
	// vfat, some network and FUSE file systems, and Android have no links,
	// and each says so with another error.
	return reserveAndRename(from, to)
}
