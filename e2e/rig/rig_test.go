//go:build linux

package rig_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"switchboard/e2e/model"
	"switchboard/e2e/rig"
)

// plain is Pi as it comes: these tests are about the rig.
func plain(session string) rig.Options {
	return rig.Options{Session: session, NoExtension: true}
}

func TestPrompt(t *testing.T) {
	t.Parallel()
	w := rig.NewWorld(t)
	w.Model.Script("ann", model.Step{Text: "hello there", Chunks: 3})
	pi := w.StartPi(t, plain("ann"))
	if s := pi.State(); s.Model.Provider != "rig" || s.Model.ID != "scripted" || s.SessionID == "" || s.IsStreaming {
		t.Errorf("State() = %+v", s)
	}
	file := pi.SessionFile()
	if e := rig.Entries(t, file); e != nil {
		t.Errorf("entries before the first message: %+v", e)
	}
	if got := pi.Run("hi"); got != "hello there" {
		t.Errorf("Run() = %q, want the scripted text", got)
	}
	req := w.Model.WaitRequest(t, "ann", 1, rig.Watchdog)
	if last := req.Last(); last.Role != "user" || last.Text != "hi" {
		t.Errorf("the model read %+v", last)
	}
	if !slices.Contains(req.Tools, "read") || req.System == "" {
		t.Errorf("tools %v, system prompt of %d bytes", req.Tools, len(req.System))
	}
	var texts []string
	for _, e := range rig.Entries(t, file) {
		if e.Type == "message" && e.Role != "system" {
			texts = append(texts, e.Role+": "+e.Text)
		}
	}
	if want := []string{"user: hi", "assistant: hello there"}; !slices.Equal(texts, want) {
		t.Errorf("session file has %q, want %q", texts, want)
	}
	if errs := pi.ExtensionErrors(); errs != nil {
		t.Errorf("ExtensionErrors() = %v", errs)
	}
	if code := pi.Quit(); code != 0 || !pi.Exited() {
		t.Errorf("Quit() = %d", code)
	}
}

func TestToolCall(t *testing.T) {
	t.Parallel()
	w := rig.NewWorld(t)
	w.Model.Script("ann",
		model.Step{Tools: []model.Tool{{Name: "read", Args: map[string]any{"path": "a.txt"}}}},
		model.Step{Text: "read it"})
	pi := w.StartPi(t, plain("ann"))
	if got := pi.Run("read a.txt"); got != "read it" {
		t.Errorf("Run() = %q", got)
	}
	turns := w.Model.Turns("ann")
	if len(turns) != 2 {
		t.Fatalf("%d requests, want 2", len(turns))
	}
	got := turns[1].Last()
	if got.Role != "tool" || got.ToolCallID != "call_1_0" || !strings.Contains(got.Text, "one\ntwo") {
		t.Errorf("the model read %+v, want the file", got)
	}
}

func TestRetry(t *testing.T) {
	t.Parallel()
	w := rig.NewWorld(t)
	w.Settings(map[string]any{"retry": map[string]any{"baseDelayMs": 50}})
	w.Model.Script("ann",
		model.Step{Status: 429, Message: "slow down"},
		model.Step{Drop: true},
		model.Step{Text: "at last"})
	pi := w.StartPi(t, plain("ann"))
	if got := pi.Run("hi"); got != "at last" {
		t.Errorf("Run() = %q", got)
	}
	retry := pi.Wait(rig.OfType("auto_retry_start"), rig.Watchdog)
	if !strings.Contains(retry.Str("errorMessage"), "slow down") || retry.Get("delayMs") != 50.0 || retry.Get("maxAttempts") != 3.0 {
		t.Errorf("retry = %s", retry.Raw)
	}
	if n := len(w.Model.Turns("ann")); n != 3 {
		t.Errorf("%d requests, want 3", n)
	}
}

func TestAbortWhileModelWaits(t *testing.T) {
	t.Parallel()
	w := rig.NewWorld(t)
	w.Model.Script("ann", model.Step{Text: "never", Wait: make(chan struct{})})
	pi := w.StartPi(t, plain("ann"))
	pi.Prompt("hi")
	w.Model.WaitRequest(t, "ann", 1, rig.Watchdog)
	pi.Abort()
	if e := pi.Settled(); e.Get("aborted") != true {
		t.Errorf("settled = %s, want it aborted", e.Raw)
	}
	if got := pi.Run("again"); got != "ok" {
		t.Errorf("Run() after an abort = %q", got)
	}
}

