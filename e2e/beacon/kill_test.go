//go:build linux

package beacon

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"switchboard/e2e/model"
	"switchboard/e2e/rig"
	"switchboard/internal/beacon"
	"switchboard/internal/lifecycle"
)

// However Pi ends, both files go.
func TestEnds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		busy bool
		end  func(p *rig.Pi)
	}{
		{"kill -9", false, func(p *rig.Pi) { p.Kill(syscall.SIGKILL) }},
		{"kill -9 while busy", true, func(p *rig.Pi) { p.Kill(syscall.SIGKILL) }},
		{"quit", false, func(p *rig.Pi) { p.Quit() }},
		{"quit while busy", true, func(p *rig.Pi) { p.Quit() }},
		{"SIGTERM", false, func(p *rig.Pi) { p.Kill(syscall.SIGTERM) }},
		{"SIGINT", false, func(p *rig.Pi) { p.Kill(syscall.SIGINT) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := rig.NewWorld(t)
			p := start(t, w, rig.Options{})
			if c.busy {
				w.Model.Script("main", bash("sleep 30"))
				p.Prompt("work")
				untilState(t, w, p.PID, lifecycle.Working)
			}
			c.end(p)
			p.WaitExit(rig.Watchdog)
			took := dark(t, w, p.PID)
			t.Logf("gone %v after Pi", took)
			if took > 5*time.Second {
				t.Errorf("the files stayed %v", took)
			}
		})
	}
}

