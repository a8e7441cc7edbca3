//go:build linux

package overwrite

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creachadair/jrpc2"

	"switchboard/e2e/rig"
	"switchboard/internal/pihost"
)

// Times of the extension's (link.ts). It waits longer and longer before it
// starts a helper that dies often again; here that would only leave the files
// without a guard.
const (
	patience = 300 * time.Millisecond
	maxHold  = 2 * time.Second
	restart  = 50 * time.Millisecond
)

type fields map[string]any

// fault is why a question to the sidecar got no answer. The extension lets the
// tool run then.
type fault string

const (
	late   fault = "late"        // no answer in time
	deaf   fault = "deaf"        // not asked: an earlier answer was late, and nothing was heard since
	died   fault = "died"        // before it answered, and the next one did not come in time
	absent fault = "no sidecar"  // not asked: the next one has not started yet
	failed fault = "error (bug)" // the answer is an error
)

// session plays one Pi with the extension: a process, and "switchboard attach"
// for it, started again whenever it dies.
type session struct {
	t    *testing.T
	name string
	dir  string
	env  []string
	pi   *exec.Cmd // stands for Pi's process

	running sync.WaitGroup

	mu     sync.Mutex // guards all below
	link   *link      // nil while there is none
	open   []fields   // events that began something
	status string
	holds  int
	kills  int
	left   bool
}

// join starts a session, and ends it with the test.
func join(t *testing.T, w *rig.World, name string, env ...string) *session {
	t.Helper()
	s := &session{t: t, name: name, dir: w.Dir, env: w.Env(name, env...), pi: exec.Command("sleep", "3600")}
	s.pi.Env = s.env
	if err := s.pi.Start(); err != nil {
		t.Fatal(err)
	}
	started := make(chan struct{})
	program := rig.Binary(t)
	s.running.Go(func() { s.keep(program, started) })
	t.Cleanup(s.leave)
	<-started
	return s
}

// keep keeps a sidecar running, as the extension does.
func (s *session) keep(program string, started chan struct{}) {
	for {
		l, err := startLink(s, program)
		if err != nil {
			s.t.Errorf("start %s's sidecar: %v", s.name, err)
		}
		if started != nil {
			close(started)
			started = nil
		}
		if err != nil {
			return
		}
		l.read()
		s.mu.Lock()
		s.link = nil
		left := s.left
		s.mu.Unlock()
		close(l.dead)
		if !left && !l.killed() {
			s.t.Errorf("%s's sidecar ended by itself: %v\n%s", s.name, l.cmd.ProcessState, l.stderr.String())
		}
		if left {
			return
		}
		time.Sleep(restart)
	}
}

// hello introduces the session; the caller holds mu.
func (s *session) hello() fields {
	return fields{
		"protocol": pihost.Protocol, "version": "test", "session": fields{"id": "id-" + s.name, "name": s.name},
		"cwd": s.dir, "model": "test/none", "mode": "rpc", "pid": s.pi.Process.Pid, "idle": false, "open": s.open,
		"now": snapshot, "inContext": []string{},
	}
}

var snapshot = fields{"pending": false, "usage": fields{"tokens": nil, "contextWindow": nil, "percent": nil}}

// current is the sidecar of this moment, or nil.
func (s *session) current() *link {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.link
}

// ready reports whether there is a sidecar that has said welcome and answers.
func (s *session) ready() bool {
	l := s.current()
	if l == nil || l.isDeaf() {
		return false
	}
	select {
	case <-l.welcome:
		return true
	default:
		return false
	}
}

func (s *session) footer() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.status
}

// kill is kill -9 for the sidecar.
func (s *session) kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.link != nil && !s.left {
		s.kills++
		_ = s.link.cmd.Process.Kill()
	}
}

