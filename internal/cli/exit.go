package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"switchboard/internal/delivery"
	"switchboard/internal/exchange/dirstore"
	"switchboard/internal/phonebook"
	"switchboard/internal/pihost"
	"switchboard/internal/shellquote"
)

// The exit codes. Scripts rely on them: they are added to, never changed.
const (
	done        = 0
	failed      = 1
	misused     = 2
	nobody      = 3
	several     = 4
	timedOut    = 5
	interrupted = 130
)

// exitCodes says what the codes mean.
var exitCodes = []struct {
	code    int
	meaning string
}{
	{done, "done"},
	{failed, "failed, or something must be mended (doctor)"},
	{misused, "usage: the command or its arguments were wrong"},
	{nobody, "nobody matched: no live session has this locator"},
	{several, "several matched: the locators mean more than one session"},
	{timedOut, "timed out: what was waited for did not happen"},
	{interrupted, "interrupted by Ctrl-C"},
}

// errorTable says, for each kind of error, how the program ends and what to do
// next. The first that matches counts; anything else has failed without a hint.
var errorTable = []struct {
	code int
	hint func(error) (hint string, matches bool)
}{
	{interrupted, is(context.Canceled, "")},
	{misused, as(func(e *usageError) string { return e.hint })},
	{misused, is(phonebook.ErrNoLocator, "switchboard list")},
	{misused, is(delivery.ErrNoText, `switchboard send LOCATOR "the parser is ready"`)},
	{misused, as(func(*delivery.TooLongError) string { return delivery.Shorten })},
	{nobody, as(func(*noInstanceError) string { return "switchboard state" })},
	{nobody, as(func(*offBoardError) string { return "switchboard board" })},
	{nobody, as(func(*phonebook.NobodyError) string { return "switchboard list" })},
	{nobody, as(func(*leftError) string { return "switchboard list" })},
	{nobody, as(func(*absentError) string { return "switchboard state" })},
	{timedOut, as(func(*timeoutError) string { return "" })},
	{several, as(func(e *severalInstancesError) string { return e.hint })},
	{several, as(func(e *phonebook.SeveralError) string { return "switchboard send " + anID(e.Found) + " MESSAGE" })},
	{failed, as(func(e *dirstore.RootError) string { return e.Mend })},
	{failed, as(func(e *pihost.MendError) string { return e.Mend })},
}

func is(target error, hint string) func(error) (string, bool) {
	return func(err error) (string, bool) { return hint, errors.Is(err, target) }
}

func as[E error](hint func(E) string) func(error) (string, bool) {
	return func(err error) (string, bool) {
		var e E
		if !errors.As(err, &e) {
			return "", false
		}
		return hint(e), true
	}
}

// anID is an id to choose, of those that matched.
func anID(book phonebook.Book) string {
	if len(book) == 0 {
		return "LOCATOR"
	}
	return shellquote.Quote(book[0].ID)
}

// explain turns an error into exit code, message and hint. The message is one
// line: it may quote what other programs wrote.
func explain(err error) (code int, what, hint string) {
	if err == nil {
		return done, "", ""
	}
	code = failed
	for _, row := range errorTable {
		if h, ok := row.hint(err); ok {
			code, hint = row.code, h
			break
		}
	}
	what = delivery.Line(err.Error(), 4000)
	if hint != "" {
		what = strings.TrimSuffix(what, "; mend it with: "+hint)
	}
	return code, what, hint
}

// report says how the program ended, and returns its exit code.
func (a *app) report(err error) int {
	code, what, hint := explain(err)
	// Whoever pressed Ctrl-C knows, and who closed the pipe has read enough.
	if code == done || code == interrupted || errors.Is(err, syscall.EPIPE) {
		return code
	}
	fmt.Fprintf(a.stderr, "switchboard: %s\n", what)
	if hint != "" {
		fmt.Fprintf(a.stderr, "hint: %s\n", hint)
	}
	return code
}

// usageError says that a command was used in a way that it can't be.
type usageError struct {
	problem string
	hint    string
}

func (e *usageError) Error() string { return e.problem }

// misuse is a usageError that points at the command's help.
func misuse(c *cobra.Command, format string, args ...any) *usageError {
	return &usageError{problem: fmt.Sprintf(format, args...), hint: c.CommandPath() + " --help"}
}

// note tells the person at the terminal something that is not the answer.
func (a *app) note(format string, args ...any) {
	fmt.Fprintln(a.stderr, delivery.Line(fmt.Sprintf(format, args...), 4000))
}