// The sidecar is killed in every state: it is back with the same state and
// what belongs to it, and Pi's next step is noticed.
func TestSidecarKilled(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		settings map[string]any
		env      []string
		small    bool
		turns    []model.Step
		begin    func(x *play)
		want     string
		detail   func(d beacon.Detail) bool
		end      func(x *play)
	}{
		{
			name: "idle", begin: func(*play) {}, want: "idle",
			end: func(x *play) { x.p.Run("work") },
		},
		{
			name: "streaming", turns: []model.Step{{Hang: true}}, want: "working",
			begin: func(x *play) { x.p.Prompt("work") },
			end:   func(x *play) { x.p.Abort() },
		},
		{
			name: "in a tool", turns: []model.Step{bash(untilFile("go")), {Text: "done"}}, want: "working",
			begin:  func(x *play) { x.p.Prompt("work") },
			detail: func(d beacon.Detail) bool { return d.Tool == "bash" && d.ToolSince > 0 },
			end:    func(x *play) { x.w.Write("go", "") },
		},
		{
			name: "retrying", settings: map[string]any{"retry": map[string]any{"baseDelayMs": 30_000}},
			turns: []model.Step{failing(500, "boom")}, want: "retrying 1/3 in 30000ms",
			begin:  func(x *play) { x.p.Prompt("work") },
			detail: func(d beacon.Detail) bool { return d.Error != "" },
			end:    func(x *play) { x.p.Abort() },
		},
		{
			name: "retrying again", settings: map[string]any{"retry": map[string]any{"baseDelayMs": 50, "maxAgentDelayMs": 30_000, "maxRetries": 20}},
			turns: []model.Step{failing(500, "a"), failing(500, "b"), failing(500, "c"), {Hang: true}}, want: "working",
			begin: func(x *play) { x.p.Prompt("work"); x.w.Model.WaitRequest(x.t, "main", 4, rig.Watchdog) },
			end: func(x *play) {
				// The attempts before it are remembered: this is the fourth.
				x.p.Abort()
			},
		},
		{
			name: "compacting", small: true, want: "compacting manual",
			begin: func(x *play) { x.p.Send(map[string]any{"type": "compact"}) },
			end:   func(x *play) { x.p.Abort() },
		},
		{
			name: "compacting after an overflow", small: true, turns: []model.Step{overflow}, want: "compacting overflow, will retry",
			begin: func(x *play) { x.p.Prompt("work") },
			end:   func(x *play) { x.p.Abort() },
		},
		{
			name: "summarizing a branch", turns: []model.Step{{Text: "A"}, {Text: "B"}}, want: "working",
			begin: func(x *play) { x.p.Run("one"); x.p.Run("two"); probe(x.p, "tree sum") },
			end:   func(x *play) { x.p.Abort() },
		},
		{
			name: "in a dialog", env: []string{"PROBE_CONFIRM=bash"}, turns: []model.Step{bash("true"), {Text: "done"}}, want: "working",
			begin:  func(x *play) { x.p.Prompt("work") },
			detail: func(d beacon.Detail) bool { return d.WaitingForUser },
			end:    func(x *play) { answer(x, lifecycle.Working) },
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := rig.NewWorld(t)
			w.Model.ScriptSummary("main", model.Step{Hang: true})
			o := rig.Options{Env: c.env}
			if c.small {
				w.Settings(map[string]any{"compaction": map[string]any{"reserveTokens": 4000, "keepRecentTokens": 2000}})
				o.Args = []string{"--model", "rig/scripted-small"}
				w.Model.Script("main", model.Step{Text: long})
			}
			w.Settings(c.settings)
			w.Model.Script("main", c.turns...)
			x := &play{t: t, w: w, p: start(t, w, o)}
			if c.small {
				x.p.Run("one")
			}
			c.begin(x)
			there := func(d beacon.Document) bool {
				return say(d) == c.want && (c.detail == nil || c.detail(d.Detail))
			}
			d := until(t, w, x.p.PID, c.want, there)
			for range 2 {
				old, began := d, time.Now()
				for _, pid := range x.p.Sidecars() {
					_ = syscall.Kill(pid, syscall.SIGKILL)
				}
				// Whatever it says after its return, it must never be another state.
				d = until(t, w, x.p.PID, "the beacon to be back", func(d beacon.Document) bool { return d.Instance != old.Instance })
				t.Logf("back after %v", time.Since(began))
				if !there(d) {
					t.Errorf("back with %s and %+v, want %s", say(d), d.Detail, c.want)
				}
				if late := d.Since - old.Since; late < -50 || late > 50 {
					t.Errorf("%s since %d, then since %d", say(d), old.Since, d.Since)
				}
				if late := d.Detail.ToolSince - old.Detail.ToolSince; late < -50 || late > 50 {
					t.Errorf("in a tool since %d, then since %d", old.Detail.ToolSince, d.Detail.ToolSince)
				}
				if d.StartedAt/1000 != old.StartedAt/1000 && d.StartedAt-old.StartedAt > 50 {
					t.Errorf("Pi was started at %d, then at %d", old.StartedAt, d.StartedAt)
				}
			}
			c.end(x)
			d = untilState(t, w, x.p.PID, lifecycle.Idle)
			if d.Detail != (beacon.Detail{}) {
				t.Errorf("idle with %+v", d.Detail)
			}
			settled(t, w, x.p, nil, ask(t, x.p))
		})
	}
}

