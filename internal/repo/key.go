package repo

import (
	"crypto/sha256"
	"encoding/hex"
)

// Key returns what all checkouts of a repository, and so all sessions of a
// team, have in common: 32 hexadecimal digits, safe as the name of a file. It
// is derived from the device and inode of the common folder, or of the root
// when there is no git, so that the same folder under another path has the same
// key. It changes when the folder is replaced. If the system can't tell (the
// folder is gone), it is derived from the path.
func (c Checkout) Key() string {
	dir := c.CommonDir
	if dir == "" {
		dir = c.Root
	}
	id, err := fileID(dir)
	if err != nil {
		id = "path:" + dir
	}
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:16])
}
