//go:build linux

package beacon

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"switchboard/e2e/model"
	"switchboard/e2e/rig"
	"switchboard/internal/beacon"
	"switchboard/internal/lifecycle"
)

// play is one Pi, its world and its subscriber.
type play struct {
	t   *testing.T
	w   *rig.World
	p   *rig.Pi
	sub *subscriber
}

func (x *play) query() beacon.Document { x.t.Helper(); return query(x.t, x.w, x.p.PID) }

// during runs f once the nth transition was heard.
func (x *play) during(n int, f func()) { x.t.Helper(); x.sub.await(n); f() }

// compact asks for a compaction and returns when it is over.
func (x *play) compact() rig.Response {
	x.t.Helper()
	return x.p.Cmd(map[string]any{"type": "compact"}, rig.Watchdog)
}

// long is a text that a compaction finds worth while.
var long = strings.Repeat("lorem ipsum dolor ", 900) // about 4,000 tokens

// full is the usage of an answer that leaves the small model little room.
var full = model.Usage{Prompt: 17500, Completion: 20}

var (
	overflow = model.Step{Status: 400, Message: "prompt is too long: 31000 tokens > 20000 maximum"}
	summary  = model.Step{Text: "## Goal\nsummary"}
)

func failing(status int, message string) model.Step {
	return model.Step{Status: status, Message: message}
}

