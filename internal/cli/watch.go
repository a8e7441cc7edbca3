package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"switchboard/internal/beacon"
	"switchboard/internal/delivery"
	"switchboard/internal/proc"
)

func (a *app) watchCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:               "watch [LOCATOR…] [--json]",
		Short:             "Print a line each time that a running agent changes its state.",
		Long:              "It begins with the present states and follows agents that come and go, until Ctrl-C.\nA locator is a process id, or a session's id, name or working directory; self is the agent whose shell this is.\nAn agent that comes to its end is told of once, as gone, with the last that was known of it. A locator that nobody has yet is waited for.",
		Example:           "switchboard watch --json",
		GroupID:           peopleGroup,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: a.completeInstances,
		RunE: func(c *cobra.Command, args []string) error {
			return a.watch(c.Context(), args, asJSON)
		},
	}
	jsonFlag(c, &asJSON)
	return c
}

// How often to look where nobody tells.
const (
	lookEvery  = time.Second            // for instances that came, and processes that ended
	retryEvery = 100 * time.Millisecond // for a beacon whose helper is being replaced
)

// sight is what was seen of an instance. Fields are added, never changed.
type sight struct {
	Event string `json:"event"` // state, gone
	instance
	told bool // by the instance itself, not by its file
}

// The events of a sight.
const (
	stateEvent = "state"
	goneEvent  = "gone"
)

// watch follows all instances that locators name, or all.
func (a *app) watch(ctx context.Context, locators []string, asJSON bool) error {
	ctx, cancel := context.WithCancel(ctx)
	var followers sync.WaitGroup
	defer followers.Wait()
	defer cancel()
	sights := make(chan sight)
	followed := make(map[int]sight) // by pid; what was printed last
	join := func() int {
		for _, d := range wanted(beacon.List(a.beacons()), locators) {
			if _, known := followed[d.PID]; known {
				continue
			}
			followed[d.PID] = sight{}
			followers.Go(func() {
				follow(ctx, a.beacons(), d, func(s sight) bool {
					select {
					case sights <- s:
					case <-ctx.Done():
					}
					return ctx.Err() == nil
				})
			})
		}
		return len(followed)
	}
	if join() == 0 {
		a.note("Nobody to watch yet; waiting for an agent to come.")
	}
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-look.C:
			join()
		case s := <-sights:
			before := followed[s.PID]
			followed[s.PID] = s
			if s.Event == goneEvent {
				delete(followed, s.PID)
			} else if s.State == before.State && s.SessionID == before.SessionID {
				continue // found again after its helper was replaced
			}
			if err := a.printSight(before, s, asJSON); err != nil {
				return err
			}
		}
	}
}

// wanted keeps the instances that any of the locators names.
func wanted(docs []beacon.Document, locators []string) []beacon.Document {
	if len(locators) == 0 {
		return docs
	}
	var out []beacon.Document
	for _, l := range locators {
		if l == self {
			if d, err := nearest(docs, os.Getpid()); err == nil {
				out = append(out, d)
			}
			continue
		}
		found, _ := named(docs, l)
		out = append(out, found...)
	}
	return out
}

// printSight writes one line: when, who, and what became of what.
func (a *app) printSight(before, s sight, asJSON bool) error {
	if asJSON {
		var b strings.Builder
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(s); err != nil {
			return err
		}
		_, err := fmt.Fprint(a.stdout, escapeUnprintable(b.String()))
		return err
	}
	what := goneEvent
	if now := time.Now(); s.Event == stateEvent {
		what = words(s.Document, now) + s.reserve(now)
	}
	if before.State != "" && (before.SessionID == s.SessionID || s.Event == goneEvent) {
		what = stateWord(before.State) + " → " + what
	}
	_, err := fmt.Fprintf(a.stdout, "%s  %d  %s  %s\n", time.Now().Format(time.TimeOnly), s.PID, calls(s.Document), delivery.Line(what, maxCell))
	return err
}

// follow tells of the state that an instance is in, then of each transition,
// and at last that it is gone. It ends with that, with the context, or when
// tell returns false. An instance is a process: it stays when its session or
// its helper is replaced, and what happens while the helper is away shows as
// the state after that.
func follow(ctx context.Context, dir string, d beacon.Document, tell func(sight) bool) {
	alive, stop := whileRunning(ctx, d.PID)
	defer stop()
	for first := true; ; first = false {
		now, err := beacon.Read(dir, d.PID)
		switch {
		case ctx.Err() != nil:
			return
		case alive.Err() != nil || errors.Is(err, fs.ErrNotExist):
			tell(sight{Event: goneEvent, instance: instance{Document: d}})
			return
		case err == nil:
			d = now
		}
		began := time.Now()
		now, more, err := listen(alive, d, tell)
		switch {
		case !more:
			return
		case err == nil:
			d = now // hung up: its end, or the helper's
		case first && !tell(sight{Event: stateEvent, instance: filed(d)}):
			return
		}
		select {
		case <-alive.Done():
		case <-time.After(time.Until(began.Add(retryEvery))): // at once, unless it hangs up each time
		}
	}
}

// listen tells of what an instance itself says, until it hangs up. It returns
// the last document, and whether tell wants more. An error means that there was
// nothing to hear.
func listen(ctx context.Context, d beacon.Document, tell func(sight) bool) (last beacon.Document, more bool, err error) {
	sub, now, err := beacon.Subscribe(ctx, d.Socket)
	if errors.Is(err, beacon.ErrNoPushes) && now.PID == d.PID {
		return poll(ctx, now, tell)
	}
	if err != nil {
		return d, true, err
	}
	defer sub.Close()
	defer context.AfterFunc(ctx, sub.Close)()
	if now.PID != d.PID {
		return d, true, fmt.Errorf("socket of process %d: it is about process %d", d.PID, now.PID)
	}
	for err == nil {
		last = now
		if !tell(sight{Event: stateEvent, instance: instance{Document: last, Source: fromSocket}, told: true}) {
			return last, false, nil
		}
		now, err = sub.Next()
	}
	return last, true, nil
}

// pollEvery is how often an instance is asked that tells nothing by itself.
const pollEvery = 200 * time.Millisecond

// poll is listen for such an instance. A state that is shorter than pollEvery
// may not be seen.
func poll(ctx context.Context, d beacon.Document, tell func(sight) bool) (last beacon.Document, more bool, err error) {
	for now := d; ; {
		if now.State != last.State || now.SessionID != last.SessionID {
			if !tell(sight{Event: stateEvent, instance: instance{Document: now, Source: fromSocket}, told: true}) {
				return now, false, nil
			}
		}
		last = now
		select {
		case <-ctx.Done():
			return last, true, nil
		case <-time.After(pollEvery):
		}
		if now, err = beacon.Query(ctx, d.Socket); err != nil || now.PID != d.PID {
			return last, true, nil
		}
	}
}

// whileRunning returns a context that ends soon after a process did.
func whileRunning(ctx context.Context, pid int) (alive context.Context, stop func()) {
	alive, cancel := context.WithCancel(ctx)
	id, err := proc.Of(pid)
	if errors.Is(err, proc.ErrNoProcess) {
		cancel()
	}
	if err != nil {
		return alive, cancel // can't be told: its file decides
	}
	var work sync.WaitGroup
	work.Go(func() {
		look := time.NewTicker(lookEvery)
		defer look.Stop()
		for proc.State(id) != proc.Gone {
			select {
			case <-alive.Done():
				return
			case <-look.C:
			}
		}
		cancel()
	})
	return alive, func() { cancel(); work.Wait() }
}
