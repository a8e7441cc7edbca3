//go:build linux

package firstlight

import (
	"testing"

	"switchboard/e2e/model"
	"switchboard/e2e/rig"
)

// busyWith starts a Pi that answers its first prompt only when gate closes,
// and posts messages meanwhile.
func busyWith(t *testing.T, w *rig.World, want []string) (b *rig.Pi, gate chan struct{}) {
	t.Helper()
	b = start(t, w, rig.Options{Session: "b"})
	gate = make(chan struct{})
	w.Model.Script("b", model.Step{Text: "slow answer", Wait: gate})
	b.Prompt("work")
	w.Model.WaitRequest(t, "b", 1, rig.Watchdog)
	s := store(t, w)
	for _, text := range want {
		post(t, s, b.SessionID(), text)
	}
	return b, gate
}

// An abort wakes nobody: what waits comes with the next prompt, once.
func TestAbortThenPrompt(t *testing.T) {
	t.Parallel()
	w := rig.NewWorld(t)
	want := texts("abort", 3)
	b, _ := busyWith(t, w, want)
	b.Abort()
	b.Settled()
	b.Run("go on")
	turns := w.Model.Turns("b")
	if len(turns) != 2 {
		t.Errorf("%d requests, want 2: the aborted one and the prompt's", len(turns))
	}
	once(t, turns[len(turns)-1], want)
	emptied(t, store(t, w), b.SessionID())
}

// After an abort, a new message wakes the session and brings along what waited.
func TestAbortThenMessage(t *testing.T) {
	t.Parallel()
	w := rig.NewWorld(t)
	want := texts("abort", 4)
	b, _ := busyWith(t, w, want[:3])
	b.Abort()
	b.Settled()
	post(t, store(t, w), b.SessionID(), want[3])
	once(t, w.Model.WaitRequest(t, "b", 2, rig.Watchdog), want)
	emptied(t, store(t, w), b.SessionID())
	if n := len(w.Model.Turns("b")); n != 2 {
		t.Errorf("%d requests, want 2", n)
	}
}

// Clearing Pi's queue takes the human's own queued text, not our messages.
func TestClearedQueue(t *testing.T) {
	t.Parallel()
	w := rig.NewWorld(t)
	want := texts("queue", 3)
	b, gate := busyWith(t, w, want)
	b.Cmd(map[string]any{"type": "steer", "message": "never mind this"}, rig.Watchdog)
	b.Cmd(map[string]any{"type": "clear_queue"}, rig.Watchdog)
	close(gate)
	// With the end of the turn; where the helper has no time for that, by a wake.
	var last model.Request
	rig.Eventually(t, rig.Watchdog, "all to be shown", func() bool {
		turns := w.Model.Turns("b")
		last = turns[len(turns)-1]
		return count(last, want[2]) > 0
	})
	once(t, last, want)
	if count(last, "never mind this") != 0 {
		t.Error("the cleared text came back")
	}
	emptied(t, store(t, w), b.SessionID())
}

// In the terminal: Alt+Up takes the queued text back into the editor, Esc
// stops the run; our messages survive both.
func TestKeys(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		keys   []string
		prompt bool // the run was stopped, so a prompt has to come
	}{
		{"escape", []string{"Escape"}, true},
		{"alt-up", []string{"M-Up"}, false},
		{"alt-up then escape", []string{"M-Up", "Escape"}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := rig.NewWorld(t)
			s := store(t, w)
			id := "keys-session"
			want := texts("keys", 3)
			gate := make(chan struct{})
			w.Model.Script("b", model.Step{Text: "slow answer", Wait: gate})
			b := w.StartTUI(t, rig.Options{Session: "b", Args: []string{"--session-id", id}}, 100, 30)
			listed(t, w, id)
			b.Submit("work")
			w.Model.WaitRequest(t, "b", 1, rig.Watchdog)
			for _, text := range want {
				post(t, s, id, text)
			}
			b.Submit("queued by the human")
			b.WaitScreen("Steering: queued by the human", rig.Watchdog)
			b.Keys(c.keys...)
			if c.prompt {
				b.WaitScreen("aborted", rig.Watchdog)
				b.Keys("C-u")
				b.Submit("go on")
			} else {
				close(gate)
			}
			once(t, w.Model.WaitRequest(t, "b", 2, rig.Watchdog), want)
			emptied(t, s, id)
		})
	}
}

// A reload between a message's coming and its reading loses nothing, and peers
// don't notice it.
func TestReload(t *testing.T) {
	t.Parallel()
	w := rig.NewWorld(t)
	s := store(t, w)
	b := start(t, w, rig.Options{Session: "b", ExtensionPaths: []string{testdata(t, "reload.ts")}})
	id := b.SessionID()
	want := texts("reload", 3)
	w.Model.Script("b", model.Step{Text: "one"}, model.Step{Text: "two"}, model.Step{Text: "three"})
	b.Run("hello")
	old := b.Sidecars()
	gone := false
	stop := make(chan struct{})
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		for {
			select {
			case <-stop:
				return
			default:
			}
			if _, err := s.Session(key(id)); err != nil {
				gone = true
			}
		}
	}()
	b.Send(map[string]any{"type": "prompt", "message": "/reload-now"})
	// Sooner, and the first message would start a run, during which Pi refuses
	// to reload.
	b.Wait(func(e rig.Event) bool { return e.Type == "extension_ui_request" && e.Str("message") == "reloading" }, rig.Watchdog)
	for _, text := range want {
		post(t, s, id, text)
	}
	rig.Eventually(t, rig.Watchdog, "a new sidecar", func() bool {
		now := b.Sidecars()
		return len(now) == 1 && now[0] != old[0]
	})
	emptied(t, s, id)
	close(stop)
	<-watched
	if gone {
		t.Error("the session left the roster during the reload")
	}
	handedOver(t, b.SessionFile(), want)
}

// A message that comes while other extensions look at a prompt does not start a
// run of its own, for which Pi would refuse the prompt: it goes along.
func TestMessageWhilePromptIsPrepared(t *testing.T) {
	t.Parallel()
	w := rig.NewWorld(t)
	s := store(t, w)
	p := start(t, w, rig.Options{Session: "p", Args: []string{"--session-id", "p-id"}, ExtensionPaths: []string{testdata(t, "slow-input.ts")}})
	p.Send(map[string]any{"type": "prompt", "message": "the prompt"})
	p.Wait(func(e rig.Event) bool { return e.Type == "extension_ui_request" && e.Str("message") == "thinking" }, rig.Watchdog)
	post(t, s, "p-id", "meanwhile-01.")
	r := w.Model.WaitRequest(t, "p", 1, rig.Watchdog)
	if count(r, "the prompt") != 1 || count(r, "meanwhile-01.") != 1 {
		t.Errorf("the first request was:\n%s", r.Transcript())
	}
	emptied(t, s, "p-id")
}
