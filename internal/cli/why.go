package cli

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"switchboard/internal/agent"
	"switchboard/internal/beacon"
	"switchboard/internal/delivery"
	"switchboard/internal/exchange"
	"switchboard/internal/lifecycle"
	"switchboard/internal/phonebook"
	"switchboard/internal/proc"
	"switchboard/internal/team"
)

func (a *app) whyCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:               "why CALLSIGN [--json]",
		Short:             "Say in one line what an agent does, since when, and why a message to it is not in yet.",
		Long:              "CALLSIGN is the agent's in this repository, or any locator: a session's id, name, working directory, process id or one of its values.",
		Example:           "switchboard why bravo",
		GroupID:           peopleGroup,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: a.completeCallsign,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) != 1 {
				return misuse(c, "why explains one agent, not %d", len(args))
			}
			return a.why(c, args[0], asJSON)
		},
	}
	jsonFlag(c, &asJSON)
	return c
}

// reason is the answer of why. Fields are added, never changed.
type reason struct {
	ID         string            `json:"id"`
	Callsign   string            `json:"callsign"` // empty outside of a team
	Name       string            `json:"name"`
	Text       string            `json:"text"` // all of it, in one line
	State      string            `json:"state"`
	Since      time.Time         `json:"since"` // start of State
	Presence   exchange.Presence `json:"presence"`
	Problem    string            `json:"problem,omitempty"` // why it does not respond
	Tool       *exchange.Tool    `json:"tool,omitempty"`    // that it has been in for a minute or more
	Task       string            `json:"task"`
	Detail     *beacon.Detail    `json:"detail,omitempty"` // of its beacon, if it answers
	Unreadable int               `json:"unreadable"`       // files in its inbox that are kept and not delivered
	Messages   []waitingMail     `json:"messages"`         // in its inbox, oldest first
}

func (a *app) why(c *cobra.Command, locator string, asJSON bool) error {
	store, roster, err := a.look()
	if err != nil {
		return err
	}
	s, err := a.meant(c, roster, locator)
	if err != nil {
		return err
	}
	now := time.Now()
	box, err := openMailbox(store, s, now)
	if err != nil {
		return err
	}
	r := reason{
		ID: box.ID, Callsign: s.Callsign, Name: box.Name, State: box.State, Since: s.Since.UTC(), Presence: s.Presence,
		Tool: toolOf(s), Unreadable: box.Unreadable, Messages: box.Messages,
	}
	if m, ok := a.folds(store)(s.Team).Member(s.Key.ID); ok && m.Incarnation == s.Incarnation {
		r.Task = m.Task
	}
	var shown beacon.Document
	if s.Presence == exchange.Unresponsive {
		r.Problem = silence(s, now)
	} else if shown = a.beaconOf(c, s); shown.State != "" {
		r.Detail = &shown.Detail
	}
	r.Text = callsign(s) + " " + doing(s, r, shown, now) + "; " + held(r, now)
	if asJSON {
		return a.printJSON(r)
	}
	_, err = fmt.Fprintln(a.stdout, r.Text)
	return err
}

// meant is the session that a callsign of this repository means, or else a
// locator.
func (a *app) meant(c *cobra.Command, roster []exchange.Session, locator string) (exchange.Session, error) {
	if word, ok := team.Callsign(locator); ok {
		_, checkout, err := a.here()
		if err == nil {
			id := exchange.TeamID(checkout.Key())
			if i := slices.IndexFunc(roster, func(s exchange.Session) bool { return s.Team == id && s.Callsign == word }); i >= 0 {
				return roster[i], nil
			}
		}
	}
	e, err := bookOf(roster).One([]string{locator})
	var none *phonebook.NobodyError
	var several *phonebook.SeveralError
	switch {
	case errors.As(err, &none):
		return exchange.Session{}, &offBoardError{none}
	case errors.As(err, &several):
		return exchange.Session{}, &severalInstancesError{several, c.CommandPath() + " " + anID(several.Found) + givenFlags(c)}
	case err != nil:
		return exchange.Session{}, err
	}
	return roster[slices.IndexFunc(roster, func(s exchange.Session) bool { return s.Key.ID == e.ID })], nil
}

// offBoardError says that nobody has a callsign.
type offBoardError struct{ *phonebook.NobodyError }

// Unwrap returns the error that the phonebook knows.
func (e *offBoardError) Unwrap() error { return e.NobodyError }

