package atomicfile

import (
	"os"

	"golang.org/x/sys/windows"
)

// openFile opens what is at path itself for reading: with this flag the handle
// of a link is the link, which isn't a regular file. A file that is being
// replaced can't be opened for an instant.
func openFile(path string) (*os.File, error) {
	var f *os.File
	err := retry(func() (err error) {
		f, err = os.OpenFile(path, os.O_RDONLY|windows.FILE_FLAG_OPEN_REPARSE_POINT, 0)
		return err
	})
	return f, err
}

func notRegular(error) bool { return false }