// cases are the ways in which Pi gets through a prompt or a compaction: what
// the model does, what the human does, and each transition that a subscriber
// hears of, from idle to idle.
var cases = []struct {
	name     string
	settings map[string]any
	env      []string
	small    bool // the model with the small context, and one answer that fills it
	turns    []model.Step
	summary  []model.Step
	do       func(x *play) // nil means one prompt
	want     []string
	error    string // part of what each retry is for
}{
	{
		name: "plain prompt",
		want: []string{"working", "idle"},
	},
	{
		name: "tool calls",
		turns: []model.Step{
			{Tools: []model.Tool{
				{Name: "read", Args: map[string]any{"path": "a.txt"}},
				{Name: "bash", Args: map[string]any{"command": untilFile("go")}},
			}},
			bash("true"),
			{Text: "done"},
		},
		do: func(x *play) {
			x.p.Prompt("work")
			d := until(x.t, x.w, x.p.PID, "a long tool", func(d beacon.Document) bool { return d.Detail.Tool == "bash" })
			if ago := time.Since(time.UnixMilli(d.Detail.ToolSince)); d.State != lifecycle.Working || ago < 0 || ago > rig.Watchdog {
				x.t.Errorf("in a tool: %s, for %v", say(d), ago)
			}
			x.w.Write("go", "")
			x.p.Settled()
			if d := x.query(); d.Detail.Tool != "" || d.Detail.ToolSince != 0 {
				x.t.Errorf("after the tools: %q since %d", d.Detail.Tool, d.Detail.ToolSince)
			}
		},
		want: []string{"working", "idle"},
	},
	{
		name:  "a tool that fails",
		turns: []model.Step{bash("exit 3"), {Text: "done"}},
		want:  []string{"working", "idle"},
	},
	{
		name:  "abort while streaming",
		turns: []model.Step{{Text: strings.Repeat("x", 200), Chunks: 200, ChunkDelay: 50 * time.Millisecond}},
		do: func(x *play) {
			x.p.Prompt("work")
			x.p.Wait(rig.OfType("message_update"), rig.Watchdog)
			x.p.Abort()
		},
		want: []string{"working", "idle"},
	},
	{
		name:  "abort in a tool",
		turns: []model.Step{bash("sleep 20")},
		do: func(x *play) {
			x.p.Prompt("work")
			until(x.t, x.w, x.p.PID, "a tool", func(d beacon.Document) bool { return d.Detail.Tool == "bash" })
			x.p.Abort()
		},
		want: []string{"working", "idle"},
	},
	{
		name:  "abort with a text queued",
		turns: []model.Step{{Hang: true}},
		do: func(x *play) {
			x.p.Prompt("work")
			x.p.Cmd(map[string]any{"type": "follow_up", "message": "and then"}, rig.Watchdog)
			x.p.Abort()
			x.p.Settled()
			// Pi keeps it for the next run, and starts none.
			if d := x.query(); !d.Detail.PendingMessages {
				x.t.Errorf("with a text left in the queue: %+v", d.Detail)
			}
		},
		want: []string{"working", "idle"},
	},
	{
		name:  "steer",
		turns: []model.Step{bash(untilFile("go")), {Text: "steered"}},
		do: func(x *play) {
			x.p.Prompt("work")
			x.p.Wait(rig.OfType("tool_execution_start"), rig.Watchdog)
			x.p.Cmd(map[string]any{"type": "steer", "message": "change course"}, rig.Watchdog)
			if d := x.query(); !d.Detail.PendingMessages || d.Detail.PendingCount != 0 {
				x.t.Errorf("with a steer waiting: %+v", d.Detail)
			}
			x.w.Write("go", "")
			x.p.Settled()
			if d := x.query(); d.Detail.PendingMessages {
				x.t.Errorf("after the steer: %+v", d.Detail)
			}
		},
		want: []string{"working", "idle"},
	},
	{
		name:  "queued follow-up",
		turns: []model.Step{{Text: "first", Delay: 300 * time.Millisecond}, {Text: "second"}},
		do: func(x *play) {
			x.p.Prompt("work")
			x.p.Cmd(map[string]any{"type": "follow_up", "message": "and then"}, rig.Watchdog)
			x.p.Settled()
			if n := len(x.w.Model.Turns("main")); n != 2 {
				x.t.Errorf("%d requests, want 2", n)
			}
		},
		want: []string{"working", "idle"},
	},
	{
		// Pi may take both, refuse the second, and then call itself idle while
		// the first still runs.
		name:  "two prompts at once",
		turns: []model.Step{{Text: "slow", Delay: 300 * time.Millisecond}},
		do: func(x *play) {
			x.p.Mark()
			for range 2 {
				x.p.Send(map[string]any{"type": "prompt", "message": "work", "streamingBehavior": "steer"})
			}
			x.p.Settled()
		},
		want: []string{"working", "idle"},
	},
	{
		// Pi calls itself idle until all have looked at the prompt.
		name: "an extension that thinks about the prompt",
		env:  []string{"PROBE_INPUT=1500"},
		want: []string{"working", "idle"},
	},
	{
		name:  "retry on 429",
		turns: []model.Step{failing(429, "Rate limit reached"), {Text: "recovered"}},
		want:  []string{"working", "retrying 1/3 in 300ms", "working", "idle"},
		error: "429: ",
	},
	{
		name:  "retry on 500, twice",
		turns: []model.Step{failing(500, "boom"), failing(500, "boom"), {Text: "recovered"}},
		want:  []string{"working", "retrying 1/3 in 300ms", "working", "retrying 2/3 in 600ms", "working", "idle"},
		error: "500: ",
	},
	{
		name:  "retry on 529 overloaded",
		turns: []model.Step{failing(529, "Overloaded"), {Text: "recovered"}},
		want:  []string{"working", "retrying 1/3 in 300ms", "working", "idle"},
		error: "verloaded",
	},
	{
		name:  "retry on a dropped connection",
		turns: []model.Step{{Drop: true}, {Text: "recovered"}},
		want:  []string{"working", "retrying 1/3 in 300ms", "working", "idle"},
		error: "terminated",
	},
	{
		name:     "exhausted retry, with a bounded delay",
		settings: map[string]any{"retry": map[string]any{"baseDelayMs": 100, "maxRetries": 2, "maxAgentDelayMs": 150}},
		turns:    []model.Step{failing(503, "unavailable"), failing(503, "unavailable"), failing(503, "unavailable")},
		want:     []string{"working", "retrying 1/2 in 100ms", "working", "retrying 2/2 in 150ms", "working", "idle"},
		error:    "503: ",
	},
	{
		name:     "retries are off",
		settings: map[string]any{"retry": map[string]any{"enabled": false}},
		turns:    []model.Step{failing(500, "boom")},
		want:     []string{"working", "idle"},
	},
	{
		name:  "retry after tool calls, and again in the next run",
		turns: []model.Step{bash("true"), failing(500, "boom"), {Text: "recovered"}, failing(500, "boom"), {Text: "recovered"}},
		do:    func(x *play) { x.p.Run("one"); x.p.Run("two") },
		want:  []string{"working", "retrying 1/3 in 300ms", "working", "idle", "working", "retrying 1/3 in 300ms", "working", "idle"},
		error: "500: ",
	},
	{
		name:     "abort during the back-off",
		settings: map[string]any{"retry": map[string]any{"baseDelayMs": 60_000}},
		turns:    []model.Step{failing(500, "boom")},
		do: func(x *play) {
			x.p.Prompt("work")
			x.during(2, x.p.Abort)
		},
		want:  []string{"working", "retrying 1/3 in 60000ms", "idle"},
		error: "500: ",
	},
	{
		name:     "steer during the back-off",
		settings: map[string]any{"retry": map[string]any{"baseDelayMs": 700}},
		turns:    []model.Step{failing(500, "boom"), {Text: "recovered"}},
		do: func(x *play) {
			x.p.Prompt("work")
			x.during(2, func() { x.p.Cmd(map[string]any{"type": "steer", "message": "change course"}, rig.Watchdog) })
			x.p.Settled()
		},
		want:  []string{"working", "retrying 1/3 in 700ms", "working", "idle"},
		error: "500: ",
	},
	{
		name:  "an error that is not retried",
		turns: []model.Step{failing(400, "bad request")},
		want:  []string{"working", "idle"},
	},
	{
		name:  "a 529 that is not retried",
		turns: []model.Step{failing(529, "please slow down")},
		want:  []string{"working", "idle"},
	},
	{
		name:  "manual compaction",
		small: true,
		do: func(x *play) {
			if r := x.compact(); !r.Success {
				x.t.Errorf("compact: %s", r.Error)
			}
		},
		want: []string{"compacting manual", "working", "idle"},
	},
	{
		// It wakes the session right after: not idle in between.
		name:    "a message during a manual compaction",
		small:   true,
		summary: []model.Step{{Text: summary.Text, Delay: 700 * time.Millisecond}},
		do: func(x *play) {
			x.p.Mark()
			x.p.Send(map[string]any{"type": "compact"})
			x.during(1, func() {
				if _, stderr, code := x.w.Switchboard("send", fmt.Sprint(x.p.PID), "meanwhile"); code != 0 {
					x.t.Errorf("send: exit %d: %s", code, stderr)
				}
			})
			x.p.Settled()
		},
		want: []string{"compacting manual", "working", "idle"},
	},
	{
		name:  "manual compaction while busy",
		small: true,
		turns: []model.Step{{Hang: true}},
		do: func(x *play) {
			x.p.Prompt("work")
			x.w.Model.WaitRequest(x.t, "main", 2, rig.Watchdog)
			if r := x.compact(); !r.Success {
				x.t.Errorf("compact: %s", r.Error)
			}
		},
		want: []string{"working", "compacting manual", "working", "idle"},
	},
	{
		name:  "threshold after the last turn",
		small: true,
		turns: []model.Step{{Text: "b", Usage: full}},
		want:  []string{"working", "compacting threshold", "working", "idle"},
	},
	{
		name:  "threshold between turns",
		small: true,
		turns: []model.Step{{Text: long, Tools: []model.Tool{{Name: "bash", Args: map[string]any{"command": "true"}}}, Usage: full}, {Text: "end"}},
		want:  []string{"working", "compacting threshold", "working", "idle"},
	},
	{
		name:     "threshold before a prompt",
		small:    true,
		settings: map[string]any{"compaction": map[string]any{"enabled": false}},
		turns:    []model.Step{{Text: "b", Usage: full}, {Text: "c"}},
		do: func(x *play) {
			x.p.Run("two")
			x.p.Cmd(map[string]any{"type": "set_auto_compaction", "enabled": true}, rig.Watchdog)
			x.p.Run("three")
		},
		want: []string{"working", "idle", "compacting threshold", "working", "idle"},
	},
	{
		name:  "overflow with retry",
		small: true,
		turns: []model.Step{overflow, {Text: "recovered"}},
		want:  []string{"working", "compacting overflow, will retry", "working", "idle"},
	},
	{
		name:  "overflow twice",
		small: true,
		turns: []model.Step{overflow, overflow},
		want:  []string{"working", "compacting overflow, will retry", "working", "idle"},
	},
	{
		name:  "overflow, and its retry needs a retry",
		small: true,
		turns: []model.Step{overflow, failing(500, "boom"), {Text: "recovered"}},
		want:  []string{"working", "compacting overflow, will retry", "working", "retrying 1/3 in 300ms", "working", "idle"},
		error: "500: ",
	},
	{
		name:  "a retry overflows",
		small: true,
		turns: []model.Step{failing(500, "boom"), overflow, {Text: "recovered"}},
		want:  []string{"working", "retrying 1/3 in 300ms", "working", "compacting overflow, will retry", "working", "idle"},
		error: "500: ",
	},
	{
		name:  "an answer cut off by the context's end",
		small: true,
		turns: []model.Step{{Text: "cut off", Finish: "length", Usage: model.Usage{Prompt: 9000, Completion: 40}}, {Text: "recovered"}},
		want:  []string{"working", "compacting overflow, will retry", "working", "idle"},
	},
	{
		name: "nothing to compact",
		do: func(x *play) {
			if r := x.compact(); r.Success {
				x.t.Error("there was something to compact")
			}
		},
		want: nil,
	},
	{
		name:    "the summary of a manual compaction fails",
		small:   true,
		summary: []model.Step{failing(400, "bad request")},
		do: func(x *play) {
			if r := x.compact(); r.Success {
				x.t.Error("the summary succeeded")
			}
		},
		want: []string{"compacting manual", "working", "idle"},
	},
	{
		name:    "the summary of a threshold compaction fails",
		small:   true,
		turns:   []model.Step{{Text: "b", Usage: full}},
		summary: []model.Step{failing(400, "bad request")},
		want:    []string{"working", "compacting threshold", "working", "idle"},
	},
	{
		name:    "the summary is retried",
		small:   true,
		turns:   []model.Step{overflow, {Text: "recovered"}},
		summary: []model.Step{failing(500, "boom"), summary},
		want:    []string{"working", "compacting overflow, will retry", "working", "idle"},
	},
	{
		name:    "manual compaction aborted",
		small:   true,
		summary: []model.Step{{Hang: true}},
		do: func(x *play) {
			x.p.Send(map[string]any{"type": "compact"})
			x.during(1, x.p.Abort)
		},
		want: []string{"compacting manual", "working", "idle"},
	},
	{
		name:    "compaction aborted inside a run",
		small:   true,
		turns:   []model.Step{overflow},
		summary: []model.Step{{Hang: true}},
		do: func(x *play) {
			x.p.Prompt("work")
			x.during(2, x.p.Abort)
		},
		want: []string{"working", "compacting overflow, will retry", "working", "idle"},
	},
	{
		name:  "another extension forbids a manual compaction",
		small: true,
		env:   []string{"PROBE_CANCEL=session_before_compact"},
		do:    func(x *play) { x.compact() },
		want:  []string{"compacting manual", "working", "idle"},
	},
	{
		name:  "another extension forbids a threshold compaction",
		small: true,
		env:   []string{"PROBE_CANCEL=session_before_compact"},
		turns: []model.Step{{Text: "b", Usage: full}},
		want:  []string{"working", "compacting threshold", "working", "idle"},
	},
	{
		name:    "branch summary",
		turns:   []model.Step{{Text: "A"}, {Text: "B"}},
		summary: []model.Step{{Text: "## Goal\nbranch", Delay: 200 * time.Millisecond}},
		do: func(x *play) {
			x.p.Run("one")
			x.p.Run("two")
			probe(x.p, "tree sum")
			probed(x.t, x.p, `{"tree":`)
		},
		want: []string{"working", "idle", "working", "idle", "working", "idle"},
	},
	{
		name:    "branch summary fails",
		turns:   []model.Step{{Text: "A"}, {Text: "B"}},
		summary: []model.Step{failing(400, "bad request")},
		do: func(x *play) {
			x.p.Run("one")
			x.p.Run("two")
			probe(x.p, "tree sum")
			probed(x.t, x.p, `{"tree":`)
		},
		want: []string{"working", "idle", "working", "idle", "working", "idle"},
	},
	{
		name:    "branch summary aborted",
		turns:   []model.Step{{Text: "A"}, {Text: "B"}},
		summary: []model.Step{{Hang: true}},
		do: func(x *play) {
			x.p.Run("one")
			x.p.Run("two")
			probe(x.p, "tree sum")
			x.during(5, x.p.Abort)
		},
		want: []string{"working", "idle", "working", "idle", "working", "idle"},
	},
	{
		name:  "branch summary forbidden by another extension",
		env:   []string{"PROBE_CANCEL=session_before_tree"},
		turns: []model.Step{{Text: "A"}, {Text: "B"}},
		do: func(x *play) {
			x.p.Run("one")
			x.p.Run("two")
			probe(x.p, "tree sum")
			probed(x.t, x.p, `{"tree":`)
		},
		want: []string{"working", "idle", "working", "idle", "working", "idle"},
	},
	{
		name:  "branch without a summary",
		turns: []model.Step{{Text: "A"}, {Text: "B"}},
		do: func(x *play) {
			x.p.Run("one")
			x.p.Run("two")
			probe(x.p, "tree")
			probed(x.t, x.p, `{"tree":`)
		},
		want: []string{"working", "idle", "working", "idle"},
	},
	{
		name: "an extension's message at agent_end",
		env:  []string{"PROBE_SEND=agent_end"},
		do:   twoRequests,
		want: []string{"working", "idle"},
	},
	{
		name: "an extension's message at agent_before_settle",
		env:  []string{"PROBE_SEND=agent_before_settle"},
		do:   twoRequests,
		want: []string{"working", "idle"},
	},
	{
		// Pi holds it back until the event is over: a run of its own.
		name: "an extension's message at agent_settled",
		env:  []string{"PROBE_SEND=agent_settled"},
		do:   twoRequests,
		want: []string{"working", "idle"},
	},
	{
		name:  "an extension's message at the end of a failed run",
		env:   []string{"PROBE_SEND=agent_end"},
		turns: []model.Step{failing(400, "bad request"), {Text: "went on"}},
		do:    twoRequests,
		want:  []string{"working", "idle"},
	},
	{
		name:  "a dialog in a run",
		env:   []string{"PROBE_CONFIRM=bash"},
		turns: []model.Step{bash("true"), {Text: "done"}},
		do: func(x *play) {
			x.p.Prompt("work")
			answer(x, lifecycle.Working)
			x.p.Settled()
		},
		want: []string{"working", "idle"},
	},
	{
		name: "a dialog while idle",
		do: func(x *play) {
			probe(x.p, "confirm")
			answer(x, lifecycle.Idle)
			probed(x.t, x.p, `{"confirmed":true`)
		},
		want: nil,
	},
}

