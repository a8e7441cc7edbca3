package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"switchboard/internal/agent"
	"switchboard/internal/delivery"
	"switchboard/internal/exchange"
	"switchboard/internal/phonebook"
)

func (a *app) sendCommand() *cobra.Command {
	var asJSON bool
	var more []string
	c := &cobra.Command{
		Use:               "send LOCATOR MESSAGE [--to LOCATOR…] [--json]",
		Short:             "Send one message to one live session.",
		Long:              "A locator is a session's id, name, working directory or process id; several must mean one session together.\nThe message - is read from standard input. At a terminal it is marked as a human's; that of a script is a program's,\nand an agent's is the agent's.",
		Example:           `switchboard send reviewer "the parser is ready"`,
		GroupID:           peopleGroup,
		Args:              cobra.ArbitraryArgs, // sendArguments says it better
		ValidArgsFunction: a.completeFirstLocator,
		RunE: func(c *cobra.Command, args []string) error {
			locators, message, err := sendArguments(c, args, more)
			if err != nil {
				return err
			}
			if message == "-" {
				if message, err = a.readMessage(c.Context()); err != nil {
					return err
				}
			}
			return a.send(locators, message, asJSON)
		},
	}
	c.Flags().StringArrayVar(&more, "to", nil, "one more `LOCATOR` of the same session")
	_ = c.RegisterFlagCompletionFunc("to", a.completeLocators) // fails only for a flag that isn't there
	jsonFlag(c, &asJSON)
	return c
}

// sendArguments tells locators and message apart.
func sendArguments(c *cobra.Command, args, more []string) (locators []string, message string, err error) {
	switch {
	case len(args) == 0:
		return nil, "", misuse(c, "to whom, and what? give a locator and a message")
	case len(args) == 1 && len(more) == 0:
		return nil, "", misuse(c, "the message is missing")
	case len(args) == 1:
		return more, args[0], nil
	case len(args) > 2:
		return nil, "", &usageError{
			problem: fmt.Sprintf("the message is %d words: quote it", len(args)-1),
			hint:    fmt.Sprintf("switchboard send %s %q", delivery.Line(args[0], 60), delivery.Line(strings.Join(args[1:], " "), 60)),
		}
	}
	return append(args[:1:1], more...), args[1], nil
}

// readMessage reads the message from standard input.
func (a *app) readMessage(ctx context.Context) (string, error) {
	if f, ok := a.stdin.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		a.note("Reading the message; end it with Ctrl-D.")
	}
	type result struct {
		data []byte
		err  error
	}
	read := make(chan result, 1)
	go func() { // a read can't be interrupted; it ends with the process
		data, err := io.ReadAll(io.LimitReader(a.stdin, delivery.MaxMessage+1))
		read <- result{data, err}
	}()
	select {
	case r := <-read:
		if r.err != nil {
			return "", fmt.Errorf("read the message: %w", r.err)
		}
		if len(r.data) > delivery.MaxMessage {
			return "", &delivery.TooLongError{Size: delivery.MaxMessage, More: true}
		}
		return string(r.data), nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// leftError says that the recipient went while it was written to.
type leftError struct{ to phonebook.Entry }

func (e *leftError) Error() string {
	return fmt.Sprintf("%s (session %s) has just left: the message waits %d days for it to be resumed", e.to.Label(), phonebook.Show(e.to.ID), exchange.KeepMail/(24*time.Hour))
}

// sent is the answer of send. Fields are added, never changed.
type sent struct {
	ID      string          `json:"id"`
	Status  string          `json:"status"` // waiting
	To      sessionInfo     `json:"to"`
	From    delivery.Sender `json:"from"`
	Receipt string          `json:"receipt"`
}

func (a *app) send(locators []string, message string, asJSON bool) error {
	message, err := delivery.Prepare(message)
	if err != nil {
		return err
	}
	store, roster, err := a.look()
	if err != nil {
		return err
	}
	to, err := bookOf(roster).One(locators)
	if err != nil {
		return err
	}
	from := a.caller(roster).sender(roster)
	if from.Session == to.ID {
		return &usageError{problem: to.Label() + " is the session that runs this command", hint: "switchboard list"}
	}
	target := sessionOf(roster, to)
	now := time.Now()
	m := delivery.Message{ID: exchange.NewID(now), Kind: delivery.Call, From: from, Text: message, Sent: now.UTC()}
	err = store.Post(target.Key, m)
	switch {
	case errors.Is(err, exchange.ErrTooLarge):
		return &delivery.TooLongError{Size: len(message), Stored: true}
	case err != nil:
		return fmt.Errorf("send to %s: %w", to.Label(), err)
	}
	if _, err := store.Session(target.Key); errors.Is(err, exchange.ErrGone) {
		return &leftError{to}
	}
	return a.printReceipt(sent{ID: m.ID, Status: "waiting", To: info(target), From: from, Receipt: agent.Receipt(target, m.Hops, now)}, asJSON)
}

func sessionOf(roster []exchange.Session, e phonebook.Entry) exchange.Session {
	for _, s := range roster {
		if s.Key.ID == e.ID {
			return s
		}
	}
	return exchange.Session{}
}

func (a *app) printReceipt(s sent, asJSON bool) error {
	if asJSON {
		return a.printJSON(s)
	}
	to := "session " + phonebook.Show(s.To.ID)
	if s.To.Name != "" {
		to = fmt.Sprintf("%s (%s)", phonebook.Show(s.To.Name), to)
	}
	line := fmt.Sprintf("Sent to %s. %s", to, s.Receipt)
	if !s.From.Human {
		line += " It names you as " + s.From.Label() + "."
	}
	_, err := fmt.Fprintln(a.stdout, delivery.Line(line, maxCell))
	return err
}
