package cli

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"switchboard/internal/agent"
	"switchboard/internal/delivery"
	"switchboard/internal/exchange"
	"switchboard/internal/phonebook"
)

func (a *app) listCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:               "list [LOCATOR…] [--json]",
		Short:             "List the live agent sessions of this machine.",
		Long:              "A locator is a session's id, name, working directory, process id or one of its VALUES; with some, only sessions that match.",
		Example:           "switchboard list --json",
		GroupID:           peopleGroup,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: a.completeLocators,
		RunE: func(_ *cobra.Command, args []string) error {
			return a.list(args, asJSON)
		},
	}
	jsonFlag(c, &asJSON)
	return c
}

// listing is the answer of list. Fields are added, never changed.
type listing struct {
	Sessions  []sessionInfo `json:"sessions"`
	Unmatched []string      `json:"unmatched"`
}

func (a *app) list(locators []string, asJSON bool) error {
	_, roster, err := a.look()
	if err != nil {
		return err
	}
	found, matches, unmatched := filter(roster, locators)
	if asJSON {
		out := listing{Sessions: make([]sessionInfo, len(found)), Unmatched: append([]string{}, unmatched...)}
		for i, s := range found {
			out.Sessions[i] = info(s)
		}
		if err := a.printJSON(out); err != nil {
			return err
		}
	}
	switch {
	case len(matches) > 0 && len(found) == 0:
		return &phonebook.NobodyError{Unmatched: unmatched, Matches: matches, Book: bookOf(roster)}
	case len(found) == 0:
		a.note("No agent session is live on this machine.")
		return nil
	case len(unmatched) > 0:
		a.note("%s", &phonebook.NobodyError{Unmatched: unmatched})
	}
	if asJSON {
		return nil
	}
	return a.printTable(found)
}

// filter keeps the sessions that locators match; all without any.
func filter(roster []exchange.Session, locators []string) (found []exchange.Session, matches []phonebook.Match, unmatched []string) {
	book := bookOf(roster)
	matches = book.Look(locators)
	if len(matches) == 0 {
		return roster, nil, nil
	}
	entries, unmatched := book.Filter(matches)
	for i, s := range roster {
		if slices.ContainsFunc(entries, func(e phonebook.Entry) bool { return e.ID == book[i].ID }) {
			found = append(found, s)
		}
	}
	return found, matches, unmatched
}

// maxCell is far beyond any name or path that is worth showing, in bytes.
const maxCell = 8 << 10

func (a *app) printTable(sessions []exchange.Session) error {
	columns := table(sessions, time.Now())
	if width, ok := a.terminal(); ok {
		for i, cwd := range columns[cwdColumn].cells {
			columns[cwdColumn].cells[i] = a.shortPath(cwd)
		}
		// A path goes first; an id keeps its end, in which ids differ most.
		order := []int{cwdColumn, idColumn, modelColumn, nameColumn}
		if len(columns) > valuesColumn {
			order = slices.Insert(order, 1, valuesColumn)
		}
		fit(columns, order, width)
	}
	paint := a.painter()
	_, err := fmt.Fprint(a.stdout, render(columns, func(s string) string { return paint(faint, s) }))
	return err
}

// The columns of the list.
const (
	nameColumn = iota
	stateColumn
	pidColumn
	modelColumn
	cwdColumn
	idColumn
	valuesColumn // only when somebody has any
)

func table(sessions []exchange.Session, now time.Time) []column {
	columns := []column{
		nameColumn:  {title: "NAME", least: 12},
		stateColumn: {title: "STATE"},
		pidColumn:   {title: "PID"},
		modelColumn: {title: "MODEL", least: 10, tail: true},
		cwdColumn:   {title: "CWD", least: 16, tail: true},
		idColumn:    {title: "ID", least: 13, tail: true},

		valuesColumn: {title: "VALUES", least: 12},
	}
	add := func(i int, cell string) {
		cell = delivery.Line(cell, maxCell)
		if cell == "" {
			cell = "-"
		}
		columns[i].cells = append(columns[i].cells, cell)
	}
	valued := false
	for _, s := range sessions {
		e := agent.BookEntry(s)
		add(nameColumn, e.Name)
		add(stateColumn, stateOf(s, e, now))
		add(pidColumn, strconv.Itoa(e.PID))
		add(modelColumn, e.Model)
		add(cwdColumn, e.Cwd)
		add(idColumn, e.ID)
		add(valuesColumn, valuesCell(e.Values))
		valued = valued || len(e.Values) > 0
	}
	if !valued {
		columns = columns[:valuesColumn]
	}
	return columns
}

// stateOf says what a session does and for how long: "idle 4m, unresponsive".
func stateOf(s exchange.Session, e phonebook.Entry, now time.Time) string {
	out := e.State
	if !s.Since.IsZero() {
		out += " " + delivery.Age(now.Sub(s.Since))
	}
	if e.Note != "" {
		out += ", " + e.Note
	}
	return strings.TrimPrefix(out, ", ")
}

// shortPath writes the home directory as ~, for people.
func (a *app) shortPath(path string) string {
	home := a.home()
	if rest, ok := strings.CutPrefix(path, home); ok && home != "" && (rest == "" || rest[0] == '/' || rest[0] == '\\') {
		return "~" + rest
	}
	return path
}
