package main

import (
	"fmt"
	"maps"
	"os/exec"
	"time"
)

// hookInSidecar: from the question whether a tool may run to the verdict, on
// the sidecar's stdin and stdout.
func hookInSidecar(l *lab) ([]figure, error) {
	root, err := l.folder()
	if err != nil {
		return nil, err
	}
	s, err := l.attach(root, "one")
	if err != nil {
		return nil, err
	}
	defer s.leave()
	echo, err := startChild(exec.CommandContext(l.ctx, l.programs.echo))
	if err != nil {
		return nil, err
	}
	defer echo.end()
	if err := s.event("agent_start", nil); err != nil {
		return nil, err
	}

	n := 0
	verdict := func() (float64, error) {
		n++
		call := fmt.Sprintf("call_%d", n)
		took, err := s.verdict(map[string]any{"tool": "read", "callId": call})
		if err != nil {
			return 0, err
		}
		return took, s.event("tool_execution_end", map[string]any{"callId": call})
	}
	o, f, err := l.inTurns(l.rounds(5000, 100), verdict, echo.echoed)
	if err != nil {
		return nil, err
	}
	return []figure{{
		what: "hook inside the sidecar", unit: "ms", ours: o, floor: f,
		budget: []limit{p50Within(5)},
	}}, nil
}

// verdict asks about a call and returns how long the answer took, in ms.
func (s *sidecar) verdict(call map[string]any) (float64, error) {
	id, sent, err := s.send("toolCall", timed(call))
	if err != nil {
		return 0, err
	}
	m, err := s.answer(id)
	return ms(m.at.Sub(sent)), err
}

// timed adds to a request when it was made and how long it waits.
func timed(request map[string]any) map[string]any {
	out := maps.Clone(request)
	out["waitMs"], out["sentAt"] = watchdog.Milliseconds(), time.Now().UnixMilli()
	return out
}

// echoed is the floor of verdict: the same line to a child that sends it back.
func (c *child) echoed() (float64, error) {
	question := []byte(`{"jsonrpc":"2.0","id":1,"method":"toolCall","params":{"tool":"read","callId":"call_1","waitMs":300,"sentAt":1764543000000}}` + "\n")
	sent, err := c.write(question)
	if err != nil {
		return 0, err
	}
	got, err := c.read()
	return ms(got.at.Sub(sent)), err
}
