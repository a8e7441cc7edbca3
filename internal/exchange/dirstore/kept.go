package dirstore

import (
	"io/fs"
	"os"
	"sync"
	"time"
)

// kept remembers what small files held, so that only those which changed since
// are read and decoded again.
type kept[T any] struct {
	mu    sync.Mutex // guards files
	files map[string]keptFile[T]
}

type keptFile[T any] struct {
	info  fs.FileInfo
	value T
}

const (
	// settled is how old a file's time must be before the next change is sure
	// to give it another: file times are as coarse as the system's clock tick.
	settled = 50 * time.Millisecond
	// maxKept bounds how many files are remembered.
	maxKept = 2000
)

// read is readJSON for a file that is replaced when it changes.
func (k *kept[T]) read(path string, limit int64) (T, error) {
	// Before the reading: what is read may be newer, and is read again then.
	info, err := os.Lstat(path)
	if err != nil {
		var none T
		return none, err
	}
	k.mu.Lock()
	f, ok := k.files[path]
	k.mu.Unlock()
	if ok && os.SameFile(f.info, info) && f.info.ModTime().Equal(info.ModTime()) && f.info.Size() == info.Size() {
		return f.value, nil
	}
	var v T
	if err := readJSON(path, limit, &v); err != nil {
		return v, err
	}
	if time.Since(info.ModTime()) > settled {
		k.mu.Lock()
		defer k.mu.Unlock()
		if k.files == nil || len(k.files) >= maxKept {
			k.files = make(map[string]keptFile[T])
		}
		k.files[path] = keptFile[T]{info, v}
	}
	return v, nil
}
