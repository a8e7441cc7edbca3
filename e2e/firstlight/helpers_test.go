//go:build linux

// Package firstlight holds the end-to-end tests of sessions that find and
// call each other: real Pi processes, the real program, a scripted model.
package firstlight

import (
	"encoding/json"
	"fmt"
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

// touchtone is a scripted call of our tool.
func touchtone(args map[string]any) model.Step {
	return model.Step{Tools: []model.Tool{{Name: "touchtone", Args: args}}}
}

func send(to, message string) model.Step {
	return touchtone(map[string]any{"action": "send", "to": to, "message": message})
}

func bash(command string) model.Step {
	return model.Step{Tools: []model.Tool{{Name: "bash", Args: map[string]any{"command": command}}}}
}

// roster reads `switchboard list --json`: id to state.
func roster(t *testing.T, w *rig.World) map[string]string {
	t.Helper()
	out, stderr, code := w.Switchboard("list", "--json")
	if code != 0 {
		t.Fatalf("switchboard list: exit %d: %s", code, stderr)
	}
	var list struct {
		Sessions []struct{ ID, State string } `json:"sessions"`
	}
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		t.Fatalf("switchboard list --json: %v in %q", err, out)
	}
	live := make(map[string]string)
	for _, s := range list.Sessions {
		live[s.ID] = s.State
	}
	return live
}

// listed waits until sessions are on the roster.
func listed(t *testing.T, w *rig.World, ids ...string) {
	t.Helper()
	rig.Eventually(t, rig.Watchdog, fmt.Sprintf("%v on the roster", ids), func() bool {
		live := roster(t, w)
		for _, id := range ids {
			if _, ok := live[id]; !ok {
				return false
			}
		}
		return true
	})
}

// start starts a Pi and waits until it is on the roster.
func start(t *testing.T, w *rig.World, o rig.Options) *rig.Pi {
	t.Helper()
	p := w.StartPi(t, o)
	listed(t, w, p.SessionID())
	return p
}

// store opens the world's exchange, as another program would.
func store(t *testing.T, w *rig.World) *dirstore.Store {
	t.Helper()
	s, err := dirstore.Open(filepath.Join(w.Home, ".local", "state", "pi", "touchtone"), "test")
	if err != nil {
		t.Fatal(err)
	}
	return s
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

func key(session string) exchange.SessionKey {
	return exchange.SessionKey{Host: exchange.PiHost, ID: session}
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
	rig.Eventually(t, rig.Watchdog, "an empty inbox", func() bool { return waiting(t, s, session) == 0 })
}

// count says how often a model request shows text.
func count(r model.Request, text string) int { return strings.Count(r.Transcript(), text) }

// texts numbers n messages.
func texts(prefix string, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("%s-%02d.", prefix, i+1)
	}
	return out
}

// once checks that a request shows each text exactly once, in order.
func once(t *testing.T, r model.Request, want []string) {
	t.Helper()
	at := -1
	for _, text := range want {
		if n := count(r, text); n != 1 {
			t.Errorf("the model was shown %q %d times, want once:\n%s", text, n, r.Transcript())
		}
		i := strings.Index(r.Transcript(), text)
		if i < at {
			t.Errorf("%q came before the one sent ahead of it", text)
		}
		at = i
	}
}

// handedOver checks that a session file holds each text in exactly one of our
// messages.
func handedOver(t *testing.T, file string, want []string) {
	t.Helper()
	var all strings.Builder
	for _, e := range rig.Entries(t, file) {
		if e.Type == "custom_message" && e.CustomType == "switchboard" {
			all.WriteString(e.Text + "\n")
		}
	}
	for _, text := range want {
		if n := strings.Count(all.String(), text); n != 1 {
			t.Errorf("the transcript holds %q %d times, want once", text, n)
		}
	}
}

// testdata is the path of a file beside the tests.
func testdata(t *testing.T, name string) string {
	t.Helper()
	return filepath.Join(rig.ModuleRoot(t), "e2e", "firstlight", "testdata", name)
}
