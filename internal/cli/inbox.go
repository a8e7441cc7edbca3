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
	"switchboard/internal/exchange/dirstore"
	"switchboard/internal/phonebook"
)

func (a *app) inboxCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:               "inbox [LOCATOR] [--json]",
		Short:             "Show the messages that wait, for whom, and what for.",
		Long:              "Without a locator, of every session, also those that left: their mail waits for their resume.\nNothing is taken out.",
		Example:           "switchboard inbox reviewer",
		GroupID:           peopleGroup,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: a.completeFirstLocator,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) > 1 {
				return misuse(c, "inbox shows one locator's messages or all, not %d", len(args))
			}
			return a.inbox(args, asJSON)
		},
	}
	jsonFlag(c, &asJSON)
	return c
}

// mail is the answer of inbox. Fields are added, never changed.
type mail struct {
	Mailboxes []mailbox `json:"mailboxes"` // those with something in them
}

// mailbox is what waits for one session.
type mailbox struct {
	ID         string        `json:"id"`
	Name       string        `json:"name"`       // empty if it left
	State      string        `json:"state"`      // the same
	Presence   string        `json:"presence"`   // live, unresponsive, gone
	Unreadable int           `json:"unreadable"` // files that are kept and not delivered
	Messages   []waitingMail `json:"messages"`   // oldest first
	session    exchange.Session
}

// waitingMail is one message that waits.
type waitingMail struct {
	ID       string          `json:"id"`
	Kind     delivery.Kind   `json:"kind"`
	From     delivery.Sender `json:"from"`
	Sent     time.Time       `json:"sent"`
	Hops     int             `json:"hops"`
	Text     string          `json:"text"`
	WaitsFor agent.Await     `json:"waitsFor"`
	Until    time.Time       `json:"until,omitzero"` // for a resume: it is kept no longer
}

func (a *app) inbox(locators []string, asJSON bool) error {
	store, roster, err := a.look()
	if err != nil {
		return err
	}
	out := mail{Mailboxes: []mailbox{}}
	var boxes []dirstore.Mailbox
	if store != nil {
		if boxes, err = store.Mailboxes(); err != nil {
			return err
		}
	}
	sessions, err := chosen(roster, boxes, locators)
	if err != nil {
		return err
	}
	now := time.Now()
	unreadable := 0
	for _, s := range sessions {
		box, err := openMailbox(store, s, now)
		if err != nil {
			return err
		}
		unreadable += box.Unreadable
		if len(box.Messages) > 0 || box.Unreadable > 0 {
			out.Mailboxes = append(out.Mailboxes, box)
		}
	}
	if asJSON {
		err = a.printJSON(out)
	} else {
		err = a.printMail(out, now)
	}
	switch {
	case err != nil:
		return err
	case unreadable > 0:
		a.note("%d %s can't be read and %s kept; see switchboard doctor.", unreadable, plural(unreadable, "message", "messages"), plural(unreadable, "is", "are"))
	case len(out.Mailboxes) == 0 && len(sessions) == 1 && len(locators) > 0:
		a.note("Nothing waits for %s.", label(sessions[0]))
	case len(out.Mailboxes) == 0:
		a.note("Nothing waits for anybody.")
	}
	return nil
}

// chosen lists the sessions whose mail is asked for: the live ones, and those
// that left mail behind, by their id.
func chosen(roster []exchange.Session, boxes []dirstore.Mailbox, locators []string) ([]exchange.Session, error) {
	found, matches, unmatched := filter(roster, locators)
	out := slices.Clone(found)
	for _, box := range boxes {
		live := slices.ContainsFunc(roster, func(s exchange.Session) bool { return s.Key.Slug() == box.Slug })
		if live || box.Messages == 0 || len(matches) > 0 && !slices.Contains(unmatched, box.Slug) {
			continue
		}
		// Its record is gone; its slug is its id, as far as that can be told.
		out = append(out, exchange.Session{
			Record: exchange.Record{Key: exchange.SessionKey{Host: exchange.PiHost, ID: box.Slug}}, Presence: exchange.Gone,
		})
	}
	if len(out) == 0 && len(matches) > 0 {
		return nil, &phonebook.NobodyError{Unmatched: unmatched, Matches: matches, Book: bookOf(roster)}
	}
	return out, nil
}