func TestTwoAtOnce(t *testing.T) {
	t.Parallel()
	w := rig.NewWorld(t)
	release := make(chan struct{})
	w.Model.Script("ann", model.Step{Text: "from ann", Wait: release})
	w.Model.Script("bob", model.Step{Text: "from bob"})
	ann := w.StartPi(t, plain("ann"))
	bob := w.StartPi(t, rig.Options{Session: "bob", NoExtension: true, Cwd: w.Repo("other")})
	ann.Prompt("hi")
	w.Model.WaitRequest(t, "ann", 1, rig.Watchdog)
	if got := bob.Run("hi"); got != "from bob" {
		t.Errorf("bob: Run() = %q", got)
	}
	close(release)
	ann.Settled()
	if got := ann.Answer(); got != "from ann" {
		t.Errorf("ann: Answer() = %q", got)
	}
	if got := w.Processes(); !slices.Contains(got, ann.PID) || !slices.Contains(got, bob.PID) {
		t.Errorf("Processes() = %v, want %d and %d among them", got, ann.PID, bob.PID)
	}
	ann.Kill(syscall.SIGKILL)
	if code := ann.WaitExit(rig.Watchdog); code != -1 {
		t.Errorf("exit code after SIGKILL = %d, want -1", code)
	}
	bob.Kill(syscall.SIGTERM)
	if code := bob.WaitExit(rig.Watchdog); code != 143 {
		t.Errorf("exit code after SIGTERM = %d, want 143", code)
	}
}

func TestPrintAndJSON(t *testing.T) {
	t.Parallel()
	w := rig.NewWorldAt(t, filepath.Join(t.TempDir(), strings.Repeat("long-", 20)))
	w.Model.Script("ann", model.Step{Text: "printed"}, model.Step{Text: "as JSON"})
	text := w.StartPi(t, rig.Options{Session: "ann", NoExtension: true, Mode: rig.Print, Args: []string{"hi"}})
	if got := text.Output(); got != "printed\n" || text.Events() != nil {
		t.Errorf("print mode: Output() = %q, events %v", got, text.Events())
	}
	events := w.StartPi(t, rig.Options{Session: "ann", NoExtension: true, Mode: rig.JSON, Args: []string{"hi"}})
	events.Settled()
	if got := events.Answer(); got != "as JSON" || !strings.Contains(events.Output(), "as JSON") {
		t.Errorf("JSON mode: Answer() = %q", got)
	}
	if events.WaitExit(rig.Watchdog) != 0 {
		t.Errorf("exit code = %d", events.WaitExit(rig.Watchdog))
	}
}

// An extension that talks to the human and has a child, as ours will.
const talker = `import { spawn } from "node:child_process";
export default function (pi) {
	pi.on("session_start", (event, ctx) => {
		ctx.ui.notify("lines\u2028may hold\u2029anything " + "x".repeat(200000), "warning");
		ctx.ui.setStatus("a", "first");
		ctx.ui.setStatus("b", "gone");
		ctx.ui.setStatus("a", "second");
		ctx.ui.setStatus("b", undefined);
		spawn("sh", ["-c", "read line", "attach"], { detached: true, stdio: ["pipe", "ignore", "ignore"] });
		throw new Error("on purpose");
	});
	pi.registerCommand("shout", { handler: async (args, ctx) => ctx.ui.notify(args, "info") });
}
`

