package rig

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Mode is how Pi is run.
type Mode string

// Pi's modes without a terminal. The prompt of JSON and Print is the last of
// [Options.Args].
const (
	RPC   Mode = "rpc"
	JSON  Mode = "json"
	Print Mode = "print"
)

// Options says how to start Pi. The zero Options is an RPC process with the
// extension of this checkout, in the world's working folder.
type Options struct {
	Session string   // the script it plays, "" means "main"
	Cwd     string   // "" means [World.Dir]
	Mode    Mode     // "" means RPC; a TUI has no other
	Args    []string // more arguments
	Env     []string // more environment

	NoExtension    bool     // without Switchboard's extension
	ExtensionPaths []string // more extensions
}

func (o Options) withDefaults(w *World) Options {
	o.Session = cmp.Or(o.Session, "main")
	o.Cwd = cmp.Or(o.Cwd, w.Dir)
	o.Mode = cmp.Or(o.Mode, RPC)
	return o
}

// command returns Pi's argument vector and environment.
func (w *World) command(o Options, mode ...string) (argv, env []string) {
	w.t.Helper()
	argv = append([]string{filepath.Join(w.pins.NodeDir, "node"), w.pins.PiCLI}, mode...)
	if !o.NoExtension {
		argv = append(argv, "-e", filepath.Join(ModuleRoot(w.t), "extension"))
		env = append(env, "SWITCHBOARD_BIN="+Binary(w.t))
	}
	for _, path := range o.ExtensionPaths {
		argv = append(argv, "-e", path)
	}
	return append(argv, o.Args...), w.Env(o.Session, append(env, o.Env...)...)
}

// Pi is a running or ended Pi process.
type Pi struct {
	PID     int
	Session string // the script it plays

	t       testing.TB
	cmd     *exec.Cmd
	stdin   io.WriteCloser // nil but in RPC mode
	started time.Time
	exited  chan struct{}

	mu      sync.Mutex // guards all below
	stdout  bytes.Buffer
	line    int // where in stdout the line being read starts
	stderr  bytes.Buffer
	events  []Event
	changed chan struct{} // closed and replaced with every event
	mark    int
	lastID  int
}

// StartPi starts Pi and returns at once; the first command waits until it is
// ready. The process is killed when the test ends, if it has not ended before.
func (w *World) StartPi(t testing.TB, o Options) *Pi {
	t.Helper()
	o = o.withDefaults(w)
	mode := []string{"--mode", string(o.Mode)}
	if o.Mode == Print {
		mode = []string{"-p"}
	}
	argv, env := w.command(o, mode...)
	p := &Pi{
		Session: o.Session,
		t:       t,
		cmd:     exec.Command(argv[0], argv[1:]...),
		started: time.Now(),
		exited:  make(chan struct{}),
		changed: make(chan struct{}),
	}
	p.cmd.Dir, p.cmd.Env = o.Cwd, env
	p.cmd.Stdout = writerFunc(p.readEvents)
	if o.Mode == Print {
		p.cmd.Stdout = writerFunc(p.readText)
	}
	p.cmd.Stderr = writerFunc(p.readStderr)
	// A grandchild that kept Pi's output open must not keep the test.
	p.cmd.WaitDelay = 5 * time.Second
	if o.Mode == RPC {
		stdin, err := p.cmd.StdinPipe()
		if err != nil {
			t.Fatalf("rig: %v", err)
		}
		p.stdin = stdin
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatalf("rig: start Pi: %v", err)
	}
	p.PID = p.cmd.Process.Pid
	go func() {
		defer close(p.exited)
		// How it ended is in ProcessState; the error says no more.
		_ = p.cmd.Wait()
	}()
	t.Cleanup(p.close)
	return p
}

func (p *Pi) close() {
	_ = p.cmd.Process.Kill() // an error means that it has ended
	<-p.exited
	if !p.t.Failed() {
		return
	}
	events := p.Events()
	var b strings.Builder
	fmt.Fprintf(&b, "Pi %q, pid %d, %v, its last events:\n", p.Session, p.PID, p.cmd.ProcessState)
	for _, e := range events[max(0, len(events)-40):] {
		fmt.Fprintln(&b, e)
	}
	p.t.Logf("%sstandard error:\n%s", &b, tail(p.Stderr()))
}

// tail returns the end of a long text.
func tail(text string) string {
	const limit = 4000
	return strings.ToValidUTF8(text[max(0, len(text)-limit):], "")
}

