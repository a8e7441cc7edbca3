package cli

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"switchboard/internal/agent"
	"switchboard/internal/delivery"
	"switchboard/internal/exchange"
	"switchboard/internal/phonebook"
)

// defaultPublisher is who says what nobody put a name to.
const defaultPublisher = "switchboard"

func (a *app) publishCommand() *cobra.Command {
	var p publication
	c := &cobra.Command{
		Use:               "publish KEY=VALUE… [--as NAME] [--session LOCATOR] [--clear] [--json]",
		Short:             "Give a live session further values that it can be dialled by.",
		Long:              "They replace what the same publisher said before; a repeated KEY has several values. In an agent's shell its own session\nis meant, elsewhere --session says which. They stay until --clear, and dial the session whenever it is there.",
		Example:           "switchboard publish ticket=E-123",
		GroupID:           peopleGroup,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, args []string) error {
			p.named = c.Flags().Changed("session")
			return a.publish(c, p, args)
		},
	}
	c.Flags().StringVar(&p.publisher, "as", defaultPublisher, "the `NAME` of who says it")
	c.Flags().StringVar(&p.session, "session", "", "the session that has the values: its id, or another `LOCATOR`")
	c.Flags().BoolVar(&p.clear, "clear", false, "take back what the publisher said")
	_ = c.RegisterFlagCompletionFunc("session", a.completeLocators) // fails only for a flag that isn't there
	jsonFlag(c, &p.asJSON)
	return c
}

// publication is how a publish was asked for.
type publication struct {
	publisher string
	session   string
	named     bool // session was given
	clear     bool
	asJSON    bool
}

// published is the answer of publish. Fields are added, never changed.
type published struct {
	Session   sessionInfo     `json:"session"`
	Publisher string          `json:"publisher"`
	Values    exchange.Values `json:"values"`
	// Hidden are keys that another publisher, whose name sorts first, has too.
	Hidden []string `json:"hidden"`
}

func (a *app) publish(c *cobra.Command, p publication, args []string) error {
	values, err := publishArguments(c, p, args)
	if err != nil {
		return err
	}
	store, roster, err := a.look()
	if err != nil {
		return err
	}
	target, err := a.subject(c, roster, p)
	if err != nil {
		return err
	}
	if err := store.Contribute(target.Key, p.publisher, values); err != nil {
		return fmt.Errorf("publish about %s: %w", label(target), err)
	}
	after, err := store.Session(target.Key)
	if errors.Is(err, exchange.ErrGone) {
		_ = store.Contribute(target.Key, p.publisher, nil) // it would mean nothing
		return &phonebook.NobodyError{Unmatched: []string{target.Key.ID}}
	}
	if err != nil {
		return err
	}
	out := published{Session: info(after), Publisher: p.publisher, Values: values, Hidden: []string{}}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if !slices.Equal(after.Values[key], values[key]) {
			out.Hidden = append(out.Hidden, key)
		}
	}
	for _, key := range out.Hidden {
		a.note("Another publisher, whose name sorts before %s, says what %q is.", p.publisher, key)
	}
	if p.asJSON {
		return a.printJSON(out)
	}
	return a.printPublished(out, agent.BookEntry(after))
}

// publishArguments reads what is to be said.
func publishArguments(c *cobra.Command, p publication, args []string) (exchange.Values, error) {
	switch {
	case !exchange.ValidPublisher(p.publisher):
		return nil, misuse(c, "a publisher can't be called %q: letters, digits, '.', '_' and '-', at most 64", delivery.Line(p.publisher, 100))
	case p.clear && len(args) > 0:
		return nil, misuse(c, "--clear takes back all that %s said: give it no values", p.publisher)
	case !p.clear && len(args) == 0:
		return nil, misuse(c, "what is to be published? give KEY=VALUE, or --clear")
	}
	values := make(exchange.Values)
	for _, arg := range args {
		key, value, ok := strings.Cut(arg, "=")
		if !ok {
			return nil, misuse(c, "%q is not KEY=VALUE", delivery.Line(arg, 100))
		}
		if !slices.Contains(values[key], value) {
			values[key] = append(values[key], value)
		}
	}
	if err := values.Check(); err != nil {
		return nil, misuse(c, "%s", err)
	}
	return values, nil
}

// subject is the session that is spoken of.
func (a *app) subject(c *cobra.Command, roster []exchange.Session, p publication) (exchange.Session, error) {
	if p.named {
		e, err := bookOf(roster).One([]string{p.session})
		var many *phonebook.SeveralError
		switch {
		case errors.As(err, &many):
			return exchange.Session{}, &severalInstancesError{many, c.CommandPath() + " --session " + anID(many.Found) + " KEY=VALUE"}
		case err != nil:
			return exchange.Session{}, err
		}
		return sessionOf(roster, e), nil
	}
	caller := a.caller(roster)
	if s, ok := caller.session(roster); ok {
		return s, nil
	}
	if caller.id != "" && !slices.ContainsFunc(roster, func(s exchange.Session) bool { return s.Key.ID == caller.id }) {
		return exchange.Session{}, &phonebook.NobodyError{Unmatched: []string{caller.id}}
	}
	return exchange.Session{}, &usageError{
		problem: "which session? this is not the shell of a live one: name it with --session",
		hint:    c.CommandPath() + " --session " + anID(bookOf(roster)) + " KEY=VALUE",
	}
}

func (a *app) printPublished(p published, about phonebook.Entry) error {
	what := fmt.Sprintf("%s (session %s)", about.Label(), phonebook.Show(about.ID))
	if len(p.Values) == 0 {
		_, err := fmt.Fprintf(a.stdout, "%s says nothing about %s any more.\n", p.Publisher, what)
		return err
	}
	_, err := fmt.Fprintf(a.stdout, "%s says of %s: %s\n", p.Publisher, what, delivery.Line(valuesCell(p.Values), maxCell))
	return err
}

// valuesCell writes values the way publish takes them, on one line.
func valuesCell(values map[string][]string) string {
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(values)) {
		for _, v := range values[key] {
			parts = append(parts, word(key)+"="+word(v))
		}
	}
	return strings.Join(parts, " ")
}

// word is phonebook.Show for a list that blanks and = divide.
func word(s string) string {
	if shown := phonebook.Show(s); shown[0] == '"' || !strings.ContainsAny(shown, " =") {
		return shown
	}
	return strconv.Quote(delivery.Line(s, maxLine))
}
