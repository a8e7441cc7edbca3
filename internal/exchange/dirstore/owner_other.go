//go:build !unix

package dirstore

import "io/fs"

// ownedByUs is always true here: these systems keep a user's folders private
// by inherited permissions, which file modes don't show.
func ownedByUs(fs.FileInfo) (uid int, ours bool) { return -1, true }

func openToOthers(fs.FileInfo) bool { return false }
