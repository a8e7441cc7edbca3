package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"time"
)

// messageBetweenSidecars: from the tool call of one session's model, as its
// sidecar is told of it, to the wake that the other's sidecar asks for.
func messageBetweenSidecars(l *lab) ([]figure, error) {
	root, err := l.folder()
	if err != nil {
		return nil, err
	}
	both, err := l.crowd(root, 2)
	if err != nil {
		return nil, err
	}
	defer both.leave()
	floor, err := l.couriers()
	if err != nil {
		return nil, err
	}
	defer floor.end()

	post := post{from: both[0], to: both[1]}
	o, f, err := l.inTurns(l.rounds(2000, 50), post.round, floor.round)
	if err != nil {
		return nil, err
	}
	return []figure{{
		what: "message, sidecar to sidecar", unit: "ms", ours: o, floor: f,
		budget: []limit{p50Within(5), p99Within(10)},
	}}, nil
}

const text = "The parser is ready: src/parser.go, with tests. Please look at it before you go on."

// post sends from one sidecar to another.
type post struct{ from, to *sidecar }

func (p post) round() (float64, error) {
	id, sent, err := p.from.send("tool", touchtone(map[string]any{"action": "send", "to": p.to.id, "message": text}))
	if err != nil {
		return 0, err
	}
	wake, err := p.to.await(func(m message) bool { return m.Method == "wake" })
	if err != nil {
		return 0, err
	}
	took := ms(wake.at.Sub(sent))

	// The rest brings both back to where they were: the message is in the
	// recipient's conversation, its run over and its inbox empty.
	var handover struct {
		Batch   int
		Message struct {
			Details struct{ IDs []string }
		}
	}
	if err := json.Unmarshal(wake.Params, &handover); err != nil {
		return 0, err
	}
	ids := handover.Message.Details.IDs
	if len(ids) != 1 {
		return 0, fmt.Errorf("the wake hands %d messages over, want 1", len(ids))
	}
	answer, err := p.from.answer(id)
	if err != nil {
		return 0, err
	}
	var r toolResult
	if err := json.Unmarshal(answer.Result, &r); err != nil || r.IsError {
		return 0, fmt.Errorf("send: %s", answer.Result)
	}
	if err := p.to.notify("woken", map[string]any{"batch": handover.Batch, "accepted": true, "idle": false}); err != nil {
		return 0, err
	}
	if err := p.to.event("agent_start", nil); err != nil {
		return 0, err
	}
	if err := p.to.event("agent_settled", map[string]any{"idle": true, "inContext": ids}); err != nil {
		return 0, err
	}
	if err := p.to.event("look", map[string]any{"idle": true, "after": "agent_settled"}); err != nil {
		return 0, err
	}
	return took, p.to.quiet()
}

// quiet returns when the sidecar has done all that it was told. A boundary
// that takes nothing is a question behind all the others.
func (s *sidecar) quiet() error {
	_, err := s.call("boundary", map[string]any{
		"at": "turn-end", "closed": true, "waitMs": watchdog.Milliseconds(), "sentAt": time.Now().UnixMilli(),
	})
	return err
}

// couriers is a pair of processes that pass files on and ring.
type couriers struct{ from, to *child }

func (l *lab) couriers() (couriers, error) {
	dir, err := l.folder()
	if err != nil {
		return couriers{}, err
	}
	var dirs [2]string
	for i := range dirs {
		if dirs[i], err = l.folder(); err != nil {
			return couriers{}, err
		}
	}
	bells := [2]string{filepath.Join(dir, "0.sock"), filepath.Join(dir, "1.sock")}
	var c couriers
	for i, p := range []**child{&c.from, &c.to} {
		cmd := exec.CommandContext(l.ctx, l.programs.courier, dirs[i], bells[i], dirs[1-i], bells[1-i])
		if *p, err = startChild(cmd); err == nil {
			_, err = (*p).read() // it listens
		}
		if err != nil {
			c.end()
			return couriers{}, err
		}
	}
	return c, nil
}

func (c couriers) end() {
	for _, p := range []*child{c.from, c.to} {
		if p != nil {
			p.end()
		}
	}
}

// parcel is of the size of an envelope.
var parcel = append(bytes.Repeat([]byte("x"), 400), '\n')

func (c couriers) round() (float64, error) {
	sent, err := c.from.write(parcel)
	if err != nil {
		return 0, err
	}
	got, err := c.to.read()
	if err != nil {
		return 0, err
	}
	if !bytes.Equal(got.text, parcel) {
		return 0, errors.New("the courier brought something else")
	}
	return ms(got.at.Sub(sent)), nil
}
