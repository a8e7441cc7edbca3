package pihost

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// What retryWatch makes of Pi's events, in the orders that pi-notes records. A
// step is what the extension sends: an event, or a look after one. Expected is
// each retry that it announces: "attempt/max delay error".
func TestRetryWatch(t *testing.T) {
	failed := hostEvent{Type: "agent_end", Error: true}
	ended := hostEvent{Type: "agent_end"}
	again := hostEvent{Type: "look", After: "agent_end", Leaf: "context_edit", Message: "429: slow down\n(really)"}
	begins := hostEvent{Type: "agent_start"}
	turn := hostEvent{Type: "turn_start"}
	settled := hostEvent{Type: "agent_settled", Idle: true}
	boundary := hostEvent{Type: "boundary"}
	step := func(typ string) hostEvent { return hostEvent{Type: typ} }
	look := func(after, leaf string) hostEvent {
		return hostEvent{Type: "look", After: after, Leaf: leaf, Message: "m"}
	}
	n := func(v int) *int { return &v }

	tests := []struct {
		name     string
		settings retrySettings
		steps    []hostEvent
		want     string
	}{
		{
			"two retries, then success",
			retrySettings{},
			[]hostEvent{begins, turn, failed, again, begins, failed, again, begins, ended, look("agent_end", "message"), boundary, settled},
			"1/3 2s 429: slow down (really), 2/3 4s 429: slow down (really)",
		},
		{
			"delays double up to Pi's bound",
			retrySettings{MaxRetries: n(7)},
			[]hostEvent{failed, again, begins, failed, again, begins, failed, again, begins, failed, again, begins, failed, again, begins, failed, again, begins, failed, again},
			"1/7 2s, 2/7 4s, 3/7 8s, 4/7 16s, 5/7 32s, 6/7 1m0s, 7/7 1m0s",
		},
		{
			"delays by settings",
			retrySettings{MaxRetries: n(4), BaseMS: n(300), MaxDelayMS: n(1000)},
			[]hostEvent{failed, again, begins, failed, again, begins, failed, again},
			"1/4 300ms, 2/4 600ms, 3/4 1s",
		},
		{
			"no delay, settings that make no sense",
			retrySettings{MaxRetries: n(-1), BaseMS: n(0), MaxDelayMS: n(-5)},
			[]hostEvent{failed, again},
			"1/3 0s",
		},
		{
			"exhausted: the last failure is final",
			retrySettings{MaxRetries: n(1), BaseMS: n(100)},
			[]hostEvent{begins, failed, again, begins, failed, boundary, settled, look("agent_settled", "message"), begins, failed, again},
			"1/1 100ms, 1/1 100ms",
		},
		{
			"an error that isn't retried: it settles before the look",
			retrySettings{},
			[]hostEvent{begins, failed, boundary, settled, look("agent_settled", "message")},
			"",
		},
		{
			"not retried, and the look says that it follows directly",
			retrySettings{},
			[]hostEvent{begins, failed, look("agent_end", "message")},
			"",
		},
		{
			"a boundary in between, whatever the last entry is",
			retrySettings{},
			[]hostEvent{begins, failed, boundary, again},
			"",
		},
		{
			"a settling in between",
			retrySettings{},
			[]hostEvent{begins, failed, settled, again},
			"",
		},
		{
			"overflow: a compaction in between, which edits the context too",
			retrySettings{},
			[]hostEvent{begins, failed, step("session_before_compact"), again, step("session_compact"), look("session_compact", "context_edit"), begins, ended},
			"",
		},
		{
			"success",
			retrySettings{},
			[]hostEvent{begins, ended, again, boundary, settled},
			"",
		},
		{
			"context edited without a failure",
			retrySettings{},
			[]hostEvent{begins, look("turn_end", "context_edit"), turn, again},
			"",
		},
		{
			"aborted in the backoff: the next run counts anew",
			retrySettings{},
			[]hostEvent{begins, failed, again, {Type: "agent_settled", Aborted: true}, begins, failed, again},
			"1/3 2s, 1/3 2s",
		},
		{
			"a success in between counts anew",
			retrySettings{},
			[]hostEvent{begins, failed, again, begins, ended, begins, failed, again},
			"1/3 2s, 1/3 2s",
		},
		{
			"one look announces one retry",
			retrySettings{},
			[]hostEvent{begins, failed, again, again},
			"1/3 2s",
		},
		{
			"what else happens between failure and look",
			retrySettings{},
			[]hostEvent{
				begins, failed, step("tool_execution_end"), step("session_info_changed"), step("model_select"),
				step("ui_prompt_start"), step("ui_prompt_end"), look("ui_prompt_end", "context_edit"), again,
			},
			"1/3 2s",
		},
	}
	for _, tt := range tests {
		w := retryWatch{settings: tt.settings}
		var got []string
		for _, e := range tt.steps {
			if r, ok := w.see(e); ok {
				s := fmt.Sprintf("%d/%d %s", r.Attempt, r.Max, r.Delay)
				if strings.Contains(tt.want, "slow down") {
					s += " " + r.Error
				}
				got = append(got, s)
			}
		}
		if got := strings.Join(got, ", "); got != tt.want {
			t.Errorf("%s: retries are %q, want %q", tt.name, got, tt.want)
		}
	}
}

// However often, the delay stays one.
func TestRetryDelayBound(t *testing.T) {
	var w retryWatch
	for i := range 200 {
		w.see(hostEvent{Type: "agent_end", Error: true})
		r, ok := w.see(hostEvent{Type: "look", After: "agent_end", Leaf: "context_edit", Message: strings.Repeat("x", 10_000)})
		if !ok || r.Delay <= 0 || r.Delay > time.Minute || len(r.Error) > 300 {
			t.Fatalf("retry %d is %+v, %v", i+1, r, ok)
		}
	}
}