type writerFunc func([]byte)

func (f writerFunc) Write(b []byte) (int, error) {
	f(b)
	return len(b), nil
}

func (p *Pi) readText(b []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stdout.Write(b)
}

// readEvents splits at line feeds only, as Pi's protocol wants it, and takes
// lines of any length.
func (p *Pi) readEvents(b []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	scanned := p.stdout.Len()
	p.stdout.Write(b)
	for {
		all := p.stdout.Bytes()
		n := bytes.IndexByte(all[scanned:], '\n')
		if n < 0 {
			return
		}
		end := scanned + n
		if line := bytes.TrimSpace(all[p.line:end]); len(line) > 0 {
			p.events = append(p.events, decodeEvent(bytes.Clone(line), time.Since(p.started)))
		}
		p.line, scanned = end+1, end+1
		close(p.changed)
		p.changed = make(chan struct{})
	}
}

func (p *Pi) readStderr(b []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stderr.Write(b)
}

// Output waits until Pi has ended and returns its standard output: what JSON
// and Print modes are about.
func (p *Pi) Output() string {
	p.t.Helper()
	p.WaitExit(Watchdog)
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stdout.String()
}

// Stderr returns the standard error so far.
func (p *Pi) Stderr() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stderr.String()
}

// Events returns all events so far.
func (p *Pi) Events() []Event {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]Event(nil), p.events...)
}

// Since returns the events after a mark.
func (p *Pi) Since(mark int) []Event { return p.Events()[mark:] }

// Mark makes later waits look only at events that are still to come, and
// returns the mark for [Pi.Since].
func (p *Pi) Mark() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mark = len(p.events)
	return p.mark
}

// Wait returns the first event since the mark that pred accepts, also one that
// has come already. It fails the test when there is none in time or Pi ends.
func (p *Pi) Wait(pred func(Event) bool, timeout time.Duration) Event {
	p.t.Helper()
	p.mu.Lock()
	mark := p.mark
	p.mu.Unlock()
	return p.waitFrom(mark, pred, timeout)
}

func (p *Pi) waitFrom(next int, pred func(Event) bool, timeout time.Duration) Event {
	p.t.Helper()
	deadline := time.NewTimer(timeout)
	defer deadline.Stop()
	for ended := false; ; {
		p.mu.Lock()
		events, changed := p.events[next:], p.changed
		p.mu.Unlock()
		for _, e := range events {
			if pred(e) {
				return e
			}
		}
		next += len(events)
		if ended {
			p.t.Fatalf("Pi %q ended (%v) before the event", p.Session, p.cmd.ProcessState)
		}
		select {
		case <-changed:
		case <-p.exited:
			ended = true // look once more: its last words are in now
		case <-deadline.C:
			p.t.Fatalf("no such event from Pi %q in %v", p.Session, timeout)
		}
	}
}

// Send sends a command and returns its id, which it makes up unless the command
// has one: an "extension_ui_response" carries the id of its request.
func (p *Pi) Send(cmd map[string]any) (id string) {
	p.t.Helper()
	id, ok := cmd["id"].(string)
	if !ok {
		p.mu.Lock()
		p.lastID++
		id = fmt.Sprintf("rig-%d", p.lastID)
		p.mu.Unlock()
	}
	line := map[string]any{"id": id}
	merge(line, cmd)
	raw, err := json.Marshal(line)
	if err != nil {
		p.t.Fatalf("rig: %v", err)
	}
	if p.stdin == nil {
		p.t.Fatalf("rig: Pi %q takes no commands: it is not in RPC mode", p.Session)
	}
	if _, err := p.stdin.Write(append(raw, '\n')); err != nil {
		p.t.Fatalf("rig: send %s to Pi %q: %v", raw, p.Session, err)
	}
	return id
}

// Cmd sends a command and waits for its response. A refusal is a response too.
func (p *Pi) Cmd(cmd map[string]any, timeout time.Duration) Response {
	p.t.Helper()
	p.mu.Lock()
	from := len(p.events)
	p.mu.Unlock()
	id := p.Send(cmd)
	e := p.waitFrom(from, func(e Event) bool { return e.Type == "response" && e.Str("id") == id }, timeout)
	var r Response
	if err := json.Unmarshal(e.Raw, &r); err != nil {
		p.t.Fatalf("rig: response %s: %v", e.Raw, err)
	}
	return r
}