func TestExtensionIsWatched(t *testing.T) {
	t.Parallel()
	w := rig.NewWorld(t)
	file := filepath.Join(t.TempDir(), "talker.ts")
	if err := os.WriteFile(file, []byte(talker), 0o600); err != nil {
		t.Fatal(err)
	}
	o := plain("ann")
	o.ExtensionPaths = []string{file}
	pi := w.StartPi(t, o)
	pi.Prompt("/shout hello")

	notes := pi.Notifications()
	if len(notes) != 2 || notes[0].Level != "warning" || len(notes[0].Text) < 200000 || notes[1] != (rig.Notification{Level: "info", Text: "hello"}) {
		t.Errorf("%d notifications, last %.60v", len(notes), notes)
	}
	if got := pi.Statuses(); len(got) != 1 || got["a"] != "second" {
		t.Errorf("Statuses() = %v", got)
	}
	if got := pi.ExtensionErrors(); len(got) != 1 || !strings.Contains(got[0], "session_start: on purpose") {
		t.Errorf("ExtensionErrors() = %q", got)
	}
	for _, e := range pi.Events() {
		if e.Type == "garbage" {
			t.Errorf("garbage on standard output: %s", e)
		}
	}
	sidecars := pi.Sidecars()
	if len(sidecars) != 1 || !rig.Alive(sidecars[0]) {
		t.Fatalf("Sidecars() = %v, want one", sidecars)
	}
	pi.Kill(syscall.SIGKILL)
	rig.Eventually(t, rig.Watchdog, "the child sees the end of its input", func() bool { return !rig.Alive(sidecars[0]) })
}

// Whatever still runs when a test ends is killed, stopped or not.
func TestNothingOutlivesTheTest(t *testing.T) {
	t.Parallel()
	rig.Setup(t)
	var w *rig.World
	t.Run("world", func(t *testing.T) {
		w = rig.NewWorld(t)
		w.Model.Script("ann", model.Step{Tools: []model.Tool{{Name: "bash", Args: map[string]any{"command": "setsid sleep 1000"}}}})
		pi := w.StartPi(t, plain("ann"))
		pi.Prompt("hi")
		rig.Eventually(t, rig.Watchdog, "the tool runs", func() bool { return len(w.Processes()) >= 2 })
		pi.Kill(syscall.SIGSTOP)
	})
	if pids := w.Processes(); pids != nil {
		t.Errorf("still there: %v", pids)
	}
	if _, err := os.Stat(w.Dir); !os.IsNotExist(err) {
		t.Errorf("still there: %s (%v)", w.Dir, err)
	}
}

func TestSettingsMerge(t *testing.T) {
	t.Parallel()
	w := rig.NewWorld(t)
	w.Settings(map[string]any{"theme": "dark", "retry": map[string]any{"maxRetries": 1}})
	raw, err := os.ReadFile(filepath.Join(w.AgentDir, "settings.json"))
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Theme, DefaultModel string
		Retry               struct{ BaseDelayMs, MaxRetries int }
	}
	if err := json.Unmarshal(raw, &got); err != nil {
		t.Fatal(err)
	}
	if got.Theme != "dark" || got.DefaultModel != "scripted" || got.Retry.BaseDelayMs != 300 || got.Retry.MaxRetries != 1 {
		t.Errorf("settings = %s", raw)
	}
}

func TestTUI(t *testing.T) {
	t.Parallel()
	w := rig.NewWorld(t)
	w.Settings(map[string]any{"theme": "dark"})
	release := make(chan struct{})
	w.Model.Script("ann", model.Step{Text: "hello from the model; grüße", Wait: release}, model.Step{Hang: true})
	u := w.StartTUI(t, plain("ann"), 90, 30)
	u.Submit("hi; there")
	w.Model.WaitRequest(t, "ann", 1, rig.Watchdog)
	close(release)
	u.WaitScreen("hello from the model; grüße", rig.Watchdog)
	if n := strings.Count(u.Capture(), "\n"); n != 30 {
		t.Errorf("the screen has %d lines, want 30", n)
	}
	// A prompt's background goes on behind its text, to the edge.
	if screen := u.CaptureANSI(); !strings.Contains(screen, strings.Repeat(" ", 80)+"\x1b[m\n") {
		t.Errorf("CaptureANSI() has not all colours:\n%q", screen)
	}
	u.Resize(60, 20)
	rig.Eventually(t, rig.Watchdog, "the screen is smaller", func() bool {
		return strings.Count(u.Capture(), "\n") == 20
	})

	u.Submit("once more")
	w.Model.WaitRequest(t, "ann", 2, rig.Watchdog)
	u.Keys("Escape")
	u.WaitScreen("aborted", rig.Watchdog)
	u.Submit("/quit")
	u.WaitExit(rig.Watchdog)
	if screen := u.Capture(); !strings.Contains(screen, "pi --session") {
		t.Errorf("the last screen does not say how to resume:\n%s", screen)
	}
}
