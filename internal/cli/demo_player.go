package cli

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/creachadair/jrpc2"
	"github.com/creachadair/jrpc2/channel"

	"switchboard/internal/delivery"
	"switchboard/internal/exchange"
	"switchboard/internal/pihost"
)

// player is one session of the demo. It does towards its sidecar what Pi and
// the extension do, in their order, and writes a session file like Pi's.
type player struct {
	demo          *demo
	name, id, cwd string
	env           []string
	file          string // the session's
	pi, sidecar   *child
	rpc           *jrpc2.Client
	wakes         chan handedOver
	sidecars      int // started so far
	calls         int // of tools so far
	tool          string

	mu      sync.Mutex // guards both below: wakes come at any time
	idle    bool
	refused int // wakes that came while it was not

	unwritten []string // lines that Pi keeps in memory until somebody has spoken
	spoken    bool
	parent    string // id of the last entry
	handed    []string
}

// handedOver is a message for the conversation, as the extension gets it.
type handedOver struct {
	Batch    int  `json:"batch"`
	Continue bool `json:"continue"`
	Message  struct {
		CustomType string           `json:"customType"`
		Content    string           `json:"content"`
		Display    bool             `json:"display"`
		Details    delivery.Details `json:"details"`
	} `json:"message"`
}

// dialed is a call of the tool touchtone.
type dialed struct {
	Action  string `json:"action"`
	To      string `json:"to,omitempty"`
	Message string `json:"message,omitempty"`
}

func (d dialed) String() string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(d) // strings always encode
	return strings.TrimSpace(b.String())
}

type fields map[string]any

// join brings a session up: its process, its sidecar, its place on the roster.
func (d *demo) join(name, id, cwd string) *player { return d.joinWith(name, id, cwd, d.env) }

func (d *demo) joinWith(name, id, cwd string, env []string) *player {
	p := &player{
		demo: d, name: name, id: id, cwd: cwd, env: env, idle: true, wakes: make(chan handedOver, 16),
		file: filepath.Join(d.dir, "pi", "sessions", name+".jsonl"),
	}
	d.players = append(d.players, p)
	if d.err == nil {
		p.pi, d.err = startChild(d.program, []string{"demo", "--stand-in"}, cwd, env)
	}
	p.startSidecar()
	d.say("%-8s in %-10s process %d, sidecar %d", name, p.place(), p.pi.pid(), p.owner())
	return p
}

// place is the working directory, as short as it can be told.
func (p *player) place() string {
	rel, err := filepath.Rel(p.demo.dir, p.cwd)
	if err != nil {
		return p.cwd
	}
	return filepath.ToSlash(rel)
}

func (p *player) key() exchange.SessionKey {
	return exchange.SessionKey{Host: exchange.PiHost, ID: p.id}
}

func (p *player) startSidecar() {
	d := p.demo
	if d.err != nil {
		return
	}
	c, err := startChild(d.program, []string{"attach"}, p.cwd, p.env)
	if err != nil {
		d.err = err
		return
	}
	p.sidecar = c
	p.sidecars++
	p.rpc = jrpc2.NewClient(channel.Line(c.stdout, c.stdin), &jrpc2.ClientOptions{OnNotify: p.told})
	var welcome struct {
		Problem string `json:"problem"`
	}
	p.request("hello", fields{
		"protocol": pihost.Protocol, "version": Version, "session": fields{"id": p.id, "file": p.file, "name": p.name},
		"cwd": p.cwd, "model": "demo/script", "mode": "tui", "pid": p.pi.pid(), "idle": p.isIdle(), "inContext": slices.Clone(p.handed),
	}, &welcome)
	d.expect(welcome.Problem == "", "%s", welcome.Problem)
	d.until(p.name+"'s sidecar has the session", func() bool { return p.owner() == c.pid() })
}

// owner is the process of the sidecar that the roster names for the session.
func (p *player) owner() int {
	for _, s := range p.demo.roster() {
		if s.Key == p.key() {
			return s.Owner.PID
		}
	}
	return 0
}

