package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"time"

	"switchboard/internal/beacon"
	"switchboard/internal/lifecycle"
)

// lit attaches a sidecar and returns what its beacon says.
func (l *lab) lit() (*sidecar, beacon.Document, error) {
	root, err := l.folder()
	if err != nil {
		return nil, beacon.Document{}, err
	}
	s, err := l.attach(root, "one")
	if err != nil {
		return nil, beacon.Document{}, err
	}
	dir := filepath.Join(root, ".pi", "agent", "beacon")
	for began := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		d, err := beacon.Read(dir, s.pi.cmd.Process.Pid)
		if err == nil {
			return s, d, nil
		}
		if time.Since(began) > watchdog {
			s.leave()
			return nil, d, fmt.Errorf("no beacon in %v: %w", watchdog, err)
		}
	}
}

// beam is the floor: a child with a socket.
type beam struct {
	*child
	socket string
}

func (l *lab) beam() (*beam, error) {
	dir, err := l.folder()
	if err != nil {
		return nil, err
	}
	b := &beam{socket: filepath.Join(dir, "beam.sock")}
	if b.child, err = startChild(exec.CommandContext(l.ctx, l.programs.beam, b.socket)); err != nil {
		return nil, err
	}
	if _, err := b.read(); err != nil { // it listens
		b.end()
		return nil, err
	}
	return b, nil
}

// beaconTransition: from an event of Pi's, as its sidecar is told of it, to the
// document that a subscriber has read.
func beaconTransition(l *lab) ([]figure, error) {
	s, d, err := l.lit()
	if err != nil {
		return nil, err
	}
	defer s.leave()
	sub, _, err := beacon.Subscribe(l.ctx, d.Socket)
	if err != nil {
		return nil, err
	}
	defer sub.Close()
	floor, err := l.beam()
	if err != nil {
		return nil, err
	}
	defer floor.end()
	conn, err := net.Dial("unix", floor.socket)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	in := bufio.NewReader(conn)
	// Once it has echoed, it knows the connection.
	if _, err := fmt.Fprintln(conn, "hello"); err != nil {
		return nil, err
	}
	if _, err := in.ReadString('\n'); err != nil {
		return nil, err
	}

	become := func(state lifecycle.State, typ string, fields map[string]any) (float64, error) {
		began := time.Now()
		if err := s.event(typ, fields); err != nil {
			return 0, err
		}
		d, err := sub.Next()
		took := ms(time.Since(began))
		if err == nil && d.State != state {
			err = fmt.Errorf("after %s it is %s, want %s", typ, d.State, state)
		}
		return took, err
	}
	seen := func() (float64, error) {
		took, err := become(lifecycle.Working, "agent_start", nil)
		if err != nil {
			return 0, err
		}
		_, err = become(lifecycle.Idle, "look", map[string]any{"idle": true, "after": "agent_settled"})
		return took, err
	}
	line, err := document(d)
	if err != nil {
		return nil, err
	}
	passed := func() (float64, error) {
		began, err := floor.write(line)
		if err != nil {
			return 0, err
		}
		_, err = in.ReadBytes('\n')
		return ms(time.Since(began)), err
	}
	o, f, err := l.inTurns(l.rounds(3000, 50), seen, passed)
	if err != nil {
		return nil, err
	}
	return []figure{{what: "transition, event to subscriber", unit: "ms", ours: o, floor: f}}, nil
}

// document is a line of the size of a beacon's.
func document(d beacon.Document) ([]byte, error) {
	line, err := json.Marshal(d)
	return append(line, '\n'), err
}

// beaconQuery: from dialling the socket to the document, when Pi is asked for
// it and when an answer of Pi's is young enough.
func beaconQuery(l *lab) ([]figure, error) {
	s, d, err := l.lit()
	if err != nil {
		return nil, err
	}
	defer s.leave()
	stop := s.answerSnapshots()
	defer stop()
	floor, err := l.beam()
	if err != nil {
		return nil, err
	}
	defer floor.end()
	line, err := document(d)
	if err != nil {
		return nil, err
	}
	query := func() (float64, error) {
		began := time.Now()
		now, err := beacon.Query(l.ctx, d.Socket)
		took := ms(time.Since(began))
		if err == nil && now.ContextUsage.Tokens == nil {
			err = fmt.Errorf("the answer knows nothing of Pi's: %+v", now)
		}
		return took, err
	}
	echoed := func() (float64, error) {
		began := time.Now()
		conn, err := net.Dial("unix", floor.socket)
		if err != nil {
			return 0, err
		}
		defer conn.Close()
		if _, err := conn.Write(line); err != nil {
			return 0, err
		}
		_, err = bufio.NewReader(conn).ReadBytes('\n')
		return ms(time.Since(began)), err
	}
	asking := func() (float64, error) {
		if err := l.sleep(60 * time.Millisecond); err != nil { // the last answer is too old then
			return 0, err
		}
		return query()
	}
	o, f, err := l.inTurns(l.rounds(200, 10), asking, echoed)
	if err != nil {
		return nil, err
	}
	figures := []figure{{what: "beacon query, Pi is asked", unit: "ms", ours: o, floor: f}}
	if o, f, err = l.inTurns(l.rounds(3000, 50), query, echoed); err != nil {
		return figures, err
	}
	return append(figures, figure{what: "beacon query, again within 50 ms", unit: "ms", ours: o, floor: f}), nil
}

// answerSnapshots answers the sidecar's questions at once, as an idle Pi does,
// until stop. Nobody else may read what the sidecar says meanwhile.
func (s *sidecar) answerSnapshots() (stop func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-done:
				return
			case l, ok := <-s.lines:
				var m message
				if !ok {
					return
				}
				if json.Unmarshal(l.text, &m) != nil || m.Method != "snapshot" {
					continue
				}
				answer := []byte(`{"jsonrpc":"2.0","id":ID,"result":{"pending":false,"usage":{"tokens":61234,"contextWindow":200000,"percent":30.6}}}` + "\n")
				_, _ = s.write(bytes.Replace(answer, []byte("ID"), m.ID, 1)) // an error means that it has ended
			}
		}
	}()
	return func() { close(done); <-ended }
}
