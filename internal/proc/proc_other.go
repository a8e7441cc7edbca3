//go:build unix && !linux && !darwin

package proc

// lookup only knows whether there is such a process.
func lookup(pid int) (facts, error) {
	if pid <= 0 {
		return facts{}, ErrNoProcess
	}
	return facts{}, signalable(pid)
}

func readBootID() string { return "" }

func pidNamespace() string { return "" }
