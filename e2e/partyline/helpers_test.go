//go:build linux

// Package partyline holds the end-to-end tests of touchtone beyond one call to
// one session: metadata, terminal handles, list, broadcast, what is on deck,
// and what hostile senders write. Real Pi processes, the real program, a
// scripted model.
package partyline

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"switchboard/e2e/model"
	"switchboard/e2e/rig"
	"switchboard/internal/delivery"
	"switchboard/internal/exchange"
	"switchboard/internal/exchange/dirstore"
)

func touchtone(args map[string]any) model.Tool { return model.Tool{Name: "touchtone", Args: args} }

func list(selectors ...string) model.Tool {
	return touchtone(map[string]any{"action": "list", "selectors": selectors})
}

func send(message string, selectors ...string) model.Tool {
	return touchtone(map[string]any{"action": "send", "selectors": selectors, "message": message})
}

func broadcast(message string, selectors ...string) model.Tool {
	return touchtone(map[string]any{"action": "broadcast", "selectors": selectors, "message": message})
}

// until is a step in which the agent is busy with a tool until the test writes
// a file.
func until(file string) model.Step {
	return model.Step{Tools: []model.Tool{{Name: "bash", Args: map[string]any{"command": fmt.Sprintf("until [ -e %s ]; do sleep 0.02; done", file)}}}}
}

// party is a sessions' name in details.
type party struct {
	ID     string              `json:"id"`
	Name   string              `json:"name"`
	Self   bool                `json:"self"`
	Values map[string][]string `json:"values"`
}

// outcome is what a call of touchtone came to: for the model and the screen.
type outcome struct {
	Text    string
	IsError bool
	Details struct {
		Action    string   `json:"action"`
		Error     string   `json:"error"`
		Message   string   `json:"message"`
		Sessions  []party  `json:"sessions"`
		Unmatched []string `json:"unmatched"`
		Selectors []string `json:"selectors"`
		Matches   []struct {
			Selector string `json:"selector"`
			Count    int    `json:"count"`
		} `json:"matches"`
		Delivered []struct {
			Entry party  `json:"entry"`
			ID    string `json:"id"`
			Left  bool   `json:"left"`
		} `json:"delivered"`
		Failed        []json.RawMessage `json:"failed"`
		Indeterminate []json.RawMessage `json:"indeterminate"`
		SelfExcluded  bool              `json:"selfExcluded"`
	}
}

// recipients are the sessions in whose inboxes a broadcast is, in order.
func (o outcome) recipients() (ids []string) {
	for _, d := range o.Details.Delivered {
		ids = append(ids, d.Entry.ID)
	}
	return ids
}

// count is how many sessions a broadcast's selector matched, -1 if it isn't
// named.
func (o outcome) count(selector string) int {
	for _, m := range o.Details.Matches {
		if m.Selector == selector {
			return m.Count
		}
	}
	return -1
}

// listed are the ids of the sessions that a list names.
func (o outcome) listed() (ids []string) {
	for _, s := range o.Details.Sessions {
		ids = append(ids, s.ID)
	}
	return ids
}

// outcomes lists what the calls of touchtone among events came to.
func outcomes(t *testing.T, events []rig.Event) (out []outcome) {
	t.Helper()
	for _, e := range events {
		if e.Type != "tool_execution_end" || e.Str("toolName") != "touchtone" {
			continue
		}
		var end struct {
			IsError bool
			Result  struct {
				Content []struct{ Text string }
				Details json.RawMessage
			}
		}
		if err := json.Unmarshal(e.Raw, &end); err != nil {
			t.Fatalf("%v in %s", err, e)
		}
		o := outcome{IsError: end.IsError}
		for _, c := range end.Result.Content {
			o.Text += c.Text
		}
		if len(end.Result.Details) > 0 {
			if err := json.Unmarshal(end.Result.Details, &o.Details); err != nil {
				t.Fatalf("details: %v in %s", err, e)
			}
		}
		out = append(out, o)
	}
	return out
}

// call makes an idle Pi call touchtone, and returns what the model is told.
func call(t *testing.T, w *rig.World, p *rig.Pi, tool model.Tool) outcome {
	t.Helper()
	w.Model.Script(p.Session, model.Step{Tools: []model.Tool{tool}}, model.Step{Text: "done"})
	mark := p.Mark()
	p.Run("call")
	all := outcomes(t, p.Since(mark))
	if len(all) != 1 {
		t.Fatalf("%d results of one call", len(all))
	}
	turns := w.Model.Turns(p.Session)
	if shown := turns[len(turns)-1].Transcript(); !strings.Contains(shown, all[0].Text) {
		t.Errorf("the model is not shown the result %q", all[0].Text)
	}
	return all[0]
}

// contains checks that a text has all parts.
func contains(t *testing.T, what, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%s lacks %q:\n%s", what, part, text)
		}
	}
}

// refused checks that a call failed with an example of one that works.
func refused(t *testing.T, what string, o outcome, parts ...string) {
	t.Helper()
	if !o.IsError {
		t.Errorf("%s went through:\n%s", what, o.Text)
	}
	contains(t, what, o.Text, append(parts, "Example of a call that works: touchtone {")...)
}