// callsign is what a session is called: by its team if it is in one.
func callsign(s exchange.Session) string {
	if word, ok := team.Callsign(s.Callsign); ok {
		return word
	}
	return agent.BookEntry(s).Label()
}

// beaconOf asks the beacon of a session, which knows more than its record. It
// is empty if it does not answer, or says something else.
func (a *app) beaconOf(c *cobra.Command, s exchange.Session) beacon.Document {
	docs := slices.DeleteFunc(beacon.List(a.beacons()), func(d beacon.Document) bool {
		return d.SessionID != s.Key.ID || d.PID != s.Agent.PID
	})
	for _, i := range askAll(c.Context(), docs) {
		if i.Source == fromSocket && i.SessionID == s.Key.ID && string(i.State) == s.State {
			return i.Document
		}
	}
	return beacon.Document{}
}

// doing says what a session does and since when: "has been busy for 14m, in
// bash for 12m".
func doing(s exchange.Session, r reason, shown beacon.Document, now time.Time) string {
	if r.Problem != "" {
		return "does not respond: " + r.Problem
	}
	word := r.State
	if lifecycle.State(word) == lifecycle.Working {
		word = "busy"
	}
	out := "is " + word
	if !s.Since.IsZero() {
		out = "has been " + word + " for " + delivery.Age(now.Sub(s.Since))
	}
	if s.State == string(lifecycle.Idle) {
		return out
	}
	if r.Task != "" {
		out += " on " + strconv.Quote(r.Task)
	}
	if t := r.Tool; t != nil {
		out += ", in " + phonebook.Show(t.Name) + " for " + delivery.Age(now.Sub(t.Since))
	}
	if shown.Detail.WaitingForUser {
		return out + ", and waits for its human to answer"
	}
	if v := shown.Detail; shown.State == lifecycle.Retrying && v.Attempt > 0 {
		out += ", attempt " + strings.TrimPrefix(words(shown, now), string(lifecycle.Retrying)+" ")
	}
	return out
}

// silence says why a session does not respond. What answers for it is its
// sidecar.
func silence(s exchange.Session, now time.Time) string {
	switch {
	case proc.State(s.Agent) == proc.Stopped:
		return fmt.Sprintf("its process (%d) is stopped", s.Agent.PID)
	case proc.State(s.Owner) == proc.Stopped:
		return fmt.Sprintf("its sidecar (%d) is stopped", s.Owner.PID)
	case s.LastBeat.IsZero():
		return fmt.Sprintf("its sidecar (%d) gives no sign of life", s.Owner.PID)
	}
	return fmt.Sprintf("its sidecar (%d) gave its last sign of life %s ago", s.Owner.PID, delivery.Age(now.Sub(s.LastBeat)))
}

// held says what the messages in an inbox wait for, those that wait for the
// same together: "2 messages wait for the end of its turn".
func held(r reason, now time.Time) string {
	var whys []string
	count := make(map[string]int)
	for _, m := range r.Messages {
		why := m.why(now)
		if count[why]++; count[why] == 1 {
			whys = append(whys, why)
		}
	}
	var out []string
	for _, why := range whys {
		n := count[why]
		what := fmt.Sprintf("%d %s for %s", n, plural(n, "message waits", "messages wait"), why)
		if why == (waitingMail{WaitsFor: agent.AwaitWake}).why(now) {
			what = fmt.Sprintf("%d %s a turn any moment", n, plural(n, "message starts", "messages start"))
		}
		out = append(out, what)
	}
	if len(out) == 0 {
		out = append(out, "nothing waits")
	}
	if n := r.Unreadable; n > 0 {
		out = append(out, fmt.Sprintf("%d %s can't be read: see switchboard doctor", n, plural(n, "message", "messages")))
	}
	return strings.Join(out, "; ")
}

// completeCallsign offers callsigns too, before the locators.
func (a *app) completeCallsign(c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	out, directive := a.completeFirstLocator(c, args, typed)
	if len(args) > 0 || directive == cobra.ShellCompDirectiveError {
		return out, directive
	}
	_, roster, err := a.look()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var words []string
	for _, s := range roster {
		if word, ok := team.Callsign(s.Callsign); ok && strings.HasPrefix(word, typed) {
			words = append(words, word+"\t"+delivery.Line(agent.StateText(s, time.Now())+", "+a.shortPath(s.Root), 100))
		}
	}
	return append(words, out...), directive
}
