package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"switchboard/internal/atomicfile"
	"switchboard/internal/delivery"
)

func (a *app) doctorCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:     "doctor [--json]",
		Short:   "Check all that Switchboard stands on, change nothing, and say what to do.",
		Example: "switchboard doctor",
		GroupID: setupGroup,
		RunE:    func(c *cobra.Command, _ []string) error { return a.doctor(c.Context(), asJSON) },
	}
	jsonFlag(c, &asJSON)
	return c
}

// verdict says how good or bad a finding is.
type verdict string

const (
	fine   verdict = "ok"
	noted  verdict = "note" // worth knowing; nothing has to be done
	broken verdict = "mend" // something doesn't work until this is done
)

// finding is one line of doctor's answer. Fields are added, never changed.
type finding struct {
	Check   string  `json:"check"`
	Verdict verdict `json:"verdict"`
	Text    string  `json:"text"`
	Mend    string  `json:"mend,omitempty"` // a command to run
}

// examination collects findings in the order of the checks.
type examination struct {
	app      *app
	findings []finding
}

func (x *examination) add(check string, v verdict, format string, args ...any) {
	x.findings = append(x.findings, finding{Check: check, Verdict: v, Text: fmt.Sprintf(format, args...)})
}

// mend notes what doesn't work, and the command that mends it, if there is one.
func (x *examination) mend(check, command, format string, args ...any) {
	x.findings = append(x.findings, finding{Check: check, Verdict: broken, Text: fmt.Sprintf(format, args...), Mend: command})
}

// diagnosis is the answer of doctor as scripts read it.
type diagnosis struct {
	OK     bool      `json:"ok"`
	Checks []finding `json:"checks"`
}

func (a *app) doctor(ctx context.Context, asJSON bool) error {
	x := &examination{app: a}
	x.add("program", fine, "%s", thisVersion())
	x.log()
	x.exchange()
	x.pi(ctx)
	if err := ctx.Err(); err != nil {
		return err
	}
	bad := 0
	for _, f := range x.findings {
		if f.Verdict == broken {
			bad++
		}
	}
	if err := a.printFindings(x.findings, bad == 0, asJSON); err != nil {
		return err
	}
	switch bad {
	case 0:
		return nil
	case 1:
		return errors.New("one thing must be mended")
	}
	return fmt.Errorf("%d things must be mended", bad)
}

// log examines the file that SWITCHBOARD_LOG names. It makes none.
func (x *examination) log() {
	path := x.app.getenv("SWITCHBOARD_LOG")
	if path == "" {
		return
	}
	var err error
	switch info, statErr := os.Stat(path); {
	case errors.Is(statErr, fs.ErrNotExist):
		if dir := filepath.Dir(path); !atomicfile.Writable(dir) {
			err = fmt.Errorf("%s is not a folder that can be written to", dir)
		}
	case statErr != nil:
		err = statErr
	case info.Mode().IsRegular():
		var f *os.File
		if f, err = os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0); err == nil {
			err = f.Close()
		}
	case info.IsDir():
		err = fmt.Errorf("%s is a folder", path)
	}
	if err != nil {
		x.mend("log", "unset SWITCHBOARD_LOG", "SWITCHBOARD_LOG can't be written: %s", err)
		return
	}
	x.add("log", fine, "written to %s", path)
}

func (a *app) printFindings(findings []finding, good, asJSON bool) error {
	if asJSON {
		return a.printJSON(diagnosis{OK: good, Checks: findings})
	}
	paint := a.painter()
	colour := map[verdict]style{fine: green, noted: yellow, broken: red}
	for _, f := range findings {
		text := f.Text
		if f.Mend != "" {
			text += "; run: " + f.Mend
		}
		word := paint(colour[f.Verdict], string(f.Verdict)) + "    "[len(f.Verdict):]
		if _, err := fmt.Fprintf(a.stdout, "%s  %-9s  %s\n", word, f.Check, delivery.Line(text, maxCell)); err != nil {
			return err
		}
	}
	return nil
}
