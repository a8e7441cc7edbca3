package guard

import (
	"bytes"
	"strings"

	"github.com/aymanbagabas/go-udiff"
)

// Change is what an edit did to a file.
type Change struct {
	Edits int      // places that changed
	First int      // line of the first of them, from 1
	Lines []string // the first changed lines, with - or + in front
}

// maxShown is how many changed lines of a file are told to others.
const maxShown = 6

// Diff says what changed between two contents of a file. Of one that is no text
// it tells only that it did.
func Diff(before, after []byte) Change {
	if bytes.IndexByte(before, 0) >= 0 || bytes.IndexByte(after, 0) >= 0 {
		return Change{Edits: 1}
	}
	old := string(before)
	edits := udiff.Lines(old, string(after))
	c := Change{Edits: len(edits)}
	for i, e := range edits {
		if i == 0 {
			c.First = 1 + strings.Count(old[:e.Start], "\n")
		}
		c.show("-", old[e.Start:e.End])
		c.show("+", e.New)
	}
	return c
}

func (c *Change) show(sign, text string) {
	for line := range strings.Lines(text) {
		if len(c.Lines) == maxShown {
			return
		}
		c.Lines = append(c.Lines, sign+strings.TrimRight(line, "\r\n"))
	}
}
