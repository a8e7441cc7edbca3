package cli

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"switchboard/internal/beacon"
	"switchboard/internal/delivery"
	"switchboard/internal/lifecycle"
	"switchboard/internal/phonebook"
	"switchboard/internal/pihost"
	"switchboard/internal/proc"
	"switchboard/internal/shellquote"
)

// self is the locator of the instance that runs this program.
const self = "self"

func (a *app) stateCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:               "state [LOCATOR|PID|self] [--json]",
		Short:             "Show what running agents are doing: working, compacting, retrying or idle.",
		Long:              "A locator is a process id, or a session's id, name or working directory; self is the agent whose shell this is.\nidle means that the agent will not go on by itself. \"by its file\" marks an agent that did not answer: its file says what it did when it was last heard of. stale is one that was not heard of for 20 seconds.",
		Example:           "switchboard state self --json",
		GroupID:           peopleGroup,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: a.completeInstance,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) > 1 {
				return misuse(c, "state shows one instance or all, not %d", len(args))
			}
			return a.state(c, args, asJSON)
		},
	}
	jsonFlag(c, &asJSON)
	return c
}

// instance is what a beacon says. Fields are added, never changed.
type instance struct {
	beacon.Document
	Source string `json:"source,omitempty"` // who says so: socket or file
	Stale  bool   `json:"stale,omitempty"`  // not heard of lately
}

// instances is the answer of state. Fields are added, never changed.
type instances struct {
	Instances []instance `json:"instances"`
}

func (a *app) state(c *cobra.Command, locators []string, asJSON bool) error {
	docs := beacon.List(a.beacons())
	if len(locators) > 0 {
		d, err := one(c, docs, locators[0])
		if err != nil {
			return err
		}
		docs = []beacon.Document{d}
	}
	found := askAll(c.Context(), docs)
	if err := c.Context().Err(); err != nil {
		return err
	}
	if asJSON {
		return a.printJSON(instances{found})
	}
	if len(found) == 0 {
		a.note("No agent shows a beacon on this machine.")
		return nil
	}
	return a.printInstances(found)
}

// beacons is the folder in which the agents of this user show their state.
func (a *app) beacons() string {
	return pihost.BeaconDir(pihost.AgentDir(a.getenv, a.home()))
}

// answerTime is how long a beacon is waited for before its file has to do.
const answerTime = time.Second

// askAll asks all instances at once.
func askAll(ctx context.Context, docs []beacon.Document) []instance {
	out := make([]instance, len(docs))
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	var asked sync.WaitGroup
	for i, d := range docs {
		asked.Go(func() {
			now, err := beacon.Query(ctx, d.Socket)
			if err != nil || now.PID != d.PID {
				out[i] = filed(d)
				return
			}
			out[i] = instance{Document: now, Source: fromSocket}
		})
	}
	asked.Wait()
	return out
}

// filed is an instance of which only the file tells.
func filed(d beacon.Document) instance {
	return instance{Document: d, Source: fromFile, Stale: d.Old(time.Now())}
}

// reserve says why an instance's state may not be what it does now: nobody
// answered, so that its file had to do.
func (i instance) reserve(now time.Time) string {
	switch {
	case i.Stale:
		return ", stale" + lasting(i.UpdatedAt, now)
	case i.Source == fromFile:
		return ", by its file"
	}
	return ""
}

// Who told of an instance.
const (
	fromSocket = "socket"
	fromFile   = "file"
)

// one finds the instance that a locator means.
func one(c *cobra.Command, docs []beacon.Document, locator string) (beacon.Document, error) {
	if locator == self {
		return nearest(docs, os.Getpid())
	}
	found, match := named(docs, locator)
	switch {
	case match.Locator == "":
		return beacon.Document{}, &usageError{problem: "the locator is blank", hint: "switchboard state"}
	case len(found) == 0:
		return beacon.Document{}, &noInstanceError{&phonebook.NobodyError{Unmatched: []string{locator}, Book: bookOfBeacons(docs)}}
	case len(found) > 1:
		return beacon.Document{}, &severalInstancesError{
			SeveralError: &phonebook.SeveralError{Matches: []phonebook.Match{match}, Found: bookOfBeacons(found)},
			hint:         fmt.Sprintf("%s %d%s", c.CommandPath(), found[0].PID, givenFlags(c)),
		}
	}
	return found[0], nil
}