// leave ends the session as Pi's quit does.
func (s *session) leave() {
	s.mu.Lock()
	s.left = true
	l := s.link
	s.mu.Unlock()
	if l != nil {
		l.write(fields{"method": "bye", "params": fields{"reason": "quit"}})
		_ = l.in.Close()
		watchdog := time.AfterFunc(rig.Watchdog, func() { _ = l.cmd.Process.Kill() })
		defer watchdog.Stop()
	}
	s.running.Wait()
	_ = s.pi.Process.Kill()
	_ = s.pi.Wait()
}

// event tells the sidecar what happens in Pi, and keeps what its successor has
// to know.
func (s *session) event(kind, call, tool string) {
	e := fields{"type": kind, "at": time.Now().UnixMilli(), "callId": call, "tool": tool}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch kind {
	case "tool_execution_start":
		s.open = append(s.open, e)
	case "tool_execution_end":
		s.open = nil // there is one call at a time
	}
	if s.link != nil {
		s.link.write(fields{"method": "event", "params": e})
	}
}

// message is one answer of the model: what Pi may be held up for in it.
type message struct {
	s    *session
	left time.Duration
}

func (s *session) message() *message { return &message{s, patience} }

// ask asks as the extension does, and reads the answer into result. When the
// sidecar dies over it, the next one is asked.
func (m *message) ask(method string, params fields, result any) fault {
	for {
		f := m.askOnce(method, params, result)
		if f != died && f != absent {
			return f
		}
		began := time.Now()
		for m.s.current() == nil && time.Since(began) < m.left {
			time.Sleep(time.Millisecond)
		}
		if m.left -= time.Since(began); m.left <= 0 || m.s.current() == nil {
			return f
		}
	}
}

func (m *message) askOnce(method string, params fields, result any) fault {
	l := m.s.current()
	switch {
	case l == nil:
		return absent
	case l.isDeaf() || m.left <= 0:
		return deaf
	}
	began := time.Now()
	params["waitMs"], params["sentAt"] = m.left.Milliseconds(), began.UnixMilli()
	call, _ := params["callId"].(string)
	hold := make(chan time.Duration, 8)
	if method == "toolCall" {
		l.onHold(call, hold)
		defer l.onHold(call, nil)
	}
	id, answer := l.send(method, params)
	timer := time.NewTimer(m.left)
	defer timer.Stop()
	held := false
	defer func() {
		if !held {
			m.left -= time.Since(began)
		}
	}()
	for {
		select {
		case a := <-answer:
			return a.into(result)
		case max := <-hold:
			held = true
			timer.Reset(min(max, maxHold) + patience)
		case <-l.dead:
			select {
			case a := <-answer: // its last words
				return a.into(result)
			default:
				return died
			}
		case <-timer.C:
			if !l.giveUp(id) {
				a := <-answer
				return a.into(result)
			}
			return late
		}
	}
}

// spoken is a line of the conversation.
type spoken struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

func (a spoken) into(result any) fault {
	var err struct{ Code int }
	if json.Unmarshal(a.Error, &err) == nil && jrpc2.Code(err.Code) == jrpc2.DeadlineExceeded {
		return late // it says so itself, just before we would
	}
	if a.Error != nil || json.Unmarshal(a.Result, result) != nil {
		return failed + fault(": "+string(a.Error))
	}
	return ""
}

// link is the line to one sidecar.
type link struct {
	s       *session
	cmd     *exec.Cmd
	in      io.WriteCloser
	out     io.Reader
	stderr  bytes.Buffer
	welcome chan struct{} // closed when hello was answered
	dead    chan struct{} // closed when it has ended and all it said was read

	mu      sync.Mutex // guards all below
	seq     int
	pending map[string]chan spoken
	holds   map[string]chan time.Duration
	silent  bool // an answer was late, and nothing was heard since
}

