//go:build linux

package partyline

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"switchboard/e2e/model"
	"switchboard/e2e/rig"
	"switchboard/internal/exchange"
)

// What other programs publish dials a session, from the moment the file is
// renamed to the moment it is removed.
func TestMetadata(t *testing.T) {
	t.Parallel()
	w := rig.NewWorld(t)
	a, b := startAs(t, w, "a"), startAs(t, w, "b")
	const pr = "https://github.com/example/project/pull/42"
	publisher(t, w, `{"ticket": "E-123", "pullRequests": ["`+pr+`", "PR 43"],
		"name": "impostor", "ID": "impostor", "sessionId": ["impostor"], "pid": "1", "cwd": "/impostor", "workspace": "impostor"}`, "put", "b-id", "tracker")

	// Values dial, arrays by each of theirs; core names can't be taken.
	for _, locator := range []string{"E-123", pr, "PR 43"} {
		if o := call(t, w, a, send("by "+locator, locator)); o.IsError {
			t.Errorf("%s: %s", locator, o.Text)
		}
	}
	emptied(t, store(t, w), "b-id")
	once(t, b.SessionFile(), "> by E-123", "> by "+pr, "> by PR 43")
	for _, locator := range []string{"impostor", "1", "/impostor", "ticket", "E-12", "e-123", "PR"} {
		refused(t, locator, call(t, w, a, send("x", locator)), fmt.Sprintf("no live session matches %q", locator))
	}
	book := call(t, w, a, list())
	contains(t, "the phonebook", book.Text, "ticket E-123", `"E-123"`, `"`+pr+`"`, `"PR 43"`)
	if strings.Contains(book.Text, "impostor") {
		t.Errorf("a reserved name is in the phonebook:\n%s", book.Text)
	}

	// The publisher that sorts first has the key, as long as it is there.
	publisher(t, w, `{"ticket": ["E-999"], "branch": "fix"}`, "put", "b-id", "aaa")
	publisher(t, w, `{"ticket": "E-000", "branch": "other", "zone": "last"}`, "put", "b-id", "zzz")
	for locator, dials := range map[string]bool{"E-999": true, "fix": true, "last": true, "PR 43": true, "E-123": false, "E-000": false, "other": false} {
		if o := call(t, w, a, list(locator)); (len(o.listed()) == 1) != dials {
			t.Errorf("list %s finds %v", locator, o.listed())
		}
	}
	publisher(t, w, `{"branch": "fix"}`, "put", "b-id", "aaa") // a file replaced
	if o := call(t, w, a, list("E-123")); !slices.Equal(o.listed(), []string{"b-id"}) {
		t.Errorf("after the first publisher gave up the key, list E-123 finds %v", o.listed())
	}
	// One ticket on both: a party, without the caller.
	publisher(t, w, `{"ticket": "E-123"}`, "put", "a-id", "tracker")
	o := call(t, w, a, broadcast("to the ticket", "E-123"))
	if !slices.Equal(o.recipients(), []string{"b-id"}) || !o.Details.SelfExcluded || o.count("E-123") != 2 {
		t.Errorf("a broadcast to the ticket: %+v", o)
	}
	emptied(t, store(t, w), "b-id")

	// Without the file nothing is left of the values.
	for _, name := range []string{"aaa", "tracker", "zzz"} {
		publisher(t, w, "", "drop", "b-id", name)
	}
	refused(t, "a removed ticket", call(t, w, a, send("x", "last")), `"last"`)
	for _, s := range call(t, w, a, list()).Details.Sessions {
		if delete(s.Values, "callsign"); s.ID == "b-id" && len(s.Values) > 0 {
			t.Errorf("values without a publisher: %v", s.Values)
		}
	}
}

