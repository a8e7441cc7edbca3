//go:build linux

package beacon

import (
	"testing"

	"switchboard/e2e/model"
	"switchboard/e2e/rig"
)

// In the terminal Pi keeps what is typed during a compaction and sends it
// after: it goes on by itself, so it must not be idle in between.
func TestTypedDuringCompaction(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		summary model.Step
		want    []string
	}{
		{"it succeeds", summary, []string{"compacting manual", "working", "idle"}},
		{"it fails", failing(400, "bad request"), []string{"compacting manual", "working", "idle"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := rig.NewWorld(t)
			w.Settings(map[string]any{"compaction": map[string]any{"reserveTokens": 4000, "keepRecentTokens": 2000}})
			gate := make(chan struct{})
			c.summary.Wait = gate
			w.Model.Script("main", model.Step{Text: long})
			w.Model.ScriptSummary("main", c.summary)
			u := w.StartTUI(t, rig.Options{Args: []string{"--model", "rig/scripted-small"}}, 100, 30)
			lit(t, w, u.PID)
			u.Submit("one")
			w.Model.WaitRequest(t, "main", 1, rig.Watchdog)
			sub := subscribe(t, w, u.PID)
			u.Submit("/compact")
			sub.await(1)
			u.Submit("typed meanwhile")
			u.WaitScreen(": typed meanwhile", rig.Watchdog) // "Steering: …"
			close(gate)
			w.Model.WaitRequest(t, "main", 2, rig.Watchdog)
			sub.expect(c.want)
		})
	}
}
