package atomicfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

var (
	// ErrTooLarge means that a file holds more than the reader accepts.
	ErrTooLarge = errors.New("file is too large")

	// ErrNotRegular means that a path names something other than a regular
	// file: a folder, a symbolic link, a pipe, a socket, a device.
	ErrNotRegular = errors.New("not a regular file")
)

// ReadCapped returns the content of the file at path, at most max bytes of it:
// a longer file is refused with ErrTooLarge. Symbolic links aren't followed,
// and anything but a regular file is refused with ErrNotRegular. It doesn't
// block, whatever was planted at path. A file that isn't there is
// fs.ErrNotExist.
func ReadCapped(path string, max int64) ([]byte, error) {
	f, err := openFile(path)
	if err != nil {
		if notRegular(err) {
			return nil, fmt.Errorf("read %s: %w", path, ErrNotRegular)
		}
		return nil, err // names the operation and the path
	}
	defer f.Close()

	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("read %s: %w", path, ErrNotRegular)
	}
	if info.Size() > max {
		return nil, fmt.Errorf("read %s: %w: %d bytes, the limit is %d", path, ErrTooLarge, info.Size(), max)
	}

	var buf bytes.Buffer
	buf.Grow(int(info.Size()) + bytes.MinRead)
	// One byte more than allowed shows that the file grew since.
	if _, err := buf.ReadFrom(io.LimitReader(f, max+1)); err != nil {
		return nil, err
	}
	if int64(buf.Len()) > max {
		return nil, fmt.Errorf("read %s: %w: the limit is %d bytes", path, ErrTooLarge, max)
	}
	return buf.Bytes(), nil
}