// start starts a Pi and waits until it is on the roster.
func start(t *testing.T, w *rig.World, o rig.Options) *rig.Pi {
	t.Helper()
	p := w.StartPi(t, o)
	onRoster(t, w, p.SessionID())
	return p
}

// startAs starts a Pi with a session id and a name, both the script's.
func startAs(t *testing.T, w *rig.World, name string, env ...string) *rig.Pi {
	t.Helper()
	return start(t, w, rig.Options{Session: name, Args: []string{"--session-id", name + "-id", "--name", name}, Env: env})
}

func onRoster(t *testing.T, w *rig.World, id string) {
	t.Helper()
	s := store(t, w)
	rig.Eventually(t, rig.Watchdog, id+" on the roster", func() bool {
		_, err := s.Session(key(id))
		return err == nil
	})
}

// root is where the world's sessions meet.
func root(w *rig.World) string { return filepath.Join(w.Home, ".local", "state", "pi", "touchtone") }

// store opens the world's exchange, as another program would.
func store(t *testing.T, w *rig.World) *dirstore.Store {
	t.Helper()
	s, err := dirstore.Open(root(w), "test")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func key(session string) exchange.SessionKey {
	return exchange.SessionKey{Host: exchange.PiHost, ID: session}
}

// post puts a message from a peer into a session's inbox.
func post(t *testing.T, s *dirstore.Store, session, text string) {
	t.Helper()
	err := s.Post(key(session), delivery.Message{
		ID: exchange.NewID(time.Now()), Kind: delivery.Call, Text: text, Sent: time.Now(),
		From: delivery.Sender{Session: "peer-1", Name: "peer"},
	})
	if err != nil {
		t.Fatal(err)
	}
}

// waiting is how many messages a session's inbox holds.
func waiting(t *testing.T, s *dirstore.Store, session string) int {
	t.Helper()
	ms, err := s.Waiting(key(session))
	if err != nil {
		t.Fatal(err)
	}
	return len(ms)
}

// emptied waits until a session's inbox is empty: all is in the transcript.
func emptied(t *testing.T, s *dirstore.Store, session string) {
	t.Helper()
	rig.Eventually(t, rig.Watchdog, "an empty inbox of "+session, func() bool { return waiting(t, s, session) == 0 })
}

// received is what one of our messages in a session file says.
func received(t *testing.T, file string) (texts string, ids []string) {
	t.Helper()
	var all strings.Builder
	for _, e := range rig.Entries(t, file) {
		if e.Type != "custom_message" || e.CustomType != "switchboard" {
			continue
		}
		all.WriteString(e.Text + "\n")
		var d delivery.Details
		if err := json.Unmarshal(e.Details, &d); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, d.IDs...)
	}
	return all.String(), ids
}

// once checks that a session file holds each text in exactly one of our
// messages.
func once(t *testing.T, file string, want ...string) {
	t.Helper()
	all, _ := received(t, file)
	for _, text := range want {
		if n := strings.Count(all, text); n != 1 {
			t.Errorf("the transcript holds %q %d times, want once", text, n)
		}
	}
}

// shown counts how often a model request shows a text.
func shown(r model.Request, text string) int { return strings.Count(r.Transcript(), text) }

// onDeck reads on-deck/<session-id>.json: 0 without one.
func onDeck(t *testing.T, w *rig.World, session string) int {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root(w), "on-deck", session+".json"))
	if errors.Is(err, fs.ErrNotExist) {
		return 0
	}
	var d struct{ Count int }
	if err == nil {
		err = json.Unmarshal(data, &d)
	}
	if err != nil {
		t.Fatal(err)
	}
	if d.Count == 0 {
		t.Error("a deck without calls has a file")
	}
	return d.Count
}

// publisher runs the shell script that knows only the spec.
func publisher(t *testing.T, w *rig.World, values, verb, session, name string) {
	t.Helper()
	cmd := exec.Command("sh", testdata(t, "publisher.sh"), verb, session, name)
	cmd.Env, cmd.Dir = w.Env(""), w.Dir
	cmd.Stdin = strings.NewReader(values)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("publisher %s %s %s: %v\n%s", verb, session, name, err, out)
	}
}

// doctor lists the findings of `switchboard doctor`, one a line.
func doctor(t *testing.T, w *rig.World) string {
	t.Helper()
	out, stderr, _ := w.Switchboard("doctor", "--json") // what it says of Pi here is another test's
	var d struct {
		Checks []struct{ Check, Verdict, Text string }
	}
	if err := json.Unmarshal([]byte(out), &d); err != nil {
		t.Fatalf("doctor: %v in %q %q", err, out, stderr)
	}
	var lines strings.Builder
	for _, c := range d.Checks {
		fmt.Fprintf(&lines, "%s %s: %s\n", c.Verdict, c.Check, c.Text)
	}
	return lines.String()
}

// testdata is the path of a file beside the tests.
func testdata(t *testing.T, name string) string {
	t.Helper()
	return filepath.Join(rig.ModuleRoot(t), "e2e", "partyline", "testdata", name)
}
