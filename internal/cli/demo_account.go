package cli

import (
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync"
	"time"

	"switchboard/internal/delivery"
)

// account is what the human reads of the demo, as it happens.
type account struct {
	width int
	paint func(style, string) string

	mu  sync.Mutex // guards all below
	out io.Writer
	err error // of the first write that failed; after it nothing is written
}

func (a *app) newAccount() *account {
	width, ok := a.terminal()
	if !ok {
		width = 80
	}
	return &account{width: min(max(width, 40), 100), paint: a.painter(), out: a.stdout}
}

const (
	bold style = "1"
	cyan style = "36"
)

var colours = regexp.MustCompile("\x1b\\[[0-9;]*m")

func (t *account) opening() {
	t.write("", "", "Coding agents on one machine: no server, no port, no configuration.")
	t.write("", "", "A script plays Pi and its models. The rest is real: a sidecar process for each session, and one folder where they meet. What stands behind a bar is, word for word, what a model reads.")
}

func (t *account) title(n int, text string) {
	t.write("", "", "")
	t.write(t.paint(bold, fmt.Sprintf("%d  %s", n, text)), "", "")
}

func (t *account) line(text string) { t.write(margin, margin, text) }

// call shows a tool call of a session's model.
func (t *account) call(name, text string) {
	t.write(margin+t.paint(bold, name)+" → ", margin+strings.Repeat(" ", cells(name+" → ")), text)
}

// quote shows what a model reads.
func (t *account) quote(text string) {
	bar := margin + t.paint(cyan, "│") + " "
	t.write(bar, bar, text)
}

func (t *account) closing(sidecars, calls int, took time.Duration, install string) {
	t.write("", "", "")
	t.write("", "", fmt.Sprintf("%d sidecars, %d calls, %.1f seconds. To have it in Pi: %s", sidecars, calls, took.Seconds(), install))
}

func (t *account) failed() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err
}

const margin = "   "

// write puts text behind an indent, wrapped; hang is the indent of every line
// but the first.
func (t *account) write(indent, hang, text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	width := t.width - cells(colours.ReplaceAllString(hang, ""))
	for line := range strings.SplitSeq(delivery.CleanText(text), "\n") {
		for _, part := range wrap(line, width) {
			if t.err == nil {
				_, t.err = fmt.Fprintln(t.out, strings.TrimRight(indent+part, " "))
			}
			indent = hang
		}
	}
}

// wrap breaks a line at blanks, or anywhere in a word that fills a line by
// itself. What follows a break is indented like the line.
func wrap(line string, width int) []string {
	text := strings.TrimLeft(line, " >•")
	lead := line[:len(line)-len(text)]
	blank := strings.Repeat(" ", cells(lead))
	var out []string
	for cells(lead+text) > width {
		at, used := 0, cells(lead)
		blankAt := -1
		for i, r := range text {
			if used += cells(string(r)); used > width {
				break
			}
			if r == ' ' {
				blankAt = i
			}
			at = i + len(string(r))
		}
		if at < len(text) && text[at] == ' ' {
			blankAt = at
		}
		if blankAt > 0 {
			at = blankAt
		}
		if at == 0 {
			break // too narrow for anything
		}
		out = append(out, lead+text[:at])
		text, lead = strings.TrimLeft(text[at:], " "), blank
	}
	return append(out, lead+text)
}