// The attempts before the sidecar's death count.
func TestSidecarKilledBetweenRetries(t *testing.T) {
	t.Parallel()
	w := rig.NewWorld(t)
	w.Settings(map[string]any{"retry": map[string]any{"baseDelayMs": 100, "maxRetries": 9}})
	gate := make(chan struct{})
	third := failing(500, "c")
	third.Wait = gate
	w.Model.Script("main", failing(500, "a"), failing(500, "b"), third, model.Step{Text: "recovered"})
	p := start(t, w, rig.Options{})
	p.Prompt("work")
	w.Model.WaitRequest(t, "main", 3, rig.Watchdog)
	old := untilState(t, w, p.PID, lifecycle.Working)
	for _, pid := range p.Sidecars() {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	until(t, w, p.PID, "the beacon to be back", func(d beacon.Document) bool { return d.Instance != old.Instance })
	file, err := read(w, p.PID)
	if err != nil {
		t.Fatal(err)
	}
	sub, first, err := beacon.Subscribe(t.Context(), file.Socket)
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	if say(first) != "working" {
		t.Errorf("back with %s", say(first))
	}
	close(gate)
	for _, want := range []string{"retrying 3/9 in 400ms", "working", "idle"} {
		if d, err := sub.Next(); err != nil || say(d) != want {
			t.Fatalf("then %s (%v), want %s", say(d), err, want)
		}
	}
}

// A reload, and a session that replaces another, keep the process's beacon.
func TestReloadAndNewSession(t *testing.T) {
	t.Parallel()
	w := rig.NewWorld(t)
	p := start(t, w, rig.Options{})
	p.Run("one")
	old := untilState(t, w, p.PID, lifecycle.Idle)
	missing := make(chan int)
	stop := make(chan struct{})
	go func() {
		n := 0
		defer func() { missing <- n }()
		for {
			select {
			case <-stop:
				return
			case <-time.After(time.Millisecond):
			}
			if _, err := os.Stat(beacon.Path(dir(w), p.PID)); err != nil {
				n++
			}
		}
	}()
	probe(p, "reload")
	d := until(t, w, p.PID, "another instance", func(d beacon.Document) bool { return d.Instance != old.Instance })
	close(stop)
	if n := <-missing; n > 0 {
		t.Errorf("the document was missing at %d looks during the reload", n)
	}
	if d.SessionID != old.SessionID || d.State != lifecycle.Idle {
		t.Errorf("after the reload: %s %s", d.SessionID, say(d))
	}
	sub := subscribe(t, w, p.PID)
	p.Run("two")
	sub.expect([]string{"working", "idle"})

	// In the middle of a run, a new session: the document is the new one's.
	w.Model.Script("main", model.Step{Hang: true})
	p.Prompt("three")
	untilState(t, w, p.PID, lifecycle.Working)
	p.Cmd(map[string]any{"type": "new_session"}, rig.Watchdog)
	d = until(t, w, p.PID, "another session", func(d beacon.Document) bool { return d.SessionID != old.SessionID })
	if id := p.SessionID(); d.SessionID != id || d.State != lifecycle.Idle || d.PID != p.PID || len(d.Sessions) > 0 {
		t.Errorf("after new_session %s: %+v", id, d)
	}
	sub = subscribe(t, w, p.PID)
	p.Run("four")
	sub.expect([]string{"working", "idle"})
	p.Quit()
	dark(t, w, p.PID)
}

// What dead processes left is removed by the next that starts; what is not a
// beacon's stays.
func TestLeftoversOfTheDead(t *testing.T) {
	t.Parallel()
	w := rig.NewWorld(t)
	if err := os.Mkdir(dir(w), 0o755); err != nil { // as somebody else made it
		t.Fatal(err)
	}
	gone := exec.Command("true")
	if err := gone.Run(); err != nil {
		t.Fatal(err)
	}
	dead, alive := gone.Process.Pid, os.Getpid()
	keep := []string{"notes.txt", "x.json", fmt.Sprintf("0%d.json", dead), fmt.Sprintf("%d.json", alive)}
	plant(t, w, dead)
	for _, name := range keep {
		if err := os.WriteFile(filepath.Join(dir(w), name), []byte("{}"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p := start(t, w, rig.Options{})
	dark(t, w, dead)
	for _, name := range keep {
		if _, err := os.Stat(filepath.Join(dir(w), name)); err != nil {
			t.Error(err)
		}
	}
	if info, err := os.Stat(dir(w)); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the folder: %v, %v", info.Mode(), err)
	}
	lit(t, w, p.PID)
}

// plant leaves a document and a dead socket under a process id.
func plant(t *testing.T, w *rig.World, pid int) {
	t.Helper()
	data, err := json.Marshal(beacon.Document{Schema: beacon.Schema, PID: pid, State: lifecycle.Working, Instance: "old"})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(beacon.Path(dir(w), pid), data, 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir(w), fmt.Sprintf("%d.sock", pid)), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	_ = l.Close()
}
