package dirstore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/oklog/ulid/v2"

	"switchboard/internal/atomicfile"
	"switchboard/internal/bell"
)

// Report is what can be seen of a root without changing it.
type Report struct {
	Root   string // symbolic links resolved, as far as it is there
	Exists bool
	Mode   fs.FileMode // its permissions
	Open   bool        // to other users, but ours and empty: Open would close it
	// Store is for looking at what is there: Folders, Census, Mailboxes and
	// Problems. Unlike one that Open returns it may lack folders. Nil unless
	// the root is there, and fit for use as it is.
	Store *Store
}

// Inspect looks at a root and changes nothing. The error is the *RootError of
// what keeps Open, or the sessions after it, from using the root, as far as
// that shows without trying. What was seen until then is in the report.
func Inspect(root string) (Report, error) {
	r := Report{Root: root}
	real, err := filepath.EvalSymlinks(root)
	if err != nil {
		return r, canCreate(root, err)
	}
	r.Root, r.Exists = real, true
	if info, err := os.Stat(real); err == nil && !info.IsDir() {
		return r, notFolder(root)
	}
	info, err := ourFolder(real)
	if err != nil {
		return r, err
	}
	r.Mode = info.Mode().Perm()
	switch r.Open = openToOthers(info); {
	case r.Open && !empty(real):
		return r, usedByOthers(real, info)
	case r.Open:
		return r, nil
	case !atomicfile.Writable(real):
		return r, notWritten(real, fmt.Sprintf("mode %04o", r.Mode), fs.ErrPermission)
	}
	r.Store = newStoreAt(real, "")
	return r, nil
}

// canCreate judges whether a root that can't be resolved could be made.
func canCreate(root string, unresolved error) error {
	near := root // the closest that is there
	for !exists(near) {
		if _, err := os.Lstat(near); err == nil { // a link to nowhere, or in a circle
			return notResolved(root, unresolved)
		}
		up := filepath.Dir(near)
		if up == near {
			break
		}
		near = up
	}
	info, err := os.Stat(near)
	switch {
	case near == root:
		return notResolved(root, unresolved)
	case err != nil:
		return notCreated(root, cause(err), err)
	case !info.IsDir():
		return notFolder(near)
	case !atomicfile.Writable(near):
		return notCreated(root, near+" is not writable", unresolved)
	}
	return nil
}

// LongestBell says how long the path of a bell in this root can be, and where
// that bell is put: elsewhere when it is too long (see bell.Place).
func (r Report) LongestBell() (path, place string, err error) {
	dir, name := filepath.Join(r.Root, bellsDir), bellName(ulid.Zero.String()) // all have the same length
	place, err = bell.Place(dir, name)
	return filepath.Join(dir, name), place, err
}

// Folder is one of the folders of an exchange.
type Folder struct {
	Name    string
	Missing bool        // Open makes it
	Mode    fs.FileMode // its permissions
	Loose   bool        // others could use it, were the root not private; Open closes it
}

// Folders looks at the folders of the exchange. The error is the *RootError of
// one that Open can't use.
func (s *Store) Folders() ([]Folder, error) {
	out := make([]Folder, len(folders))
	for i, name := range folders {
		info, err := ourFolder(s.path(name))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			out[i] = Folder{Name: name, Missing: true}
		case err != nil:
			return nil, err
		default:
			out[i] = Folder{Name: name, Mode: info.Mode().Perm(), Loose: openToOthers(info)}
		}
	}
	return out, nil
}
