package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"switchboard/internal/agent"
	"switchboard/internal/delivery"
	"switchboard/internal/exchange"
	"switchboard/internal/phonebook"
	"switchboard/internal/shellquote"
)

const exampleBroadcast = `switchboard broadcast reviewer E-123 -- "the parser is ready"`

func (a *app) broadcastCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:               "broadcast [--json] SELECTOR… -- MESSAGE",
		Short:             "Send one message to every live session that any of the selectors means.",
		Long:              "A selector is a locator: any value that a session advertises (list). Nothing is sent if one of them means nobody.\nThe message - is read from standard input. The session whose shell this is gets none.",
		Example:           exampleBroadcast,
		GroupID:           peopleGroup,
		Args:              cobra.ArbitraryArgs, // broadcastArguments says it better
		ValidArgsFunction: a.completeLocators,
		RunE: func(c *cobra.Command, args []string) error {
			selectors, message, err := broadcastArguments(c, args)
			if err != nil {
				return err
			}
			if message == "-" {
				if message, err = a.readMessage(c.Context()); err != nil {
					return err
				}
			}
			return a.broadcast(selectors, message, asJSON)
		},
	}
	jsonFlag(c, &asJSON)
	return c
}

// broadcastArguments tells selectors and message apart: of several words,
// only the -- says where the message begins.
func broadcastArguments(c *cobra.Command, args []string) (selectors []string, message string, err error) {
	quoted := func(selectors []string, message ...string) string {
		words := []string{c.CommandPath()}
		for _, s := range selectors {
			words = append(words, shellquote.Quote(delivery.Line(s, 60)))
		}
		return strings.Join(append(words, "--", shellquote.Quote(delivery.Line(strings.Join(message, " "), 60))), " ")
	}
	dash := c.ArgsLenAtDash()
	switch {
	case len(args) == 0, dash == 0:
		return nil, "", misuse(c, "to whom, and what? give selectors, -- and a message")
	case dash < 0 && len(args) == 1:
		return nil, "", misuse(c, "the message is missing: it stands after --")
	case dash < 0:
		last := len(args) - 1
		return nil, "", &usageError{problem: "-- is missing between the selectors and the message", hint: quoted(args[:last], args[last])}
	case dash == len(args):
		return nil, "", misuse(c, "the message is missing: it stands after --")
	case len(args) > dash+1 && slices.Contains(args[dash+1:], "--json"):
		return nil, "", misuse(c, "after -- all is message: --json stands before it")
	case len(args) > dash+1:
		return nil, "", &usageError{
			problem: fmt.Sprintf("the message is %d words: quote it", len(args)-dash),
			hint:    quoted(args[:dash], args[dash:]...),
		}
	}
	return args[:dash], args[dash], nil
}

// casted is the answer of broadcast. Fields are added, never changed.
type casted struct {
	Delivered    int             `json:"delivered"` // how many inboxes it is in
	Matches      []selected      `json:"matches"`
	Recipients   []recipient     `json:"recipients"`
	SelfExcluded bool            `json:"selfExcluded"`
	From         delivery.Sender `json:"from"`
}

// selected is how many sessions one selector means.
type selected struct {
	Selector string `json:"selector"`
	Count    int    `json:"count"`
}

// recipient is what became of the message to one session.
type recipient struct {
	Status  string      `json:"status"` // waiting, left, failed, indeterminate
	ID      string      `json:"id"`     // of the message
	To      sessionInfo `json:"to"`
	Receipt string      `json:"receipt,omitempty"`
	Error   string      `json:"error,omitempty"`
}

// The statuses of a recipient.
const (
	isWaiting       = "waiting"
	isLeft          = "left" // in the inbox of a session that went meanwhile
	isFailed        = "failed"
	isIndeterminate = "indeterminate"
)