// answerWake starts a turn with what the sidecar hands over, if the session is at
// rest, and says so.
func (p *player) answerWake(h handedOver) {
	p.mu.Lock()
	accepted := p.idle
	if accepted {
		p.idle = false
	} else {
		p.refused++
	}
	p.mu.Unlock()
	if err := p.rpc.Notify(p.demo.ctx, "woken", fields{"batch": h.Batch, "accepted": accepted, "idle": false}); err != nil {
		return // the sidecar is gone; the demo sees that by itself
	}
	if accepted {
		p.wakes <- h
	}
}

// told takes what the sidecar says: a wake, or a line for the session's human.
func (p *player) told(req *jrpc2.Request) {
	var h handedOver
	if req.Method() == "wake" && req.UnmarshalParams(&h) == nil {
		go p.answerWake(h) // the client reads nothing else while it is in here
		return
	}
	var line struct {
		Text string `json:"text"`
	}
	if req.Method() == "tell" && req.UnmarshalParams(&line) == nil {
		p.demo.tell.line("On " + p.name + "'s screen: " + line.Text)
	}
}

func (p *player) request(method string, params fields, result any) {
	if p.demo.err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(p.demo.ctx, patience)
	defer cancel()
	err := p.rpc.CallResult(ctx, method, params, result)
	p.demo.check(p.name+": "+method, p.sidecar.explain(err))
}

func (p *player) notify(method string, params fields) {
	if p.demo.err == nil {
		p.demo.check(p.name+": "+method, p.sidecar.explain(p.rpc.Notify(p.demo.ctx, method, params)))
	}
}

func (p *player) event(kind string, more fields) {
	params := fields{"type": kind}
	for k, v := range more {
		params[k] = v
	}
	p.notify("event", params)
}

// boundary asks what is due, and puts it into the conversation.
func (p *player) boundary(at string, more fields) handedOver {
	var h *handedOver // null when nothing is due
	params := fields{"at": at, "now": fields{"usage": fields{"tokens": 1000, "contextWindow": 128_000}}, "waitMs": patience.Milliseconds(), "sentAt": time.Now().UnixMilli()}
	for k, v := range more {
		params[k] = v
	}
	p.request("boundary", params, &h)
	if h == nil {
		return handedOver{}
	}
	p.store(*h)
	return *h
}

// store puts a handover into the session, as Pi does.
func (p *player) store(h handedOver) {
	p.handed = append(p.handed, h.Message.Details.IDs...)
	p.entry("custom_message", fields{
		"customType": h.Message.CustomType, "content": h.Message.Content, "display": h.Message.Display, "details": h.Message.Details,
	})
}

// begin starts a run with a prompt by the session's human.
func (p *player) begin(prompt string) {
	h := p.prompted(prompt)
	p.demo.expect(h.Batch == 0, "something waited for %s already", p.name)
}

// prompted is begin for a session that has something to hear.
func (p *player) prompted(prompt string) handedOver {
	p.mu.Lock()
	p.idle = false
	p.mu.Unlock()
	h := p.boundary("before-run", fields{"byHuman": true, "prompt": prompt})
	p.speaks("user", prompt)
	p.runs()
	return h
}

// uses has the model call a tool on a file, in a turn of its own: do is what the
// tool does, if it may. It returns what its model hears of the guard.
func (p *player) uses(tool, file string, do func() error) (said string) {
	name := filepath.Base(file)
	p.startTool(tool, name)
	var verdict struct {
		Block  bool   `json:"block"`
		Reason string `json:"reason"`
	}
	call := fields{"tool": tool, "callId": p.callID(), "path": name, "waitMs": patience.Milliseconds(), "sentAt": time.Now().UnixMilli()}
	p.request("toolCall", call, &verdict)
	if said = verdict.Reason; !verdict.Block {
		if do != nil && p.demo.err == nil {
			p.demo.check(p.name+": "+p.tool, do())
		}
		var note struct {
			Text string `json:"text"`
		}
		p.request("toolDone", call, &note)
		said = note.Text
	}
	h := p.endTool()
	p.demo.expect(h.Batch == 0, "something was handed to %s that is no news", p.name)
	p.startTurn()
	return said
}

// begins starts the run that a wake asks for.
func (p *player) begins(h handedOver) {
	p.store(h)
	more := p.boundary("before-run", fields{"byHuman": false})
	p.demo.expect(more.Batch == 0, "a call came beside the one that woke %s", p.name)
	p.runs()
}

