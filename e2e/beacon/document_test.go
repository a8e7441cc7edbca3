//go:build linux

package beacon

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"switchboard/e2e/model"
	"switchboard/e2e/rig"
	"switchboard/internal/beacon"
)

// Kinds of JSON values that a field may have.
func text(v any) bool    { s, ok := v.(string); return ok && s != "" }
func boolean(v any) bool { _, ok := v.(bool); return ok }
func null(v any) bool    { return v == nil }
func number(v any) bool  { _, ok := v.(float64); return ok }
func whole(v any) bool   { f, ok := v.(float64); return ok && f >= 0 && f == math.Trunc(f) }

// fields are those of the specification and what each of them must be.
type fields map[string]func(any) bool

func (f fields) check(t *testing.T, what string, object any) {
	t.Helper()
	m, ok := object.(map[string]any)
	if !ok {
		t.Fatalf("%s is %v, want an object", what, object)
	}
	for name, is := range f {
		if v, there := m[name]; !there || !is(v) {
			t.Errorf("%s: %s = %v (there: %v)", what, name, v, there)
		}
	}
}

// with are the same fields but for some.
func (f fields) with(other fields) fields {
	out := fields{}
	for _, from := range []fields{f, other} {
		for name, is := range from {
			out[name] = is
		}
	}
	return out
}

// all are the specification's fields of a document.
var all = fields{
	"schema": text, "pid": whole, "state": text, "model": text, "sessionFile": text, "sessionId": text, "sessionName": text,
	"cwd": text, "startedAt": whole, "updatedAt": whole,
	"detail":       func(v any) bool { m, ok := v.(map[string]any); return ok && boolean(m["pendingMessages"]) },
	"contextUsage": func(v any) bool { _, ok := v.(map[string]any); return ok },
}

// raw reads a process's document as any other program would.
func raw(t *testing.T, w *rig.World, pid int) map[string]any {
	t.Helper()
	data, err := os.ReadFile(beacon.Path(dir(w), pid))
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(data, &m); err != nil {
		t.Fatalf("%v in %s", err, data)
	}
	return m
}

func TestDocument(t *testing.T) {
	t.Parallel()
	w := rig.NewWorld(t)
	w.Settings(map[string]any{"compaction": map[string]any{"reserveTokens": 4000, "keepRecentTokens": 2000}})
	before := time.Now()
	p := start(t, w, rig.Options{Args: []string{"--name", "first name", "--model", "rig/scripted-small"}})
	w.Model.Script("main", model.Step{Text: long, Usage: model.Usage{Prompt: 9000, Completion: 20}})
	p.Run("one")
	until(t, w, p.PID, "a context in use", func(d beacon.Document) bool { return d.ContextUsage.Tokens != nil && *d.ContextUsage.Tokens > 9000 })
	rig.Eventually(t, rig.Watchdog, "the same in the file", func() bool {
		d, err := read(w, p.PID)
		return err == nil && d.ContextUsage.Tokens != nil && *d.ContextUsage.Tokens > 9000
	})
	m := raw(t, w, p.PID)
	all.check(t, "document", m)
	fields{"tokens": whole, "contextWindow": whole, "percent": number}.check(t, "contextUsage", m["contextUsage"])
	d, state := query(t, w, p.PID), p.State()
	if *d.Model != "rig/scripted-small" || *d.SessionFile != state.SessionFile || d.SessionID != state.SessionID || *d.SessionName != "first name" || d.Cwd != w.Dir || *d.ContextUsage.ContextWindow != 20000 {
		t.Errorf("model %s, file %s, id %s, name %q, cwd %s, window %d", *d.Model, *d.SessionFile, d.SessionID, *d.SessionName, d.Cwd, *d.ContextUsage.ContextWindow)
	}
	if started := time.UnixMilli(d.StartedAt); started.Before(before.Add(-time.Second)) || started.After(time.Now()) {
		t.Errorf("started at %v, want just after %v", started, before)
	}

	for path, want := range map[string]os.FileMode{dir(w): 0o700, beacon.Path(dir(w), p.PID): 0o600, d.Socket: 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v, want %v", path, info, err, want)
		}
	}
	if d.Socket != filepath.Join(dir(w), filepath.Base(d.Socket)) {
		t.Errorf("the socket is %s, want it beside the document", d.Socket)
	}

	// A name that changes shows soon, without a transition.
	p.Cmd(map[string]any{"type": "set_session_name", "name": "second name"}, rig.Watchdog)
	rig.Eventually(t, rig.Watchdog, "the new name in the file", func() bool {
		d, err := read(w, p.PID)
		return err == nil && d.SessionName != nil && *d.SessionName == "second name"
	})

	// While idle the file is refreshed by the heartbeat, and the socket is
	// fresher than the file.
	beat := func() time.Time {
		t.Helper()
		last, err := read(w, p.PID)
		if err != nil {
			t.Fatal(err)
		}
		rig.Eventually(t, rig.Watchdog, "a heartbeat", func() bool {
			next, err := read(w, p.PID)
			return err == nil && next.UpdatedAt > last.UpdatedAt
		})
		return time.Now()
	}
	began := beat()
	if last, err := read(w, p.PID); err != nil || query(t, w, p.PID).UpdatedAt <= last.UpdatedAt {
		t.Errorf("the socket is no fresher than the file (%v)", err)
	}
	ended := beat()
	t.Logf("a heartbeat after %v", ended.Sub(began))
	if took := ended.Sub(began); took > beacon.Heartbeat+time.Second {
		t.Errorf("no heartbeat for %v", took)
	}

	// After a compaction nobody knows how full the context is.
	if r := p.Cmd(map[string]any{"type": "compact"}, rig.Watchdog); !r.Success {
		t.Fatalf("compact: %s", r.Error)
	}
	rig.Eventually(t, rig.Watchdog, "an unknown usage", func() bool {
		d, err := read(w, p.PID)
		return err == nil && d.ContextUsage.Tokens == nil
	})
	m = raw(t, w, p.PID)
	all.check(t, "after a compaction", m)
	fields{"tokens": null, "contextWindow": whole, "percent": null}.check(t, "contextUsage after a compaction", m["contextUsage"])
}

// What Pi doesn't know is null, and nothing else.
func TestUnknownValues(t *testing.T) {
	t.Parallel()
	w := rig.NewWorld(t)
	p := start(t, w, rig.Options{Args: []string{"--no-session"}})
	all.with(fields{"sessionFile": null, "sessionName": null}).check(t, "without a session file", raw(t, w, p.PID))

	if err := os.WriteFile(filepath.Join(w.AgentDir, "models.json"), []byte(`{"providers":{}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	p = start(t, w, rig.Options{})
	m := raw(t, w, p.PID)
	all.with(fields{"model": null, "sessionName": null}).check(t, "without a model", m)
	fields{"tokens": null, "contextWindow": null, "percent": null}.check(t, "contextUsage without a model", m["contextUsage"])
}
