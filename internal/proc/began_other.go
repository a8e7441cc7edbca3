//go:build !linux

package proc

import (
	"errors"
	"time"
)

func began(int) (time.Time, error) { return time.Time{}, errors.ErrUnsupported }