func (p *player) runs() {
	p.event("agent_start", nil)
	p.startTurn()
}

func (p *player) startTurn() { p.event("turn_start", nil) }

// startTool has the model call a tool, whose run then lasts until endTool.
func (p *player) startTool(name, what string) {
	p.calls++
	p.tool = name + " " + what
	p.speaks("assistant", p.tool)
	p.event("tool_execution_start", fields{"callId": p.callID(), "tool": name})
}

func (p *player) callID() string { return fmt.Sprintf("call_%d", p.calls) }

// endTool ends the tool, and the turn with it.
func (p *player) endTool() handedOver {
	p.event("tool_execution_end", fields{"callId": p.callID()})
	p.speaks("toolResult", "done")
	return p.boundary("turn-end", fields{"open": true, "closed": false})
}

// dials has the model call touchtone in a turn of its own, shows the call and
// the answer, and returns the id of the message that was sent.
func (p *player) dials(call dialed, fails bool) (id string) {
	p.demo.shows(p, call)
	p.startTool("touchtone", call.String())
	var result struct {
		Text    string `json:"text"`
		IsError bool   `json:"isError"`
		Details struct {
			ID string `json:"id"`
		} `json:"details"`
	}
	p.request("tool", fields{"tool": "touchtone", "callId": p.callID(), "params": call}, &result)
	p.demo.reads(result.Text)
	p.demo.expect(result.IsError == fails, "the call of touchtone: error %t, expected %t", result.IsError, fails)
	if call.Action == "send" && !fails {
		p.demo.expect(result.Details.ID != "", "the sent message has no id")
		p.demo.calls++
	}
	h := p.endTool()
	p.demo.expect(h.Batch == 0, "something was handed to %s that nobody sent", p.name)
	p.startTurn()
	return result.Details.ID
}

// finish ends the run with a last turn without tools.
func (p *player) finish() {
	p.speaks("assistant", "Done.")
	h := p.boundary("turn-end", fields{"open": false, "closed": false})
	p.event("agent_end", fields{"error": false})
	late := p.boundary("before-settle", fields{"open": false, "closed": false})
	p.demo.expect(h.Batch == 0 && late.Batch == 0, "something was handed to %s that nobody sent", p.name)
	p.mu.Lock()
	p.idle = true
	p.mu.Unlock()
	p.event("agent_settled", fields{"aborted": false, "idle": true, "inContext": slices.Clone(p.handed)})
	p.event("look", fields{"idle": true})
}

func (p *player) isIdle() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.idle
}

// woken waits for the sidecar to start a turn.
func (p *player) woken() handedOver {
	if p.demo.err != nil {
		return handedOver{}
	}
	select {
	case h := <-p.wakes:
		return h
	case <-p.demo.ctx.Done():
		p.demo.err = p.demo.ctx.Err()
	case <-time.After(patience):
		p.demo.err = fmt.Errorf("waited %s in vain for %s's turn to start", patience, p.name)
	}
	return handedOver{}
}

// quiet checks that for a moment nobody starts a turn here.
func (p *player) quiet() {
	p.demo.sleep(100 * time.Millisecond)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.demo.expect(len(p.wakes) == 0 && p.refused == 0, "somebody tried to start a turn of %s", p.name)
}

// killSidecar ends the sidecar without a chance to say goodbye.
func (p *player) killSidecar() {
	if p.demo.err != nil {
		return
	}
	p.demo.check("kill "+p.name+"'s sidecar", p.sidecar.kill())
	_ = p.rpc.Close() // it has no other end any more
}

// quit ends the session the way Pi does: a goodbye, the end of the sidecar's
// input, the end of Pi.
func (p *player) quit() {
	if p.demo.err != nil {
		return
	}
	p.notify("bye", fields{"reason": "quit"})
	p.demo.check(p.name+"'s sidecar", p.sidecar.end())
	_ = p.rpc.Close()
	p.demo.expect(p.owner() == 0, "%s said goodbye and is still on the roster", p.name)
	p.demo.check(p.name+"'s process", p.pi.end())
	p.sidecar, p.pi = nil, nil
}

