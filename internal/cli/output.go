package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"unicode"
	"unicode/utf16"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// jsonFlag gives a command the flag --json.
func jsonFlag(c *cobra.Command, to *bool) {
	c.Flags().BoolVar(to, "json", false, "answer in JSON, for scripts and agents")
}

// printJSON writes v as the answer. What is not for showing is escaped and not
// removed: values stay exact, and none of them moves the cursor.
func (a *app) printJSON(v any) error {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return err
	}
	_, err := fmt.Fprint(a.stdout, escapeUnprintable(buf.String()))
	return err
}

// escapeUnprintable writes the invisible characters of a JSON text as \u….
func escapeUnprintable(s string) string {
	var out strings.Builder
	for _, r := range s {
		switch {
		case r == '\n' || unicode.IsPrint(r):
			out.WriteRune(r)
		case r > 0xFFFF:
			hi, lo := utf16.EncodeRune(r)
			fmt.Fprintf(&out, `\u%04x\u%04x`, hi, lo)
		default:
			fmt.Fprintf(&out, `\u%04x`, r)
		}
	}
	return out.String()
}

// terminal reports whether the answer goes to one, and how wide it is.
func (a *app) terminal() (width int, ok bool) {
	f, isFile := a.stdout.(*os.File)
	if !isFile || !term.IsTerminal(int(f.Fd())) {
		return 0, false
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil || width <= 0 {
		width = 80
	}
	return width, true
}

// A style is how a word stands out on a terminal that has colours. No meaning
// is carried by it alone.
type style string

const (
	plain  style = ""
	faint  style = "2"
	green  style = "32"
	yellow style = "33"
	red    style = "31"
)

// painter returns what paints words for the answer.
func (a *app) painter() func(style, string) string {
	if _, ok := a.terminal(); !ok || a.getenv("NO_COLOR") != "" || a.getenv("TERM") == "dumb" {
		return func(_ style, s string) string { return s }
	}
	return func(st style, s string) string {
		if st == plain {
			return s
		}
		return "\x1b[" + string(st) + "m" + s + "\x1b[0m"
	}
}
