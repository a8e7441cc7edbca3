package main

import (
	"fmt"
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
		id, sent, err := s.send("toolCall", map[string]any{
			"tool": "read", "callId": call, "waitMs": watchdog.Milliseconds(), "sentAt": time.Now().UnixMilli(),
		})
		if err != nil {
			return 0, err
		}
		m, err := s.answer(id)
		if err != nil {
			return 0, err
		}
		return ms(m.at.Sub(sent)), s.event("tool_execution_end", map[string]any{"callId": call})
	}
	question := []byte(`{"jsonrpc":"2.0","id":1,"method":"toolCall","params":{"tool":"read","callId":"call_1","waitMs":300,"sentAt":1764543000000}}` + "\n")
	echoed := func() (float64, error) {
		sent, err := echo.write(question)
		if err != nil {
			return 0, err
		}
		got, err := echo.read()
		return ms(got.at.Sub(sent)), err
	}
	o, f, err := l.inTurns(l.rounds(5000, 100), verdict, echoed)
	if err != nil {
		return nil, err
	}
	return []figure{{
		what: "hook inside the sidecar", unit: "ms", ours: o, floor: f,
		budget: []limit{p50Within(5)},
	}}, nil
}