// startLink starts a sidecar and says hello. As with the extension, others may
// ask before that is answered.
func startLink(s *session, program string) (*link, error) {
	l := &link{
		s: s, cmd: exec.Command(program, "attach"), welcome: make(chan struct{}), dead: make(chan struct{}),
		pending: make(map[string]chan spoken), holds: make(map[string]chan time.Duration),
	}
	l.cmd.Dir, l.cmd.Env, l.cmd.Stderr = s.dir, s.env, &l.stderr
	var err error
	if l.in, err = l.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if l.out, err = l.cmd.StdoutPipe(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := l.cmd.Start(); err != nil {
		return nil, err
	}
	_, welcome := l.send("hello", s.hello())
	s.link = l
	s.running.Go(func() {
		select {
		case a := <-welcome:
			var w struct {
				Problem string `json:"problem"`
			}
			if f := a.into(&w); f != "" || w.Problem != "" {
				s.t.Errorf("%s's hello: %s%s", s.name, f, w.Problem)
			}
			close(l.welcome)
		case <-l.dead:
		}
	})
	return l, nil
}

// killed reports whether it ended by a kill -9.
func (l *link) killed() bool {
	ws, ok := l.cmd.ProcessState.Sys().(syscall.WaitStatus)
	return ok && ws.Signaled() && ws.Signal() == syscall.SIGKILL
}

func (l *link) send(method string, params fields) (id int, answer <-chan spoken) {
	reply := make(chan spoken, 1)
	l.mu.Lock()
	l.seq++
	id = l.seq
	l.pending[fmt.Sprint(id)] = reply
	l.mu.Unlock()
	l.write(fields{"id": id, "method": method, "params": params})
	return id, reply
}

// write says something. A sidecar that died does not hear it.
func (l *link) write(m fields) {
	m["jsonrpc"] = "2.0"
	line, err := json.Marshal(m)
	if err != nil {
		l.s.t.Errorf("encode: %v", err)
		return
	}
	_, _ = l.in.Write(append(line, '\n')) // one write, so that lines don't mix
}

// read takes what the sidecar says until it has ended.
func (l *link) read() {
	for lines := bufio.NewReader(l.out); ; {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			break
		}
		var m spoken
		if err := json.Unmarshal(line, &m); err != nil {
			l.s.t.Errorf("%s's sidecar said %q", l.s.name, line)
			continue
		}
		l.hear(m)
	}
	_ = l.cmd.Wait()
}

func (l *link) hear(m spoken) {
	l.mu.Lock()
	l.silent = false
	answer := l.pending[string(m.ID)]
	if m.Method == "" {
		delete(l.pending, string(m.ID))
	}
	l.mu.Unlock()
	switch {
	case m.Method == "":
		if answer != nil {
			answer <- m
		}
	case m.ID != nil: // it asks for a snapshot
		l.write(fields{"id": m.ID, "result": snapshot})
	default:
		l.told(m)
	}
}

func (l *link) told(m spoken) {
	var p struct {
		Text   string `json:"text"`
		CallID string `json:"callId"`
		MS     int64  `json:"ms"`
	}
	_ = json.Unmarshal(m.Params, &p) // not all have these
	switch m.Method {
	case "status":
		l.s.mu.Lock()
		l.s.status = p.Text
		l.s.mu.Unlock()
	case "hold":
		l.mu.Lock()
		hold := l.holds[p.CallID]
		l.mu.Unlock()
		if hold != nil {
			l.s.mu.Lock()
			l.s.holds++
			l.s.mu.Unlock()
			hold <- time.Duration(p.MS) * time.Millisecond
		}
	}
}

func (l *link) onHold(call string, hold chan time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.holds[call] = hold
}

func (l *link) isDeaf() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.silent
}

// giveUp stops waiting for an answer, unless it has come.
func (l *link) giveUp(id int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, waiting := l.pending[fmt.Sprint(id)]; !waiting {
		return false
	}
	delete(l.pending, fmt.Sprint(id))
	l.silent = true
	return true
}

// The tools of Pi. They know nothing of each other.

func readTool(path string) (string, error) {
	data, err := os.ReadFile(path)
	return string(data), err
}

// writeTool writes a whole file: it is empty for a moment, with slowly for
// that long.
func writeTool(path, text string, slowly time.Duration) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	time.Sleep(slowly)
	_, err = io.Copy(f, strings.NewReader(text))
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}
