package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"switchboard/internal/beacon"
	"switchboard/internal/delivery"
	"switchboard/internal/lifecycle"
	"switchboard/internal/phonebook"
)

// awaitable is what can be waited for.
var awaitable = []string{
	string(lifecycle.Idle), string(lifecycle.Working), string(lifecycle.Compacting), string(lifecycle.Retrying), goneEvent,
}

func (a *app) waitCommand() *cobra.Command {
	var states string
	var timeout time.Duration
	var asJSON bool
	c := &cobra.Command{
		Use:               "wait LOCATOR --for STATE[,STATE…] [--timeout 10m] [--json]",
		Short:             "Wait until a running agent is idle, or in another state.",
		Long:              "The states are " + strings.Join(awaitable, ", ") + "; one that it is in already is reached at once.\nA locator is a process id, or a session's id, name or working directory. self, the agent whose shell this is, works as long as this command runs, so only working can be waited for.\nA process id that nobody has is gone; any other unknown locator is an error, since it may be a slip.\nExit code 0: reached; 5: timed out; 3: nobody has this locator, or the agent is gone.",
		Example:           "switchboard wait reviewer --for idle --timeout 10m",
		GroupID:           peopleGroup,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: a.completeInstance,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) != 1 {
				return misuse(c, "for whom? give one locator")
			}
			goals, err := goalsOf(c, states)
			if err != nil {
				return err
			}
			if timeout <= 0 {
				return misuse(c, "--timeout %s is no time to wait", timeout)
			}
			return a.wait(c, args[0], goals, timeout, asJSON)
		},
	}
	c.Flags().StringVar(&states, "for", "", "the `STATE` to wait for; several separated by commas")
	c.Flags().DurationVar(&timeout, "timeout", 10*time.Minute, "how long to wait")
	_ = c.RegisterFlagCompletionFunc("for", completeGoals) // fails only for a flag that isn't there
	jsonFlag(c, &asJSON)
	return c
}

// goalsOf reads the value of --for.
func goalsOf(c *cobra.Command, states string) ([]string, error) {
	if states == "" {
		return nil, misuse(c, "for what? give --for %s", strings.Join(awaitable, "|"))
	}
	goals := strings.Split(states, ",")
	for i, g := range goals {
		goals[i] = strings.TrimSpace(g)
		if !slices.Contains(awaitable, goals[i]) {
			return nil, misuse(c, "there is no state %q, only %s", goals[i], strings.Join(awaitable, ", "))
		}
	}
	return goals, nil
}

// timeoutError says that the time to wait is over.
type timeoutError struct {
	timeout time.Duration
	last    sight
}

func (e *timeoutError) Error() string {
	if !e.last.told {
		return fmt.Sprintf("timed out after %s: process %d (%s) does not answer", e.timeout, e.last.PID, calls(e.last.Document))
	}
	return fmt.Sprintf("timed out after %s: process %d (%s) is %s", e.timeout, e.last.PID, calls(e.last.Document), words(e.last.Document, time.Now()))
}

// wait subscribes before it looks: the answer carries the state of that moment,
// so none falls between.
func (a *app) wait(c *cobra.Command, locator string, goals []string, timeout time.Duration, asJSON bool) error {
	d, err := one(c, beacon.List(a.beacons()), locator)
	var absent *phonebook.NobodyError
	if pid, bad := strconv.Atoi(locator); errors.As(err, &absent) && bad == nil && slices.Contains(goals, goneEvent) {
		d.Schema, d.PID = beacon.Schema, pid
		return a.printSight(sight{}, sight{Event: goneEvent, instance: instance{Document: d}}, asJSON)
	}
	if err != nil {
		return err
	}
	if own, err := nearest([]beacon.Document{d}, os.Getpid()); err == nil && own.PID == d.PID && !slices.Contains(goals, string(lifecycle.Working)) {
		return misuse(c, "%s works until this command ends, so it can't be %s before; detach it to wait for that: setsid -f %s %d%s", locator, strings.Join(goals, " or "), c.CommandPath(), d.PID, givenFlags(c))
	}
	ctx, cancel := context.WithTimeout(c.Context(), timeout)
	defer cancel()
	last := sight{instance: instance{Document: d}}
	reached := false
	follow(ctx, a.beacons(), d, func(s sight) bool {
		last = s
		switch {
		case s.Event == goneEvent:
			reached = slices.Contains(goals, goneEvent)
		case s.told: // an old file may be wrong by now
			reached = slices.Contains(goals, string(s.State))
		}
		return !reached
	})
	switch {
	case reached:
		return a.printSight(sight{}, last, asJSON)
	case c.Context().Err() != nil:
		return c.Context().Err()
	case last.Event == goneEvent:
		return &absentError{fmt.Sprintf("process %d (%s) is gone", last.PID, delivery.Line(calls(last.Document), 100))}
	}
	return &timeoutError{timeout, last}
}

// completeGoals completes the last of the states.
func completeGoals(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	before := typed[:strings.LastIndexByte(typed, ',')+1]
	var out []string
	for _, g := range awaitable {
		if strings.HasPrefix(before+g, typed) {
			out = append(out, before+g)
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}