func (a *app) broadcast(selectors []string, message string, asJSON bool) error {
	message, err := delivery.Prepare(message)
	switch {
	case errors.Is(err, delivery.ErrNoText):
		return &usageError{problem: err.Error(), hint: exampleBroadcast}
	case err != nil:
		return err
	}
	store, roster, err := a.look()
	if err != nil {
		return err
	}
	found, matches, err := bookOf(roster).Union(selectors)
	if err != nil {
		return err
	}
	out := casted{From: a.caller(roster).sender(roster), Recipients: []recipient{}}
	m := delivery.Message{Kind: delivery.PartyLine, From: out.From, Text: message}
	for _, match := range matches {
		out.Matches = append(out.Matches, selected{match.Locator, len(match.Entries)})
		m.Selectors = append(m.Selectors, match.Locator)
	}
	var targets []exchange.Session
	for _, s := range roster {
		switch {
		case !slices.ContainsFunc(found, func(e phonebook.Entry) bool { return e.ID == s.Key.ID }):
		case s.Key.ID == out.From.Session:
			out.SelfExcluded = true
		default:
			targets = append(targets, s)
		}
	}
	if len(targets) == 0 {
		return &usageError{problem: "the selectors mean only the session that runs this command", hint: "switchboard list"}
	}
	for _, to := range targets {
		r, err := postTo(store, to, m)
		if errors.Is(err, exchange.ErrTooLarge) { // then for everybody
			return &delivery.TooLongError{Size: len(message), Stored: true}
		}
		if r.Status == isWaiting || r.Status == isLeft {
			out.Delivered++
		}
		out.Recipients = append(out.Recipients, r)
	}
	if asJSON {
		err = a.printJSON(out)
	} else {
		err = a.printCast(out)
	}
	if err != nil {
		return err
	}
	return out.err()
}

// mailer is what a broadcast needs of the exchange.
type mailer interface {
	Post(to exchange.SessionKey, m delivery.Message) error
	Session(key exchange.SessionKey) (exchange.Session, error)
}

// postTo writes a message to one session, under an id of its own, and says what
// is known of it then.
func postTo(store mailer, to exchange.Session, m delivery.Message) (recipient, error) {
	now := time.Now()
	m.ID, m.Sent = exchange.NewID(now), now.UTC()
	r := recipient{Status: isWaiting, ID: m.ID, To: info(to)}
	err := store.Post(to.Key, m)
	switch {
	case errors.Is(err, exchange.ErrIndeterminate):
		r.Status, r.Error = isIndeterminate, err.Error()
		return r, err
	case err != nil:
		r.Status, r.Error = isFailed, err.Error()
		return r, err
	}
	if _, err := store.Session(to.Key); errors.Is(err, exchange.ErrGone) {
		r.Status, r.Receipt = isLeft, fmt.Sprintf("left just now: the message waits %d days for its resume", exchange.KeepMail/(24*time.Hour))
		return r, nil
	}
	r.Receipt = agent.Outlook(to, m.Hops)
	return r, nil
}

// err says that the message is not in every inbox for sure.
func (c casted) err() error {
	count := make(map[string]int)
	for _, r := range c.Recipients {
		count[r.Status]++
	}
	var parts []string
	if n := count[isFailed]; n > 0 {
		parts = append(parts, fmt.Sprintf("not sent to %d", n))
	}
	if n := count[isIndeterminate]; n > 0 {
		parts = append(parts, fmt.Sprintf("perhaps sent to %d", n))
	}
	if len(parts) == 0 {
		return nil
	}
	return fmt.Errorf("%s of %d sessions", strings.Join(parts, " and "), len(c.Recipients))
}

func (a *app) printCast(c casted) error {
	var out strings.Builder
	total := len(c.Recipients)
	fmt.Fprintf(&out, "Sent to %d of %d %s.", c.Delivered, total, plural(total, "session", "sessions"))
	counts := make([]string, len(c.Matches))
	for i, m := range c.Matches {
		counts[i] = fmt.Sprintf("%q %d", delivery.Line(m.Selector, 200), m.Count)
	}
	fmt.Fprintf(&out, " Matches: %s.", strings.Join(counts, ", "))
	if c.SelfExcluded {
		out.WriteString(" This session matches too and was left out.")
	}
	if !c.From.Human {
		out.WriteString(" It names you as " + c.From.Label() + ".")
	}
	out.WriteString("\n")
	for _, r := range c.Recipients {
		to := "session " + phonebook.Show(r.To.ID)
		if r.To.Name != "" {
			to = fmt.Sprintf("%s (%s)", phonebook.Show(r.To.Name), to)
		}
		switch r.Status {
		case isFailed:
			to = "NOT sent to " + to + ": " + r.Error
		case isIndeterminate:
			to = "perhaps sent to " + to + ": " + r.Error
		default:
			to += ": " + r.Receipt
		}
		out.WriteString("  " + delivery.Line(to, maxCell) + "\n")
	}
	_, err := fmt.Fprint(a.stdout, out.String())
	return err
}
