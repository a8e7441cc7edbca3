//go:build linux

package beacon

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"switchboard/e2e/model"
	"switchboard/e2e/rig"
	"switchboard/internal/beacon"
	"switchboard/internal/lifecycle"
)

// The worked example of spec/beacon, as written there, inside Pi's own bash.
func TestWorkedExample(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"ps", "nc", "python3"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("the example uses %s: %v", program, err)
		}
	}
	script, err := os.ReadFile(testdata(t, "example.sh"))
	if err != nil {
		t.Fatal(err)
	}
	w := rig.NewWorld(t)
	// Not even a mention in its environment of where Pi's folder is.
	p := start(t, w, rig.Options{})
	w.Model.Script("main", bash(string(script)), model.Step{Text: "done"})
	p.Mark()
	p.Send(map[string]any{"type": "prompt", "message": "look at yourself"})
	began := p.Wait(rig.OfType("tool_execution_start"), rig.Watchdog)
	ended := p.Wait(rig.OfType("tool_execution_end"), rig.Watchdog)
	t.Logf("the example took %v", ended.At-began.At)
	if took := ended.At - began.At; took > 10*time.Second {
		t.Errorf("the example took %v", took)
	}
	p.Settled()
	said := w.Model.Turns("main")[1].Last().Text

	for _, name := range []string{fmt.Sprintf("%d.json", p.PID), fmt.Sprintf("%d.sock", p.PID)} {
		if !strings.Contains(said, name) {
			t.Errorf("step 1 does not list %s:\n%s", name, said)
		}
	}
	var passive beacon.Document
	for line := range strings.Lines(said) {
		if strings.HasPrefix(line, `{"schema"`) {
			if err := json.Unmarshal([]byte(line), &passive); err != nil {
				t.Errorf("step 3: %v in %s", err, line)
			}
		}
	}
	active := pretty(t, said)
	for step, d := range map[string]beacon.Document{"3": passive, "4": active} {
		if d.Schema != "pi-beacon/v1" || d.PID != p.PID || d.State != lifecycle.Working || d.SessionID != p.SessionID() {
			t.Errorf("step %s: schema %q, pid %d, state %s, session %s", step, d.Schema, d.PID, d.State, d.SessionID)
		}
	}
	if active.Detail.Tool != "bash" || active.UpdatedAt < passive.UpdatedAt {
		t.Errorf("step 4: tool %q, updated %d ms after step 3", active.Detail.Tool, active.UpdatedAt-passive.UpdatedAt)
	}

	out, err := w.Shell(fmt.Sprintf(`echo '{"type":"get_state"}' | nc -U ~/.pi/agent/beacon/%d.sock | python3 -m json.tool`, p.PID))
	if err != nil {
		t.Fatalf("after the turn: %v: %s", err, out)
	}
	if d := pretty(t, out); d.State != lifecycle.Idle {
		t.Errorf("after the turn: %s, want idle", say(d))
	}
}

// pretty reads what json.tool printed of the answer.
func pretty(t *testing.T, said string) beacon.Document {
	t.Helper()
	_, text, _ := strings.Cut("\n"+said, "\n{\n")
	var r struct {
		Type, Command string
		Success       bool
		Data          beacon.Document
	}
	if err := json.NewDecoder(strings.NewReader("{\n" + text)).Decode(&r); err != nil {
		t.Fatalf("the answer: %v in:\n%s", err, said)
	}
	if r.Type != "response" || r.Command != "get_state" || !r.Success {
		t.Errorf("the answer is a %q to %q, success %v", r.Type, r.Command, r.Success)
	}
	return r.Data
}
