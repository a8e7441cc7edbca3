//go:build !unix

package bell

import "path/filepath"

// Sockets is whether bells are sockets in the file system.
const Sockets = false

// Path returns dir/name. With no socket there, it may be of any length.
func Path(dir, name string) (string, error) { return Place(dir, name) }

// Place returns what Path does.
func Place(dir, name string) (string, error) {
	if err := checkName(name); err != nil {
		return "", err
	}
	return filepath.Join(dir, name), nil
}
