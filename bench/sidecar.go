package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// sidecar is a "switchboard attach" with the bench in the place of Pi's
// extension.
type sidecar struct {
	*child
	pi  *child // a process of its own: sessions that share one share a beacon
	id  string // of its session
	seq int
}

// message is any line of the conversation.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
	at     time.Time
}

// program returns a command of the switchboard program whose sessions meet in
// root.
func (l *lab) program(root string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(l.ctx, l.programs.switchboard, args...)
	cmd.Dir = root
	cmd.Env = []string{"SWITCHBOARD_DIR=" + root, "HOME=" + root, "PATH=" + os.Getenv("PATH")}
	if !l.teams { // news of a team would come along with the messages
		cmd.Env = append(cmd.Env, "PI_TELECOM_DISABLE=1")
	}
	return cmd
}

// attach starts a sidecar and returns once peers see its session, idle and
// without a session file.
func (l *lab) attach(root, id string) (*sidecar, error) {
	c, err := startChild(l.program(root, "attach"))
	if err != nil {
		return nil, err
	}
	s := &sidecar{child: c, id: id}
	if s.pi, err = l.waiter(); err == nil {
		err = s.join(root)
	}
	if err != nil {
		s.leave()
		return nil, fmt.Errorf("sidecar %s: %w: %s", id, err, strings.TrimSpace(c.said.String()))
	}
	return s, nil
}

func (s *sidecar) join(root string) error {
	hello := map[string]any{
		"protocol": 1, "version": "bench", "session": map[string]any{"id": s.id, "name": "name-" + s.id},
		"cwd": root, "model": "lab/bench", "mode": "rpc", "pid": s.pi.cmd.Process.Pid, "idle": true,
		"startedAt": time.Now().UnixMilli(),
	}
	m, err := s.call("hello", hello)
	if err != nil {
		return err
	}
	var welcome struct{ Problem string }
	if err := json.Unmarshal(m.Result, &welcome); err != nil {
		return err
	}
	if welcome.Problem != "" {
		return errors.New(welcome.Problem)
	}
	deadline := time.Now().Add(watchdog)
	for {
		r, err := s.tool(map[string]any{"action": "list", "to": s.id})
		switch {
		case err != nil:
			return err
		case !r.IsError && strings.Contains(r.Text, "1 live session"):
			return nil
		case time.Now().After(deadline):
			return fmt.Errorf("not on the roster in %v: %s", watchdog, r.Text)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// send writes a request and returns its id and when it was sent.
func (s *sidecar) send(method string, params any) (id string, at time.Time, err error) {
	s.seq++
	id = fmt.Sprint(s.seq)
	raw, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": s.seq, "method": method, "params": params})
	if err != nil {
		return "", time.Time{}, err
	}
	at, err = s.write(append(raw, '\n'))
	return id, at, err
}

func (s *sidecar) notify(method string, params any) error {
	raw, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "method": method, "params": params})
	if err != nil {
		return err
	}
	_, err = s.write(append(raw, '\n'))
	return err
}

// event forwards an event of Pi's.
func (s *sidecar) event(typ string, fields map[string]any) error {
	params := map[string]any{"type": typ}
	for k, v := range fields {
		params[k] = v
	}
	return s.notify("event", params)
}

// await returns the first message that pred accepts. Others are dropped.
func (s *sidecar) await(pred func(message) bool) (message, error) {
	for {
		l, err := s.read()
		if err != nil {
			return message{}, err
		}
		m := message{at: l.at}
		if err := json.Unmarshal(l.text, &m); err != nil {
			return message{}, fmt.Errorf("%q: %w", l.text, err)
		}
		if pred(m) {
			return m, nil
		}
	}
}

// answer waits for the answer to a request.
func (s *sidecar) answer(id string) (message, error) {
	m, err := s.await(func(m message) bool { return m.Method == "" && string(m.ID) == id })
	if err == nil && m.Error != nil {
		err = fmt.Errorf("refused: %s", m.Error)
	}
	return m, err
}

func (s *sidecar) call(method string, params any) (message, error) {
	id, _, err := s.send(method, params)
	if err != nil {
		return message{}, err
	}
	return s.answer(id)
}

type toolResult struct {
	Text    string
	IsError bool
}

// tool calls touchtone as a model does.
func (s *sidecar) tool(params map[string]any) (r toolResult, err error) {
	m, err := s.call("tool", touchtone(params))
	if err != nil {
		return r, err
	}
	return r, json.Unmarshal(m.Result, &r)
}

func touchtone(params map[string]any) map[string]any {
	return map[string]any{"tool": "touchtone", "callId": "call", "params": params}
}

// leave ends the sidecar as a Pi that quits does.
func (s *sidecar) leave() {
	_ = s.notify("bye", map[string]any{"reason": "quit"}) // an error means that it has ended
	s.end()
	if s.pi != nil {
		s.pi.end()
	}
}

// crowd is many sidecars in one exchange.
type crowd []*sidecar

// crowd starts n sidecars.
func (l *lab) crowd(root string, n int) (crowd, error) {
	const atOnce = 8
	all, errs := make(crowd, n), make([]error, n)
	var work sync.WaitGroup
	slots := make(chan struct{}, atOnce)
	for i := range all {
		slots <- struct{}{}
		work.Go(func() {
			defer func() { <-slots }()
			all[i], errs[i] = l.attach(root, fmt.Sprintf("s%04d", i))
		})
	}
	work.Wait()
	err := errors.Join(errs...)
	if err != nil {
		all.leave()
	}
	return all, err
}

func (c crowd) leave() {
	var work sync.WaitGroup
	for _, s := range c {
		if s != nil {
			work.Go(s.leave)
		}
	}
	work.Wait()
}
