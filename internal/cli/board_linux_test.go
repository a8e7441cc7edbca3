package cli

import (
	"strings"
	"testing"

	"switchboard/internal/exchange"
	"switchboard/internal/team"
)

// What sessions wrote does not move the cursor, and NO_COLOR is obeyed.
func TestTeamAtTheTerminal(t *testing.T) {
	w := newWorld(t)
	getenv := func(name string) string { return w.env[name] }
	alpha := w.session("id-alpha", "alpha", "app", func(r *exchange.Record) {
		r.State, r.Branch, r.Tool.Name, r.Name = "working", "b\x1b[2Jforged", "t\x1b[31m", "n\nforged"
	})
	w.session("id-x", "\x1b[2Jforged", "app")
	w.write(alpha, team.Tasked, team.Tasking{Text: "a\x1b[2J task\nforged"})
	w.edit(alpha, "f\x1b[2J\nforged")
	for _, args := range [][]string{{"board"}, {"board", "--all"}, {"board", "--json"}, {"log"}, {"log", "."}, {"log", "--json", "."}, {"why", "alpha"}, {"why", "id-x"}, {"why", "alpha", "--json"}} {
		w.env["NO_COLOR"] = "1"
		plain, code := onTerminal(t, 100, getenv, args...)
		if code != done || plain == "" || strings.ContainsAny(plain, "\x1b\x07") || strings.Contains(plain, "\nforged") {
			t.Errorf("%q without colours: code %d, %q", args, code, plain)
		}
		w.env["NO_COLOR"] = ""
		colours, _ := onTerminal(t, 100, getenv, args...)
		if strings.Contains(colours, "\x1b[2J") || strings.Contains(colours, "\x1b[31m") {
			t.Errorf("%q: what a session wrote reached the terminal: %q", args, colours)
		}
		if painted := strings.Contains(colours, "\x1b[2m"); painted != (args[0] == "log" && args[1%len(args)] != "--json") {
			t.Errorf("%q: painted = %v: %q", args, painted, colours)
		}
	}
	if board, _ := onTerminal(t, 100, getenv, "board", "--all"); !strings.Contains(board, "  in ~/app") {
		t.Errorf("the home folder is not short: %q", board)
	}
}