// twoRequests runs a prompt and waits for what an extension adds.
func twoRequests(x *play) {
	x.p.Prompt("work")
	x.w.Model.WaitRequest(x.t, "main", 2, rig.Watchdog)
}

// answer waits for a dialog, looks at the beacon and answers it.
func answer(x *play, want lifecycle.State) {
	x.t.Helper()
	e := x.p.Wait(func(e rig.Event) bool { return e.Type == "extension_ui_request" && e.Str("method") == "confirm" }, rig.Watchdog)
	d := until(x.t, x.w, x.p.PID, "a beacon that waits for its human", func(d beacon.Document) bool { return d.Detail.WaitingForUser })
	if d.State != want {
		x.t.Errorf("in the dialog: %s, want %s", say(d), want)
	}
	x.p.Send(map[string]any{"type": "extension_ui_response", "id": e.Str("id"), "confirmed": true})
	until(x.t, x.w, x.p.PID, "a beacon that waits no more", func(d beacon.Document) bool { return !d.Detail.WaitingForUser })
}

func TestStates(t *testing.T) {
	t.Parallel()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := rig.NewWorld(t)
			o := rig.Options{Env: c.env}
			if c.small {
				w.Settings(map[string]any{"compaction": map[string]any{"reserveTokens": 4000, "keepRecentTokens": 2000}})
				o.Args = []string{"--model", "rig/scripted-small"}
				w.Model.Script("main", model.Step{Text: long})
			}
			w.Settings(c.settings)
			w.Model.Script("main", c.turns...)
			w.Model.ScriptSummary("main", c.summary...)
			x := &play{t: t, w: w, p: start(t, w, o)}
			if c.small {
				x.p.Run("one")
			}
			before := ask(t, x.p)
			x.sub = subscribe(t, w, x.p.PID)
			if c.do == nil {
				x.p.Run("work")
			} else {
				c.do(x)
			}
			heard := x.sub.expect(c.want)
			for _, d := range heard {
				if d.State == lifecycle.Retrying && !strings.Contains(d.Detail.Error, c.error) {
					t.Errorf("the retry is for %q, want %q", d.Detail.Error, c.error)
				}
			}
			after := ask(t, x.p)
			settled(t, w, x.p, heard, after)
			t.Logf("%s; Pi became idle %d times", list(heard), after.Spans-before.Spans)
			if got, most := idles(heard), after.Spans-before.Spans; got > most {
				t.Errorf("idle %d times, but Pi only %d", got, most)
			}
		})
	}
}