// named finds the instances that a locator names, and what of theirs it
// matched. The locator of the match is empty if it is blank.
func named(docs []beacon.Document, locator string) (found []beacon.Document, match phonebook.Match) {
	for _, match = range bookOfBeacons(docs).Look([]string{locator}) {
		for _, d := range docs {
			if slices.ContainsFunc(match.Entries, func(e phonebook.Entry) bool { return e.PID == d.PID }) {
				found = append(found, d)
			}
		}
	}
	return found, match
}

// bookOfBeacons is the instances as a phonebook. A session that shares a
// process stands for it.
func bookOfBeacons(docs []beacon.Document) phonebook.Book {
	var book phonebook.Book
	for _, d := range docs {
		book = append(book, phonebook.Entry{ID: d.SessionID, Name: text(d.SessionName), PID: d.PID, Cwd: d.Cwd})
		for _, o := range d.Sessions {
			book = append(book, phonebook.Entry{ID: o.ID, Name: o.Name, PID: d.PID})
		}
	}
	return book
}

// nearest finds the instance among a process's ancestors, the nearest one.
func nearest(docs []beacon.Document, pid int) (beacon.Document, error) {
	for range 64 { // deeper than any shell, and an end in any case
		parent, err := proc.Parent(pid)
		if err != nil || parent == pid {
			break
		}
		pid = parent
		for _, d := range docs {
			if d.PID == pid {
				return d, nil
			}
		}
	}
	return beacon.Document{}, &absentError{"no agent that shows a beacon runs this command"}
}

// absentError says that an instance isn't there, or no more.
type absentError struct{ what string }

func (e *absentError) Error() string { return e.what }

// noInstanceError says that a locator means no instance.
type noInstanceError struct{ *phonebook.NobodyError }

// Unwrap returns the error that the phonebook knows.
func (e *noInstanceError) Unwrap() error { return e.NobodyError }

// givenFlags repeats the flags of a command as they were given.
func givenFlags(c *cobra.Command) string {
	var b strings.Builder
	c.Flags().Visit(func(f *pflag.Flag) {
		if b.WriteString(" --" + f.Name); f.Value.Type() != "bool" {
			b.WriteString(" " + shellquote.Quote(f.Value.String()))
		}
	})
	return b.String()
}