// abandon ends the session's processes, whatever state they are in.
func (p *player) abandon() {
	for _, c := range []*child{p.pi, p.sidecar} { // without Pi no successor is waited for
		if c != nil {
			_ = c.end()
		}
	}
	if p.rpc != nil {
		_ = p.rpc.Close()
	}
	p.sidecar, p.pi, p.rpc = nil, nil, nil
}

// speaks stores a message of the conversation.
func (p *player) speaks(role, text string) {
	p.spoken = p.spoken || role == "user" || role == "assistant"
	p.entry("message", fields{"message": fields{"role": role, "content": []fields{{"type": "text", "text": text}}}})
}

// entry appends to the session file. Like Pi, it makes the file only when a
// human or a model has spoken.
func (p *player) entry(kind string, more fields) {
	if p.demo.err != nil {
		return
	}
	now := time.Now().UTC().Format("2006-01-02T15:04:05.000Z")
	if p.parent == "" {
		p.line(fields{"type": "session", "version": 3, "id": p.id, "timestamp": now, "cwd": p.cwd})
	}
	var id [4]byte
	_, _ = rand.Read(id[:]) // never fails
	e := fields{"type": kind, "id": hex.EncodeToString(id[:]), "parentId": nil, "timestamp": now}
	if p.parent != "" {
		e["parentId"] = p.parent
	}
	p.parent = hex.EncodeToString(id[:])
	for k, v := range more {
		e[k] = v
	}
	p.line(e)
	if p.spoken {
		p.demo.check("write "+p.name+"'s session file", p.flush())
	}
}

func (p *player) line(entry fields) {
	data, err := json.Marshal(entry)
	p.demo.check("write "+p.name+"'s session file", err)
	p.unwritten = append(p.unwritten, string(data)+"\n")
}

func (p *player) flush() error {
	if err := os.MkdirAll(filepath.Dir(p.file), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(p.file, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(strings.Join(p.unwritten, ""))
	p.unwritten = nil
	return errors.Join(err, f.Close())
}

// inFile counts how often the session file has a call.
func (p *player) inFile(id string) int {
	f, err := os.Open(p.file)
	if err != nil {
		p.demo.check("read "+p.name+"'s session file", err)
		return 0
	}
	defer f.Close()
	n := 0
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var e struct {
			Details delivery.Details `json:"details"`
		}
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			continue
		}
		for _, have := range e.Details.IDs {
			if have == id {
				n++
			}
		}
	}
	return n
}

// child is a process of this program with pipes.
type child struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout io.Reader
	stderr bytes.Buffer // not to be read before exited
	exited chan struct{}
	err    error // of the exit; not to be read before exited
}

func startChild(program string, args []string, dir string, env []string) (*child, error) {
	c := &child{cmd: exec.Command(program, args...), exited: make(chan struct{})}
	c.cmd.Dir, c.cmd.Env, c.cmd.Stderr = dir, env, &c.stderr
	detach(c.cmd)
	var err error
	if c.stdin, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if c.stdout, err = c.cmd.StdoutPipe(); err != nil {
		return nil, err
	}
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		c.err = c.cmd.Wait() // what it wrote last is nobody's business any more
		close(c.exited)
	}()
	return c, nil
}

// pid is the child's process id; 0 when it could not be started.
func (c *child) pid() int {
	if c == nil {
		return 0
	}
	return c.cmd.Process.Pid
}

// end closes the child's input and waits until it has ended. One that doesn't
// is killed.
func (c *child) end() error {
	_ = c.stdin.Close() // closed already: all the better
	select {
	case <-c.exited:
		return c.explain(c.err)
	case <-time.After(patience / 2):
		return errors.Join(errors.New("it did not end with its input"), c.kill())
	}
}

// kill is kill -9. It returns when the child has ended.
func (c *child) kill() error {
	if err := c.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-c.exited
	return nil
}

// explain adds to an error what the child said before it ended, if it did.
func (c *child) explain(err error) error {
	if err == nil {
		return nil
	}
	select {
	case <-c.exited:
		if words := delivery.Line(c.stderr.String(), 400); words != "" {
			return fmt.Errorf("%w: %s", err, words)
		}
	case <-time.After(20 * time.Millisecond): // it lives
	}
	return err
}
