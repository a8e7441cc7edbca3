package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"switchboard/internal/delivery"
	"switchboard/internal/exchange"
	"switchboard/internal/exchange/dirstore"
	"switchboard/internal/phonebook"
	"switchboard/internal/pihost"
	"switchboard/internal/proc"
)

func TestExplain(t *testing.T) {
	ann := phonebook.Entry{ID: "id-ann", Name: "ann", PID: 7}
	tests := []struct {
		err  error
		code int
		what string
		hint string
	}{
		{nil, done, "", ""},
		{errors.New("it broke"), failed, "it broke", ""},
		{&usageError{"wrong", "do this"}, misused, "wrong", "do this"},
		{&delivery.TooLongError{Size: 33000}, misused, "the message is 33,000 bytes, at most 32,768", "send the important part, or write a file and send its path"},
		{fmt.Errorf("write: %w", syscall.EPIPE), failed, "write: broken pipe", ""},
		{&phonebook.NobodyError{Unmatched: []string{"x\n\x1b[2Jforged"}}, nobody, `no live session matches "x\n\x1b[2Jforged"`, "switchboard list"},
		{&leftError{ann}, nobody, "ann (session id-ann) has just left: the message waits 7 days for it to be resumed", "switchboard list"},
		{&phonebook.SeveralError{Found: phonebook.Book{ann, ann}}, several, "that is 2 sessions, not one: ", "switchboard send id-ann MESSAGE"},
		{&dirstore.RootError{Path: "/r", Problem: "is odd", Mend: "mend it"}, failed, "/r: is odd", "mend it"},
		{&pihost.MendError{Problem: "in the way", Mend: "rm x"}, failed, "in the way", "rm x"},
		{fmt.Errorf("read: %w", context.Canceled), interrupted, "read: context canceled", ""},
		{errors.New("two\nlines \x1b[31mred"), failed, "two lines red", ""},
	}
	for _, tt := range tests {
		code, what, hint := explain(tt.err)
		if code != tt.code || strings.TrimSpace(what) != strings.TrimSpace(tt.what) || hint != tt.hint {
			t.Errorf("explain(%v) = %d, %q, %q; want %d, %q, %q", tt.err, code, what, hint, tt.code, tt.what, tt.hint)
		}
		if !documented(code) {
			t.Errorf("exit code %d is not in the table", code)
		}
	}
}

func documented(code int) bool {
	for _, c := range exitCodes {
		if c.code == code {
			return true
		}
	}
	return false
}

// signalled interrupts this process when it is read from, and then has nothing
// to give.
type signalled struct{ t *testing.T }

func (r signalled) Read([]byte) (int, error) {
	p, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = p.Signal(os.Interrupt)
	}
	if err != nil {
		r.t.Error(err)
	}
	select {}
}

// Ctrl-C while the program waits ends it quietly.
func TestInterrupt(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("processes there can't be interrupted one by one")
	}
	var out, errs bytes.Buffer
	if code := Main([]string{"send", "ann", "-"}, signalled{t}, &out, &errs, func(string) string { return "" }); code != interrupted {
		t.Errorf("exit code %d, want %d", code, interrupted)
	}
	if out.Len()+errs.Len() > 0 {
		t.Errorf("stdout %q, stderr %q; want nothing", &out, &errs)
	}
}

func TestSendTooLarge(t *testing.T) {
	for n, want := range map[int]string{delivery.MaxText + 1: "is 32,769 bytes, at most 32,768\n", delivery.MaxMessage + 10: "more than 65,536 bytes, at most 32,768\n"} {
		var errs bytes.Buffer
		code := Main([]string{"send", "ann", "-"}, strings.NewReader(strings.Repeat("x", n)), io.Discard, &errs, func(string) string { return "" })
		if code != misused || !strings.Contains(errs.String(), want) {
			t.Errorf("%d bytes: exit code %d, %q", n, code, &errs)
		}
	}
}

