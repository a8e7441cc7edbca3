package atomicfile

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/windows"
)

// attempts bounds the retries: 1+2+4+…+64 ms, an eighth of a second in all. A reader or a virus scanner holds a small file for less.
const attempts = 8

func rename(from, to string) error {
	return retry(func() error { return os.Rename(from, to) })
}

// renameNew moves from to to unless to exists: MoveFileEx without
// MOVEFILE_REPLACE_EXISTING is atomic on a volume.
func renameNew(from, to string) error {
	fromp, err := windows.UTF16PtrFromString(from)
	if err != nil {
		return err
	}
	top, err := windows.UTF16PtrFromString(to)
	if err != nil {
		return err
	}
	err = retry(func() error {
		if err := windows.MoveFileEx(fromp, top, 0); err != nil {
			return &os.LinkError{Op: "rename", Old: from, New: to, Err: err}
		}
		return nil
	})
	if err == nil || isExist(err) {
		return err
	}
	return reserveAndRename(from, to)
}

// retry repeats op while it fails because somebody else has the file open or is
// replacing it. Windows refuses to replace an open file, and readers hold it
// for an instant.
func retry(op func() error) error {
	wait := time.Millisecond
	for i := 1; ; i++ {
		err := op()
		if err == nil || i == attempts || !transient(err) {
			return err
		}
		time.Sleep(wait)
		wait *= 2
	}
}

func transient(err error) bool {
	return errors.Is(err, windows.ERROR_SHARING_VIOLATION) ||
		errors.Is(err, windows.ERROR_LOCK_VIOLATION) ||
		// Also what Windows says for a file that is read-only or whose
		// deletion is pending; the first costs us the wait.
		errors.Is(err, windows.ERROR_ACCESS_DENIED)
}
