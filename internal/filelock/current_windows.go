package filelock

import "golang.org/x/sys/windows"

// same reports whether path still names the open file.
func same(h handle, path string) bool {
	named, err := openMode(path, windows.OPEN_EXISTING)
	if err != nil {
		return false
	}
	defer windows.CloseHandle(named) //nolint:errcheck
	var a, b windows.ByHandleFileInformation
	if windows.GetFileInformationByHandle(h, &a) != nil || windows.GetFileInformationByHandle(named, &b) != nil {
		return false
	}
	return a.VolumeSerialNumber == b.VolumeSerialNumber && a.FileIndexHigh == b.FileIndexHigh && a.FileIndexLow == b.FileIndexLow
}