// openMailbox reads what waits for one session.
func openMailbox(store *dirstore.Store, s exchange.Session, now time.Time) (mailbox, error) {
	e := agent.BookEntry(s)
	box := mailbox{ID: e.ID, Name: e.Name, State: e.State, Presence: string(s.Presence), Messages: []waitingMail{}, session: s}
	slug := s.Key.Slug()
	if s.Presence == exchange.Gone {
		slug = s.Key.ID
	}
	messages, unreadable, err := store.Mail(slug)
	box.Unreadable = unreadable
	if err != nil {
		return box, fmt.Errorf("read the inbox of %s: %w", label(s), err)
	}
	for _, m := range messages {
		if !m.Kind.Known() { // a newer Switchboard's
			box.Unreadable++
			continue
		}
		w := waitingMail{ID: m.ID, Kind: m.Kind, From: m.From, Sent: m.Sent, Hops: m.Hops, Text: m.Text, WaitsFor: agent.Awaits(s, m, now)}
		if w.WaitsFor == agent.AwaitResume {
			w.Until = m.Sent.Add(exchange.KeepMail)
		}
		box.Messages = append(box.Messages, w)
	}
	return box, nil
}

// The columns of the mail.
const (
	forColumn = iota
	forIDColumn
	agoColumn
	fromColumn
	whyColumn
	textColumn
)

func (a *app) printMail(m mail, now time.Time) error {
	columns := []column{
		forColumn:   {title: "FOR", least: 10},
		forIDColumn: {title: "ID", least: 13, tail: true},
		agoColumn:   {title: "AGE"},
		fromColumn:  {title: "FROM", least: 10},
		whyColumn:   {title: "WAITS FOR", least: 20},
		textColumn:  {title: "TEXT", least: 16},
	}
	for _, box := range m.Mailboxes {
		who := "(left)" // a name with brackets would stand in quotes
		if box.session.Presence != exchange.Gone {
			who = agent.BookEntry(box.session).Label()
		}
		for _, w := range box.Messages {
			for i, cell := range []string{
				forColumn: who, forIDColumn: box.ID, agoColumn: delivery.Age(now.Sub(w.Sent)), fromColumn: senderCell(w.From),
				whyColumn: w.why(now), textColumn: firstLine(w.Text),
			} {
				columns[i].cells = append(columns[i].cells, delivery.Line(cell, maxCell))
			}
		}
	}
	if len(columns[forColumn].cells) == 0 {
		return nil
	}
	if width, ok := a.terminal(); ok {
		fit(columns, []int{textColumn, forIDColumn, fromColumn, forColumn, whyColumn}, width)
	}
	paint := a.painter()
	_, err := fmt.Fprint(a.stdout, render(columns, func(s string) string { return paint(faint, s) }))
	return err
}

// senderCell names a sender; in quotes, as a session may be called "a human".
func senderCell(s delivery.Sender) string {
	if s.Human {
		return "a human"
	}
	return strconv.Quote(s.Label())
}

// why says in a few words what a message waits for.
func (w waitingMail) why(now time.Time) string {
	switch w.WaitsFor {
	case agent.AwaitTurnEnd:
		return "the end of its turn"
	case agent.AwaitCompacted:
		return "the end of its compaction"
	case agent.AwaitWake:
		return "nothing: it starts a turn"
	case agent.AwaitPrompt:
		if w.Hops > delivery.MaxHops {
			return fmt.Sprintf("its human's next prompt: agents woke each other %d times", delivery.MaxHops)
		}
		return "its human's next prompt: the run was stopped"
	case agent.AwaitStep:
		return "the next step of its run, if there is one"
	case agent.AwaitResponse:
		return "its process to respond"
	case agent.AwaitResume:
		if left := w.Until.Sub(now); left > 0 {
			return "its resume, " + delivery.Age(left) + " more"
		}
		return "its resume; about to be removed"
	}
	return string(w.WaitsFor)
}

// firstLine is the first line of a text that says anything, and how many more
// there are.
func firstLine(text string) string {
	line, rest, more := strings.Cut(strings.TrimSpace(delivery.CleanText(text)), "\n")
	line = delivery.Line(line, maxLine)
	if more {
		n := 1 + strings.Count(rest, "\n")
		line += fmt.Sprintf(" (+%d %s)", n, plural(n, "line", "lines"))
	}
	return line
}

// maxLine is how much of a text's first line is shown, in bytes.
const maxLine = 200
