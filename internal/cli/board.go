package cli

import (
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"switchboard/internal/agent"
	"switchboard/internal/exchange"
	"switchboard/internal/exchange/dirstore"
	"switchboard/internal/repo"
	"switchboard/internal/team"
)

func (a *app) boardCommand() *cobra.Command {
	var all, asJSON bool
	c := &cobra.Command{
		Use:     "board [--all] [--json]",
		Short:   "Show who works in this repository, on what, and which files they changed.",
		Long:    "This repository is that of the working directory, with all its worktrees.\nNot known are changes by commands in an agent's shell, and most that were made while nobody else was there.",
		Example: "switchboard board --all",
		GroupID: peopleGroup,
		RunE: func(*cobra.Command, []string) error {
			return a.board(all, asJSON)
		},
	}
	c.Flags().BoolVar(&all, "all", false, "every session of this machine")
	jsonFlag(c, &asJSON)
	return c
}

// boardRow is one session in the answer of board. Fields are added, never
// changed.
type boardRow struct {
	ID        string            `json:"id"`
	Callsign  string            `json:"callsign"` // empty outside of a team
	Name      string            `json:"name"`
	Self      bool              `json:"self"` // its shell runs this program
	State     string            `json:"state"`
	Since     time.Time         `json:"since"` // start of State
	Presence  exchange.Presence `json:"presence"`
	Tool      *exchange.Tool    `json:"tool,omitempty"` // that it has been in for a minute or more
	PID       int               `json:"pid"`
	Cwd       string            `json:"cwd"`
	Team      exchange.TeamID   `json:"team"`   // the same in all worktrees of a repository
	Root      string            `json:"root"`   // its checkout
	Branch    string            `json:"branch"` // or commit
	Task      string            `json:"task"`
	TaskSince time.Time         `json:"taskSince,omitzero"`
	Changed   []changedFile     `json:"changed"` // latest first
}

// changedFile is a file that a session changed.
type changedFile struct {
	team.Path
	At time.Time `json:"at"` // of the latest change
}

func (a *app) board(all, asJSON bool) error {
	var of exchange.TeamID
	home := ""
	if !all {
		_, checkout, err := a.here()
		if err != nil {
			return err
		}
		of, home = exchange.TeamID(checkout.Key()), checkout.Root
	}
	store, roster, err := a.look()
	if err != nil {
		return err
	}
	self, inside := a.caller(roster).session(roster)
	machine := len(roster)
	if !all {
		roster = slices.DeleteFunc(roster, func(s exchange.Session) bool { return s.Team != of })
	}
	rows := agent.Rows(roster, a.folds(store))
	for i := range rows {
		rows[i].Self = inside && rows[i].Session.Key == self.Key
	}
	if asJSON {
		err = a.printJSON(boardJSON(rows))
	} else if len(rows) > 0 {
		err = a.printBoard(rows, of, home)
	}
	switch {
	case err != nil || len(rows) > 0:
		return err
	case machine == 0:
		a.note("No agent session is live on this machine.")
	default:
		a.note("No agent works in this repository; %d elsewhere on this machine: switchboard board --all", machine)
	}
	return nil
}

// inItsCheckout names a file from the root of its checkout.
func inItsCheckout(p team.Path) string { return p.Short(p.Root) }

func (a *app) printBoard(rows []agent.Row, of exchange.TeamID, home string) error {
	if _, ok := a.terminal(); ok {
		home = a.shortPath(home)
		for i := range rows {
			rows[i].Session.Root = a.shortPath(rows[i].Session.Root)
		}
	}
	_, err := fmt.Fprintln(a.stdout, agent.Board(rows, of, home, inItsCheckout, time.Now()))
	return err
}

func boardJSON(rows []agent.Row) []boardRow {
	out := make([]boardRow, len(rows))
	for i, r := range rows {
		s := r.Session
		e := agent.BookEntry(s)
		out[i] = boardRow{
			ID: e.ID, Callsign: s.Callsign, Name: e.Name, Self: r.Self, State: e.State, Since: s.Since.UTC(), Presence: s.Presence,
			Tool: toolOf(s), PID: e.PID, Cwd: e.Cwd, Team: s.Team, Root: s.Root, Branch: s.Branch, Task: r.Task,
			Changed: []changedFile{},
		}
		if r.Task != "" {
			out[i].TaskSince = r.Tasked
		}
		for _, c := range r.Changed {
			out[i].Changed = append(out[i].Changed, changedFile{c.Path, c.At})
		}
	}
	return out
}

// toolOf is the call that a session has been in for long, nil without one.
func toolOf(s exchange.Session) *exchange.Tool {
	if s.Tool.Name == "" {
		return nil
	}
	return &exchange.Tool{Name: s.Tool.Name, Since: s.Tool.Since.UTC()}
}

// here is the working directory and the checkout that it is in. As for
// sessions, a .git that can't be followed counts as none.
func (a *app) here() (cwd string, c repo.Checkout, err error) {
	if cwd, err = os.Getwd(); err != nil {
		return "", c, err
	}
	if c, err = repo.Find(cwd); err != nil && c.Root != "" {
		a.note("%s", err)
		err = nil
	}
	return cwd, c, err
}

// fold reads what a team's journal tells.
func fold(store *dirstore.Store, id exchange.TeamID) (*team.Team, error) {
	t := new(team.Team)
	if store == nil || !id.Valid() {
		return t, nil
	}
	entries, _, err := store.Read(id, exchange.Cursor{})
	if err != nil {
		return t, fmt.Errorf("read the team's journal: %w", err)
	}
	agent.Fold(t, entries)
	return t, nil
}

// folds reads the journal of each team once. One that can't be read is noted,
// and tells nothing.
func (a *app) folds(store *dirstore.Store) func(exchange.TeamID) *team.Team {
	known := make(map[exchange.TeamID]*team.Team)
	return func(id exchange.TeamID) *team.Team {
		if t, ok := known[id]; ok {
			return t
		}
		t, err := fold(store, id)
		if err != nil {
			a.note("%s", err)
		}
		known[id] = t
		return t
	}
}
