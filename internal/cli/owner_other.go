//go:build !unix

package cli

import "io/fs"

// On these systems modes don't show who can use a folder.

func owner(fs.FileInfo) (uid int, ours bool) { return -1, true }

func openToOthers(fs.FileInfo) bool { return false }

func writable(string) bool { return true }

const bellsHavePaths = false

func ownFolder() string { return "switchboard" }