// idles counts the spans of being idle that a look every few milliseconds must
// have seen too, on a busy machine as well.
func idles(docs []beacon.Document) (n int) {
	const seen = 25 // milliseconds
	for i, d := range docs {
		if d.State == lifecycle.Idle && (i == len(docs)-1 || docs[i+1].Since-d.Since >= seen) {
			n++
		}
	}
	return n
}

// settled checks that a Pi at rest, its beacon, its document's file and the
// roster say the same.
func settled(t *testing.T, w *rig.World, p *rig.Pi, heard []beacon.Document, pi opinion) {
	t.Helper()
	if !pi.Idle {
		t.Errorf("Pi says it is not idle; heard %s", list(heard))
	}
	if n := len(heard); n > 0 && heard[n-1].State != lifecycle.Idle {
		t.Errorf("the last transition is %s, but Pi is idle", say(heard[n-1]))
	}
	d := untilState(t, w, p.PID, lifecycle.Idle)
	rig.Eventually(t, rig.Watchdog, "idle in the document's file", func() bool {
		file, err := read(w, p.PID)
		return err == nil && file.State == lifecycle.Idle && file.Since == d.Since
	})
	rig.Eventually(t, rig.Watchdog, "idle on the roster", func() bool { return roster(t, w)[d.SessionID] == string(d.State) })
	if got := fmt.Sprint(p.ExtensionErrors()); got != "[]" {
		t.Errorf("extension errors: %s", got)
	}
}