// What doesn't keep to the contract is skipped, file by file, and doctor says
// which and why.
func TestBadMetadata(t *testing.T) {
	t.Parallel()
	w := rig.NewWorld(t)
	a := startAs(t, w, "a")
	startAs(t, w, "b")
	gone := startAs(t, w, "gone")
	padded := func(size int) string {
		const frame = `{"size":"v","pad":""}`
		return strings.Replace(frame, `"pad":"`, `"pad":"`+strings.Repeat("x", size-len(frame)), 1)
	}
	publisher(t, w, `{"good": "G-1", "empty": [], "blank": " "}`, "put", "b-id", "good")
	publisher(t, w, padded(exchange.MaxContribution), "put", "b-id", "exact")
	bad := map[string]string{
		"big": strings.Replace(padded(exchange.MaxContribution+1), `"v"`, `"B-1"`, 1)[:exchange.MaxContribution+1], "cut": `{"cut": "B-2"`, "list": `["B-3"]`, "nested": `{"nested": {"a": "B-4"}, "ok": "B-4"}`,
		"number": `{"number": 5, "ok": "B-5"}`, "mixed": `{"mixed": ["B-6", 6]}`, "null": `{"null": null, "ok": "B-7"}`, "text": `B-8`, "nothing": ``, "two": `{"a":"B-9"} {"b":"B-9"}`,
	}
	for name, values := range bad {
		publisher(t, w, values, "put", "b-id", name)
	}
	publisher(t, w, `{"ticket": "N-1"}`, "put", "never-was", "tracker")
	publisher(t, w, `{"ticket": "N-2"}`, "put", "gone-id", "tracker")
	if o := call(t, w, a, list("N-2")); len(o.listed()) != 1 {
		t.Errorf("the ticket of a live session finds %v", o.listed())
	}
	gone.Quit()

	for _, good := range []string{"G-1", "v"} {
		if o := call(t, w, a, list(good)); !slices.Equal(o.listed(), []string{"b-id"}) {
			t.Errorf("beside bad files, list %s finds %v", good, o.listed())
		}
	}
	for _, locator := range []string{"B-1", "B-2", "B-3", "B-4", "B-5", "B-6", "B-7", "B-8", "B-9", "5", "6", "N-1", "N-2", " "} {
		if o := call(t, w, a, broadcast("x", locator)); !o.IsError {
			t.Errorf("%q dials: %s", locator, o.Text)
		}
	}
	report := doctor(t, w)
	for name := range bad {
		contains(t, "doctor", report, "metadata/b-id/"+name+".json: ")
	}
	contains(t, "doctor", report, "big.json: larger than 64 KB", "nested.json: malformed", "metadata/never-was: about a session that is not there", "metadata/gone-id: about a session")
	for _, name := range []string{"good", "exact"} {
		if strings.Contains(report, "/"+name+".json") {
			t.Errorf("doctor lists %s:\n%s", name, report)
		}
	}
	// A resume brings the values back: they belong to the session.
	startAs(t, w, "gone")
	if o := call(t, w, a, list("N-2")); !slices.Equal(o.listed(), []string{"gone-id"}) {
		t.Errorf("after the resume, list N-2 finds %v", o.listed())
	}
	// What is neither a file nor JSON by name does no harm.
	dir := filepath.Join(root(w), "metadata", "b-id")
	if err := os.Mkdir(filepath.Join(dir, "folder.json"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("good.json", filepath.Join(dir, "link.json")); err != nil {
		t.Fatal(err)
	}
	if o := call(t, w, a, list("G-1")); len(o.listed()) != 1 {
		t.Errorf("beside a folder and a link, list G-1 finds %v", o.listed())
	}
	contains(t, "doctor", doctor(t, w), "b-id/folder.json: ", "b-id/link.json: ")
}

// A session is dialled by its place in cmux, tmux and on its terminal.
func TestTerminalHandles(t *testing.T) {
	t.Parallel()
	w := rig.NewWorld(t)
	env := map[string]string{
		"CMUX_WORKSPACE_ID": "A32F82F2-DEA3-41ED-8B0B-9DFCD016C110", "CMUX_SURFACE_ID": "surface:7", "CMUX_PANEL_ID": "panel:2",
		"CMUX_PANE_ID": "pane:3", "TMUX_PANE": "%17",
	}
	var set []string
	for k, v := range env {
		set = append(set, k+"="+v)
	}
	a := startAs(t, w, "a")
	b := startAs(t, w, "b", set...)
	screen := w.StartTUI(t, rig.Options{Session: "screen", Args: []string{"--session-id", "screen-id"}}, 100, 30)
	onRoster(t, w, "screen-id")
	tty, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/0", screen.PID))
	if err != nil {
		t.Fatal(err)
	}
	var tools []model.Tool
	var want []string
	for k, v := range env {
		tools = append(tools, send("by "+k+".", v))
		want = append(want, "> by "+k+".")
	}
	w.Model.Script("a", model.Step{Tools: append(tools, send("by tty.", tty))}, model.Step{Text: "done"})
	mark := a.Mark()
	a.Run("call")
	for _, o := range outcomes(t, a.Since(mark)) {
		if o.IsError {
			t.Error(o.Text)
		}
	}
	emptied(t, store(t, w), "b-id")
	once(t, b.SessionFile(), want...)
	if got := w.Model.WaitRequest(t, "screen", 1, rig.Watchdog); shown(got, "> by tty.") != 1 {
		t.Errorf("the session on %s was not called:\n%s", tty, got.Transcript())
	}
	book := call(t, w, a, list("b"))
	for k, v := range env {
		contains(t, "the phonebook's selectors for "+k, book.Text, fmt.Sprintf("%q", v))
	}
	contains(t, "the phonebook", book.Text, "workspace A32F82F2", "surface surface:7", "panel panel:2", "pane pane:3", "tmuxPane %17")
}