// severalInstancesError says that a locator means more than one instance.
type severalInstancesError struct {
	*phonebook.SeveralError
	hint string
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// words says what an instance does and what is known about that: "retrying 2/3
// in 4s: 429 overloaded", "working · bash 14m".
func words(d beacon.Document, now time.Time) string {
	var b strings.Builder
	b.WriteString(stateWord(d.State))
	v := d.Detail
	switch {
	case v.WaitingForUser:
		b.WriteString(" · waiting for you")
	case d.State == lifecycle.Retrying && v.Attempt > 0:
		fmt.Fprintf(&b, " %d/%d", v.Attempt, v.MaxAttempts)
		if v.DelayMS != nil {
			due := time.UnixMilli(d.Since + *v.DelayMS)
			if left := due.Sub(now); left > 0 {
				fmt.Fprintf(&b, " in %s", delivery.Age(left+time.Second-1))
			}
		}
		if v.Error != "" {
			b.WriteString(": " + delivery.Line(v.Error, 80))
		}
	case d.State == lifecycle.Compacting && v.CompactionReason != "":
		fmt.Fprintf(&b, " (%s%s)", v.CompactionReason, map[bool]string{true: ", will retry"}[v.WillRetry != nil && *v.WillRetry])
	case d.State == lifecycle.Working && v.Tool != "":
		b.WriteString(" · " + v.Tool + lasting(v.ToolSince, now))
	default:
		b.WriteString(lasting(d.Since, now))
	}
	return b.String()
}

// stateWord is a state as people read it; what is none is not passed off as one.
func stateWord(s lifecycle.State) string {
	switch s {
	case lifecycle.Idle, lifecycle.Working, lifecycle.Compacting, lifecycle.Retrying:
		return string(s)
	}
	return "unknown"
}

// lasting is for how long something has been so, if worth a word.
func lasting(since int64, now time.Time) string {
	took := now.Sub(time.UnixMilli(since))
	if since <= 0 || took < time.Second {
		return ""
	}
	return " " + delivery.Age(took)
}

// usage says how full the context is: "61k/200k 31%".
func usage(u beacon.Usage) string {
	if u.Tokens == nil && u.ContextWindow == nil && u.Percent == nil {
		return "-"
	}
	out := thousands(u.Tokens) + "/" + thousands(u.ContextWindow)
	if u.Percent != nil {
		out += fmt.Sprintf(" %.0f%%", *u.Percent)
	}
	return out
}

func thousands(n *int) string {
	switch {
	case n == nil:
		return "?"
	case *n < 1000:
		return strconv.Itoa(*n)
	case *n < 999_500:
		return fmt.Sprintf("%dk", (*n+500)/1000)
	}
	return strings.TrimSuffix(fmt.Sprintf("%.1f", float64(*n)/1e6), ".0") + "M"
}

// calls names an instance for people: by its name, else by the end of its id,
// in which ids differ most.
func calls(d beacon.Document) string {
	if name := delivery.Line(text(d.SessionName), maxCell); name != "" {
		return cut(name, longestName, false)
	}
	if id := delivery.Line(d.SessionID, maxCell); id != "" {
		return cut(id, 13, true)
	}
	return "-"
}

// longestName bounds a session's name in a line, in columns.
const longestName = 40

// The columns of the states.
const (
	instancePID = iota
	instanceState
	instanceContext
	instanceName
	instanceCwd
)

func (a *app) printInstances(found []instance) error {
	columns := stateTable(found, time.Now())
	if width, ok := a.terminal(); ok {
		for i, cwd := range columns[instanceCwd].cells {
			columns[instanceCwd].cells[i] = a.shortPath(cwd)
		}
		fit(columns, []int{instanceCwd, instanceState, instanceName}, width)
	}
	paint := a.painter()
	_, err := fmt.Fprint(a.stdout, render(columns, func(s string) string { return paint(faint, s) }))
	return err
}

func stateTable(found []instance, now time.Time) []column {
	columns := []column{
		instancePID:     {title: "PID"},
		instanceState:   {title: "STATE", least: 20},
		instanceContext: {title: "CONTEXT"},
		instanceName:    {title: "NAME", least: 12},
		instanceCwd:     {title: "CWD", least: 16, tail: true},
	}
	for _, i := range found {
		state := words(i.Document, now) + i.reserve(now)
		for n, cell := range []string{strconv.Itoa(i.PID), state, usage(i.ContextUsage), calls(i.Document), i.Cwd} {
			if cell = delivery.Line(cell, maxCell); cell == "" {
				cell = "-"
			}
			columns[n].cells = append(columns[n].cells, cell)
		}
	}
	return columns
}

// completeInstance completes the only locator.
func (a *app) completeInstance(c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return a.completeInstances(c, args, typed)
}

// completeInstances offers the names, ids and process ids of instances.
func (a *app) completeInstances(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	var out []string
	for _, d := range beacon.List(a.beacons()) {
		what := delivery.Line(words(d, time.Now())+", "+a.shortPath(d.Cwd), 100)
		for _, l := range []string{text(d.SessionName), d.SessionID, strconv.Itoa(d.PID)} {
			// A name that is not one plain line can't be completed.
			if l != "" && l == delivery.Line(l, maxCell) && strings.HasPrefix(l, typed) {
				out = append(out, l+"\t"+what)
			}
		}
	}
	if len(out) > 0 && strings.HasPrefix(self, typed) {
		out = append(out, self+"\tthe agent whose shell this is")
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}
