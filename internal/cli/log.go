package cli

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"switchboard/internal/agent"
	"switchboard/internal/delivery"
	"switchboard/internal/exchange"
	"switchboard/internal/repo"
	"switchboard/internal/team"
)

func (a *app) logCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:     "log [PATH…] [--json]",
		Short:   "Show who came, went and worked on what in this repository, or who changed some files.",
		Long:    "With paths of files or folders: the latest change by each agent to each file, also to copies in other worktrees.\nWho left is in the log for a day.",
		Example: "switchboard log src/cart.go",
		GroupID: peopleGroup,
		Args:    cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			return a.log(c, args, asJSON)
		},
	}
	jsonFlag(c, &asJSON)
	return c
}

// logLine is one line in the answer of log. Fields are added, never changed.
type logLine struct {
	team.Line
	*team.Path      // of a change
	Created    bool `json:"created,omitempty"`   // by that change
	Uncertain  bool `json:"uncertain,omitempty"` // its author died; the file is another than before
	seq        uint64
	words      string
}

// changed is what a line of the log tells that is of a change.
const changed team.What = "changed"

func (a *app) log(c *cobra.Command, paths []string, asJSON bool) error {
	cwd, checkout, err := a.here()
	if err != nil {
		return err
	}
	var about []target
	for _, p := range paths {
		file, err := repo.Canonical(cwd, p)
		if err != nil {
			return misuse(c, "%s", err)
		}
		about = append(about, aim(checkout, file))
	}
	store, _, err := a.look()
	if err != nil {
		return err
	}
	t, err := fold(store, exchange.TeamID(checkout.Key()))
	if err != nil {
		return err
	}
	now := time.Now()
	lines := eventLines(t, now)
	if len(about) > 0 {
		lines = changeLines(t, checkout.Root, about)
	}
	if asJSON {
		err = a.printJSON(lines)
	} else {
		err = a.printLog(lines, now)
	}
	switch {
	case err != nil || len(lines) > 0:
		return err
	case len(about) > 0:
		a.note("Nothing in the log of this repository about %s.", plural(len(about), "this path", "these paths"))
	default:
		a.note("Nothing in the log of this repository.")
	}
	return nil
}

// eventLines are what happened, oldest first.
func eventLines(t *team.Team, now time.Time) []logLine {
	out := []logLine{}
	for _, l := range t.Log(now) {
		out = append(out, logLine{Line: l, words: agent.LineText(l)})
	}
	return out
}

// changeLines are the changes to some files, oldest first, in words of the
// checkout at root.
func changeLines(t *team.Team, root string, about []target) []logLine {
	out := []logLine{}
	for _, edits := range t.ByAuthor() {
		for _, e := range edits {
			if !slices.ContainsFunc(about, func(a target) bool { return a.hit(e.Path) }) {
				continue
			}
			out = append(out, logLine{
				Line: team.Line{At: e.At, Session: e.Session, Callsign: e.Callsign, What: changed}, Path: &e.Path,
				Created: e.Created, Uncertain: e.Uncertain, seq: e.Seq, words: agent.EditText(e, e.Path.Short(root)),
			})
		}
	}
	slices.SortFunc(out, func(x, y logLine) int { return cmp.Compare(x.seq, y.seq) })
	return out
}

// printLog writes lines with their age in front.
func (a *app) printLog(lines []logLine, now time.Time) error {
	var ages []string
	wide := 0
	for _, l := range lines {
		ages = append(ages, delivery.Age(now.Sub(l.At))+" ago")
		wide = max(wide, len(ages[len(ages)-1]))
	}
	var out strings.Builder
	paint := a.painter()
	for i, l := range lines {
		fmt.Fprintf(&out, "%s  %s\n", paint(faint, fmt.Sprintf("%*s", wide, ages[i])), l.words)
	}
	_, err := fmt.Fprint(a.stdout, out.String())
	return err
}

// target is a file or folder that is asked for.
type target struct {
	file string // in its canonical spelling
	rel  string // in its checkout, if that is one of this repository
}

// aim finds out where in the repository of a checkout a file lies. It need not
// exist.
func aim(home repo.Checkout, file string) target {
	t := target{file: file}
	for dir := file; ; dir = filepath.Dir(dir) {
		c, err := repo.Find(dir)
		if err != nil && c.Root == "" && dir != filepath.Dir(dir) {
			continue // no folder, or none yet
		}
		if c.Root != "" && c.Key() == home.Key() {
			if rel, err := filepath.Rel(c.Root, file); err == nil && filepath.IsLocal(rel) {
				t.rel = filepath.ToSlash(rel)
			}
		}
		return t
	}
}

// hit reports whether a path is the target, lies in it, or is a copy in another
// checkout of something that does.
func (t target) hit(p team.Path) bool {
	return within(t.file, p.File, string(filepath.Separator)) ||
		t.rel != "" && p.Rel != "" && (t.rel == "." || within(t.rel, p.Rel, "/"))
}

// within reports whether a path is another or lies below it.
func within(folder, path, separator string) bool {
	return path == folder || strings.HasPrefix(path, strings.TrimSuffix(folder, separator)+separator)
}
