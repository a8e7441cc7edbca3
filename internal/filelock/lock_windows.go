package filelock

import (
	"errors"
	"io/fs"

	"golang.org/x/sys/windows"
)

// A shared lock, even for an instant, stands in the way of an exclusive one.
const askingDisturbs = true

type handle = windows.Handle

func open(path string) (handle, error) { return openMode(path, windows.OPEN_ALWAYS) }

// openMode opens without following a link. Children don't inherit the handle,
// and permissions are those of the folder, as Windows does it.
func openMode(path string, mode uint32) (handle, error) {
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return windows.InvalidHandle, err
	}
	return windows.CreateFile(name,
		windows.GENERIC_READ|windows.GENERIC_WRITE,
		windows.FILE_SHARE_READ|windows.FILE_SHARE_WRITE|windows.FILE_SHARE_DELETE,
		nil, mode, windows.FILE_ATTRIBUTE_NORMAL|windows.FILE_FLAG_OPEN_REPARSE_POINT, 0)
}

func closeHandle(h handle) error { return windows.CloseHandle(h) }

func tryLock(h handle) error { return lock(h, windows.LOCKFILE_EXCLUSIVE_LOCK) }

// lock locks the first byte, which needn't exist.
func lock(h handle, flags uint32) error {
	err := windows.LockFileEx(h, flags|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, new(windows.Overlapped))
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) || errors.Is(err, windows.ERROR_IO_PENDING) {
		return ErrHeld
	}
	return err
}

func unlock(h handle) error {
	return windows.UnlockFileEx(h, 0, 1, 0, new(windows.Overlapped))
}

// ask tries a shared lock, which others that ask can have as well.
func ask(path string) (bool, error) {
	h, err := openMode(path, windows.OPEN_EXISTING)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer closeHandle(h)
	switch err := lock(h, 0); {
	case errors.Is(err, ErrHeld):
		return true, nil
	case err != nil:
		return false, err
	}
	return false, unlock(h)
}
