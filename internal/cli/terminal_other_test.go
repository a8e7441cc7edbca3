//go:build !linux

package cli

import "errors"

func inTerminal([]string) error { return errors.New("terminals are only made on Linux") }