func TestSender(t *testing.T) {
	at := func(id string, pid int) exchange.Session {
		return exchange.Session{Record: exchange.Record{Key: exchange.SessionKey{Host: exchange.PiHost, ID: id}, Name: "n-" + id, Agent: proc.ID{PID: pid}}}
	}
	a, b, c := at("a", 10), at("b", 10), at("c", 20) // a and b share a process
	roster := []exchange.Session{a, b, c}
	tests := []struct {
		name string
		c    caller
		want string // session id, "human" or "program"
	}{
		{"a shell", caller{terminal: true}, "human"},
		{"a script", caller{}, "program"},
		{"an agent's shell in a terminal", caller{terminal: true, above: roster[2:]}, "c"},
		{"an agent without us in a terminal", caller{terminal: true, agent: true}, "program"},
		{"Pi's bash tool", caller{id: "c", agent: true, above: roster[2:]}, "c"},
		{"one of two in a process", caller{id: "b", agent: true, above: roster[:2]}, "b"},
		{"two in a process, not said which", caller{agent: true, above: roster[:2]}, "program"},
		{"nothing but the parent", caller{above: roster[2:]}, "c"},
		{"nested: the nearest counts", caller{above: []exchange.Session{c, a}}, "c"},
		{"nested: named", caller{id: "a", above: []exchange.Session{c, a}}, "a"},
		{"another's name", caller{id: "c", agent: true, above: roster[:1]}, "program"},
		{"in a container of its own", caller{id: "c", agent: true}, "c"},
		{"an agent without us", caller{id: "x", agent: true}, "program"},
		{"a child of some agent", caller{agent: true}, "program"},
	}
	for _, tt := range tests {
		s := tt.c.sender(roster)
		got := s.Session
		switch {
		case s.Human:
			got = "human"
		case got == "":
			got = "program"
		}
		if got != tt.want {
			t.Errorf("%s: sender is %s, want %s", tt.name, got, tt.want)
		}
		if s.Human && s.Session != "" {
			t.Errorf("%s: %+v is a human and a session", tt.name, s)
		}
	}
}

// What does not fit gives way in order, and never beyond what still says
// something.
func TestFit(t *testing.T) {
	session := exchange.Session{Record: exchange.Record{
		Key: exchange.SessionKey{Host: exchange.PiHost, ID: "01a2b3c4-0000-7000-8000-0123456789ab"}, Name: "a-name-longer-than-its-column",
		State: "working", Since: time.Unix(0, 0), Model: "provider/some-large-model-name", Cwd: "/a/very/long/path/to/a/checkout/of/some/project",
		Agent: proc.ID{PID: 1234567},
	}}
	columns := func() []column { return table([]exchange.Session{session}, time.Unix(61, 0)) }
	order := []int{cwdColumn, idColumn, modelColumn, nameColumn}
	plain := func(s string) string { return s }
	for _, width := range []int{40, 80, 100, 120, 160, 200} {
		cs := columns()
		fit(cs, order, width)
		got := render(cs, plain)
		for line := range strings.Lines(got) {
			line = strings.TrimSuffix(line, "\n")
			if w := cells(line); w > max(width, 78) {
				t.Errorf("at %d a line is %d wide:\n%s", width, w, got)
			}
		}
		for _, whole := range []string{"1234567", "working 1m", "0123456789ab"} {
			if !strings.Contains(got, whole) {
				t.Errorf("at %d %q is cut:\n%s", width, whole, got)
			}
		}
	}
	if got := render(columns(), plain); !strings.Contains(got, session.Key.ID) || !strings.Contains(got, session.Cwd) {
		t.Errorf("without a terminal values are cut:\n%s", got)
	}
}

func TestCut(t *testing.T) {
	tests := []struct {
		s     string
		width int
		tail  bool
		want  string
	}{
		{"short", 5, false, "short"},
		{"longer", 5, false, "long…"},
		{"longer", 5, true, "…nger"},
		{"日本語名", 5, false, "日本…"},
		{"日本語名", 4, true, "…名"},
		{"e\u0301e\u0301e\u0301", 3, false, "e\u0301e\u0301e\u0301"},
	}
	for _, tt := range tests {
		if got := cut(tt.s, tt.width, tt.tail); got != tt.want {
			t.Errorf("cut(%q, %d, %v) = %q, want %q", tt.s, tt.width, tt.tail, got, tt.want)
		}
	}
}

func TestEscapeUnprintable(t *testing.T) {
	in := "{\n \"a\": \"\u009b31mü日\u202e\U000E0041\x7f\"\n}"
	want := "{\n \"a\": \"\\u009b31mü日\\u202e\\udb40\\udc41\\u007f\"\n}"
	if got := escapeUnprintable(in); got != want {
		t.Errorf("escapeUnprintable(%q) = %q, want %q", in, got, want)
	}
}

// Every command explains itself in the same three steps.
func TestHelp(t *testing.T) {
	root := (&app{getenv: func(string) string { return "" }}).rootCommand()
	commands := root.Commands()
	for i := 0; i < len(commands); i++ {
		c := commands[i]
		commands = append(commands, c.Commands()...)
		if !c.Runnable() {
			continue
		}
		if c.Short == "" || !strings.HasSuffix(c.Short, ".") || strings.Contains(strings.TrimSuffix(c.Short, "."), ". ") {
			t.Errorf("%s: %q is not one sentence", c.CommandPath(), c.Short)
		}
		if !strings.Contains(c.Example, "switchboard") {
			t.Errorf("%s: the example is %q", c.CommandPath(), c.Example)
		}
		if c.Parent() == root && !c.Hidden && c.GroupID == "" {
			t.Errorf("%s is in no group", c.CommandPath())
		}
	}
}
