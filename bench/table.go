package main

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// table is the report. Lines are printed in the order in which they came.
type table struct {
	title string
	lines [][]string
	notes []string
}

func (t *table) add(figures ...figure) {
	for _, f := range figures {
		t.lines = append(t.lines, f.cells())
	}
}

func (t *table) note(name, text string) { t.notes = append(t.notes, name+": "+text) }

func (f figure) cells() []string {
	var verdicts []string
	for _, l := range f.budget {
		word := "ok"
		if !l.met(f) {
			word = "OVER"
		}
		verdicts = append(verdicts, l.text+" "+word)
	}
	return []string{
		f.what,
		show(f.ours.p50(), f.unit), show(f.ours.p99(), f.unit), fmt.Sprint(len(f.ours)),
		show(f.floor.p50(), f.unit), show(f.floor.p99(), f.unit),
		times(f.ours.p50(), f.floor.p50()), times(f.ours.p99(), f.floor.p99()),
		strings.Join(verdicts, ", "),
	}
}

// times is a ratio; there is none to a floor of nothing.
func times(a, b float64) string {
	if b == 0 || b != b {
		return "–"
	}
	return fmt.Sprintf("%.1f×", a/b)
}

func (t *table) print(w io.Writer) {
	head := []string{"", "p50", "p99", "n", "floor p50", "floor p99", "× p50", "× p99", "budget"}
	all := append([][]string{head}, t.lines...)
	widths := make([]int, len(head))
	for _, cells := range all {
		for i, c := range cells {
			widths[i] = max(widths[i], utf8.RuneCountInString(c))
		}
	}
	fmt.Fprintln(w, t.title)
	for _, cells := range all {
		var b strings.Builder
		for i, c := range cells {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c))
			switch i {
			case 0:
				b.WriteString(c + pad)
			case len(cells) - 1:
				b.WriteString("  " + c)
			default:
				b.WriteString("  " + pad + c)
			}
		}
		fmt.Fprintln(w, strings.TrimRight(b.String(), " "))
	}
	for _, n := range t.notes {
		fmt.Fprintln(w, n)
	}
}
