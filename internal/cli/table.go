package cli

import (
	"strings"
	"unicode"
)

// column is one column of a table. Its cells are single lines without control
// characters.
type column struct {
	title string
	cells []string
	least int  // it is never cut below this width
	tail  bool // its end says more than its beginning: cut that
}

const gap = 2 // spaces between columns

// fit cuts columns so that the table is at most width wide, if that can be
// done. The order of giving way is by index into columns.
func fit(columns []column, order []int, width int) {
	over := -width - gap
	for _, c := range columns {
		over += c.width() + gap
	}
	for _, i := range order {
		if over <= 0 {
			return
		}
		c := &columns[i]
		have := c.width()
		want := max(have-over, c.least)
		if want >= have {
			continue
		}
		for j, cell := range c.cells {
			c.cells[j] = cut(cell, want, c.tail)
		}
		over -= have - c.width()
	}
}

// width is that of the widest cell.
func (c column) width() int {
	w := cells(c.title)
	for _, cell := range c.cells {
		w = max(w, cells(cell))
	}
	return w
}

// render writes the table, the title line first.
func render(columns []column, title func(string) string) string {
	var out strings.Builder
	line := func(cell func(column) string, paint func(string) string) {
		var b strings.Builder
		for i, c := range columns {
			text := cell(c)
			b.WriteString(text)
			if i < len(columns)-1 {
				b.WriteString(strings.Repeat(" ", c.width()-cells(text)+gap))
			}
		}
		out.WriteString(paint(strings.TrimRight(b.String(), " ")) + "\n")
	}
	line(func(c column) string { return c.title }, title)
	for i := range columns[0].cells {
		line(func(c column) string { return c.cells[i] }, func(s string) string { return s })
	}
	return out.String()
}

// cut shortens s to width, and says with an ellipsis where.
func cut(s string, width int, tail bool) string {
	if cells(s) <= width {
		return s
	}
	runes := []rune(s)
	for len(runes) > 0 && cells(string(runes)) > width-1 {
		if tail {
			runes = runes[1:]
		} else {
			runes = runes[:len(runes)-1]
		}
	}
	if tail {
		return "…" + string(runes)
	}
	return string(runes) + "…"
}

// cells is how many columns of a terminal s takes, near enough for a table of
// names and paths.
func cells(s string) int {
	n := 0
	for _, r := range s {
		switch {
		case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		case wide(r):
			n += 2
		default:
			n++
		}
	}
	return n
}

// wide reports characters that take two columns: East Asian ones and emoji.
func wide(r rune) bool {
	for _, span := range [][2]rune{
		{0x1100, 0x115F},
		{0x2E80, 0xA4CF},
		{0xAC00, 0xD7A3},
		{0xF900, 0xFAFF},
		{0xFE30, 0xFE6F},
		{0xFF00, 0xFF60},
		{0xFFE0, 0xFFE6},
		{0x1F300, 0x1F64F},
		{0x1F680, 0x1F6FF},
		{0x1F900, 0x1FAFF},
		{0x20000, 0x3FFFD},
	} {
		if span[0] <= r && r <= span[1] {
			return true
		}
	}
	return false
}
