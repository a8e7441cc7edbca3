//go:build !unix

package bell

import "fmt"

// Bell never rings on this system: its owner hears of news when it looks.
type Bell struct{}

// Listen returns a bell that never rings, and makes nothing at path.
func Listen(path string) (*Bell, error) {
	return &Bell{}, nil
}

// C returns a channel on which nothing ever comes.
func (b *Bell) C() <-chan struct{} { return nil }

// Close does nothing.
func (b *Bell) Close() error { return nil }

// Ring returns ErrNobody.
func Ring(path string) error { return fmt.Errorf("ring bell %s: %w", path, ErrNobody) }
