//go:build unix && !linux

package filelock

// A shared lock, even for an instant, stands in the way of an exclusive one.
const askingDisturbs = true

func tryLock(fd handle) error       { return flockTry(fd) }
func unlock(fd handle) error        { return flockUnlock(fd) }
func ask(path string) (bool, error) { return askFile(path, flockAsk) }