// must is Cmd for commands that are expected to succeed.
func (p *Pi) must(cmd map[string]any) Response {
	p.t.Helper()
	r := p.Cmd(cmd, Watchdog)
	if !r.Success {
		p.t.Fatalf("Pi %q refused %v: %s", p.Session, cmd["type"], r.Error)
	}
	return r
}

// Prompt marks, sends a prompt and waits until Pi has taken it. A text that
// starts with "/" runs an extension's command, after which nothing settles.
func (p *Pi) Prompt(text string) {
	p.t.Helper()
	p.Mark()
	p.must(map[string]any{"type": "prompt", "message": text})
}

// Settled waits until a run has ended since the mark, with its retries and
// queued messages, and returns that event.
func (p *Pi) Settled() Event {
	p.t.Helper()
	return p.Wait(OfType("agent_settled"), Watchdog)
}

// Run sends a prompt, waits until Pi has settled and returns the last text of
// the model.
func (p *Pi) Run(text string) string {
	p.t.Helper()
	p.Prompt(text)
	p.Settled()
	return p.Answer()
}

// Answer returns the last text of the model since the mark.
func (p *Pi) Answer() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	text := ""
	for _, e := range p.events[p.mark:] {
		if e.Type == "message_end" && e.Str("message", "role") == "assistant" {
			text = e.Text()
		}
	}
	return text
}

// Abort ends the current run and waits until Pi has taken the command.
func (p *Pi) Abort() {
	p.t.Helper()
	p.must(map[string]any{"type": "abort"})
}

// State asks Pi for its state. It doubles as a wait until Pi is ready.
func (p *Pi) State() State {
	p.t.Helper()
	r := p.must(map[string]any{"type": "get_state"})
	var s State
	if err := json.Unmarshal(r.Data, &s); err != nil {
		p.t.Fatalf("rig: state %s: %v", r.Data, err)
	}
	return s
}

// SessionID returns the id of the current session.
func (p *Pi) SessionID() string { p.t.Helper(); return p.State().SessionID }

// SessionFile returns the file of the current session, which may not exist yet.
func (p *Pi) SessionFile() string { p.t.Helper(); return p.State().SessionFile }

// Notifications returns what extensions have shown to the human so far.
func (p *Pi) Notifications() []Notification {
	var list []Notification
	for _, e := range p.uiRequests("notify") {
		list = append(list, Notification{Level: e.Str("notifyType"), Text: e.Str("message")})
	}
	return list
}

// Statuses returns the status line as it is now, by key.
func (p *Pi) Statuses() map[string]string {
	statuses := map[string]string{}
	for _, e := range p.uiRequests("setStatus") {
		if text := e.Str("statusText"); text != "" {
			statuses[e.Str("statusKey")] = text
		} else {
			delete(statuses, e.Str("statusKey"))
		}
	}
	return statuses
}

func (p *Pi) uiRequests(method string) []Event {
	var list []Event
	for _, e := range p.Events() {
		if e.Type == "extension_ui_request" && e.Str("method") == method {
			list = append(list, e)
		}
	}
	return list
}

// ExtensionErrors returns the errors that handlers of extensions threw so far.
func (p *Pi) ExtensionErrors() []string {
	var list []string
	for _, e := range p.Events() {
		if e.Type == "extension_error" {
			list = append(list, e.Str("event")+": "+e.Str("error"))
		}
	}
	return list
}

// Sidecars returns the ids of Pi's living "switchboard attach" children.
func (p *Pi) Sidecars() []int { return Sidecars(p.PID) }

// Quit asks Pi to leave, as a client that goes away does, and returns its exit
// code.
func (p *Pi) Quit() int {
	p.t.Helper()
	if p.stdin != nil {
		_ = p.stdin.Close() // an error means that it has been closed before
	}
	return p.WaitExit(Watchdog)
}

// Kill sends Pi a signal.
func (p *Pi) Kill(sig syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(sig); err != nil {
		p.t.Fatalf("rig: signal Pi %q: %v", p.Session, err)
	}
}

// WaitExit waits until Pi has ended and returns its exit code, -1 if a signal
// ended it.
func (p *Pi) WaitExit(timeout time.Duration) int {
	p.t.Helper()
	select {
	case <-p.exited:
	case <-time.After(timeout):
		p.t.Fatalf("Pi %q has not ended in %v", p.Session, timeout)
	}
	return p.cmd.ProcessState.ExitCode()
}

// Exited reports whether Pi has ended.
func (p *Pi) Exited() bool {
	select {
	case <-p.exited:
		return true
	default:
		return false
	}
}
