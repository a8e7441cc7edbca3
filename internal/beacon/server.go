package beacon

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"
)

// Limits of the socket. Clients may be slow, broken or hostile; none may cost
// more than a little memory for a little while.
const (
	maxLine        = 64 << 10         // bytes of one command
	maxClients     = 128              // connections at once; a new one takes the place of the least useful
	maxSubscribers = 96               // of them; more are refused, so that a question is always answered
	maxBacklog     = 1024             // documents that a subscriber may be behind
	answerTime     = 2 * time.Second  // for a client to take an answer
	silentTime     = 10 * time.Second // for a client to ask its first question
	quietTime      = time.Second      // after an answer, without another question
)

// server answers queries on a socket and pushes transitions.
type server struct {
	publisher *Publisher
	log       *slog.Logger
	listener  *net.UnixListener
	path      string
	inode     os.FileInfo

	ctx    context.Context
	cancel context.CancelFunc
	work   sync.WaitGroup

	mu          sync.Mutex // guards all below and the clients; taken before the publisher's
	clients     map[*client]bool
	subscribers int
	number      int // of the last connection
}

// client is one connection.
type client struct {
	conn       net.Conn
	number     int
	asked      bool          // it has sent a command
	subscribed bool          // it counts as a subscriber
	pushes     chan Document // where transitions go; nil unless it subscribed; closed when it fell behind
}

// command is what a client sends.
type command struct {
	Type string
	ID   json.RawMessage
}

// response answers a command, in the shape of Pi's RPC mode.
type response struct {
	Type    string          `json:"type"`
	ID      json.RawMessage `json:"id,omitempty"`
	Command string          `json:"command"`
	Success bool            `json:"success"`
	Error   string          `json:"error,omitempty"`
	Data    *Document       `json:"data,omitempty"`
}

// push tells a subscriber of a transition.
type push struct {
	Type string   `json:"type"`
	Data Document `json:"data"`
}

// listen opens the socket; one that is there belongs to a dead or leaving
// instance of the same process and is replaced.
func listen(path string, p *Publisher, log *slog.Logger) (*server, error) {
	if info, err := os.Lstat(path); err == nil {
		if info.Mode()&os.ModeSocket == 0 {
			return nil, errors.New(path + " is in the way and not a socket")
		}
		if err := os.Remove(path); err != nil {
			return nil, err
		}
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false) // by then it may be a successor's
	if err := os.Chmod(path, 0o600); err != nil {
		l.Close()
		return nil, err
	}
	info, err := os.Lstat(path)
	if err != nil {
		l.Close()
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &server{publisher: p, log: log, listener: l, path: path, inode: info, ctx: ctx, cancel: cancel, clients: make(map[*client]bool)}
	s.work.Go(s.accept)
	return s, nil
}

// close ends all connections; with remove the socket file goes too, unless a
// successor has put its own there.
func (s *server) close(remove bool) {
	if remove {
		if info, err := os.Lstat(s.path); err == nil && os.SameFile(info, s.inode) {
			_ = os.Remove(s.path)
		}
	}
	s.cancel()
	s.listener.Close()
	s.mu.Lock()
	for c := range s.clients {
		c.conn.Close()
	}
	s.mu.Unlock()
	s.work.Wait()
}

func (s *server) accept() {
	for {
		conn, err := s.listener.Accept()
		if err != nil {
			if s.ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
				return
			}
			time.Sleep(10 * time.Millisecond) // out of descriptors: others will be freed
			continue
		}
		c := &client{conn: conn}
		if !s.admit(c) {
			conn.Close()
			continue
		}
		s.work.Go(func() {
			defer s.drop(c)
			s.serve(c)
		})
	}
}

// admit takes a connection in. It reports false when the server is closing.
func (s *server) admit(c *client) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil {
		return false
	}
	if len(s.clients) >= maxClients {
		s.displaceLocked()
	}
	s.number++
	c.number = s.number
	s.clients[c] = true
	return true
}

// displaceLocked ends the connection that is worth least: the oldest that never
// asked anything, else the oldest that did not subscribe. There is one, since
// subscribers may not have all places.
func (s *server) displaceLocked() {
	var victim *client
	for c := range s.clients {
		if c.subscribed {
			continue
		}
		if victim == nil || (c.asked == victim.asked && c.number < victim.number) || (victim.asked && !c.asked) {
			victim = c
		}
	}
	if victim != nil {
		victim.conn.Close()
		delete(s.clients, victim)
	}
}

func (s *server) drop(c *client) {
	c.conn.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.clients, c)
	if c.subscribed {
		s.subscribers--
	}
}

// serve answers one client until it has nothing more to ask. A connection that
// was answered and is quiet is closed, since some clients never half-close.
func (s *server) serve(c *client) {
	in := bufio.NewReaderSize(c.conn, maxLine)
	for patience := silentTime; ; patience = quietTime {
		_ = c.conn.SetReadDeadline(time.Now().Add(patience))
		cmd, more := s.next(c, in)
		if cmd == nil {
			if !more {
				return
			}
			continue
		}
		if cmd.Type == "subscribe" {
			s.subscribe(c, *cmd, in)
			return
		}
		if !c.write(s.answer(*cmd)) || !more {
			return
		}
	}
}

// next reads a command. Without one, what there was has been answered; without
// more, nothing follows.
func (s *server) next(c *client, in *bufio.Reader) (cmd *command, more bool) {
	line, err := in.ReadSlice('\n')
	switch {
	case errors.Is(err, bufio.ErrBufferFull):
		c.write(response{Type: "response", Command: "unknown", Error: "a command is one line of at most 64 KB"})
		return nil, false
	case err != nil && (len(line) == 0 || !errors.Is(err, io.EOF)):
		return nil, false
	}
	s.mu.Lock()
	c.asked = true
	s.mu.Unlock()
	parsed, ok := parse(line)
	if !ok {
		took := c.write(response{Type: "response", Command: "unknown", Error: `want a JSON object with a "type" that is a string`})
		return nil, took && err == nil
	}
	return &parsed, err == nil
}

// parse reads a command. Names of fields count as they are written.
func parse(line []byte) (cmd command, ok bool) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(line, &fields) != nil || json.Unmarshal(fields["type"], &cmd.Type) != nil || string(fields["type"]) == "null" {
		return command{}, false
	}
	cmd.ID = fields["id"]
	return cmd, true
}

func (s *server) answer(cmd command) response {
	r := response{Type: "response", ID: cmd.ID, Command: cmd.Type}
	if cmd.Type != "get_state" {
		r.Command = clip(cmd.Type)
		r.Error = "unknown command; there are get_state and subscribe"
		return r
	}
	doc := s.publisher.current(s.ctx)
	r.Success, r.Data = true, &doc
	return r
}

// clip keeps an unknown command's name short in the answer.
func clip(name string) string {
	if len(name) > 64 {
		return "unknown"
	}
	return name
}

// subscribe answers with the document and then with one at each transition,
// none left out in between, until either side hangs up. Further commands are
// answered in between.
func (s *server) subscribe(c *client, cmd command, in *bufio.Reader) {
	pushes := make(chan Document, maxBacklog)
	s.mu.Lock()
	full := s.subscribers >= maxSubscribers
	if !full {
		s.subscribers++
		c.subscribed, c.pushes = true, pushes
	}
	// Taken in the same moment: a transition is either in it or pushed.
	doc := s.publisher.known()
	s.mu.Unlock()
	if full {
		c.write(response{Type: "response", ID: cmd.ID, Command: cmd.Type, Error: "too many subscribers; ask get_state instead, or try again later"})
		return
	}
	if !c.write(response{Type: "response", ID: cmd.ID, Command: cmd.Type, Success: true, Data: &doc}) {
		return
	}
	gone := make(chan struct{})
	s.work.Go(func() {
		defer close(gone)
		s.hear(c, in)
	})
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-gone:
			return
		case doc, ok := <-pushes:
			if !ok || !c.write(push{Type: "state", Data: doc}) {
				return
			}
		}
	}
}

// hear answers what a subscriber says, and returns when it is gone.
func (s *server) hear(c *client, in *bufio.Reader) {
	_ = c.conn.SetReadDeadline(time.Time{})
	for more := true; more; {
		var cmd *command
		if cmd, more = s.next(c, in); cmd == nil {
			continue
		}
		r := s.answer(*cmd)
		if cmd.Type == "subscribe" {
			doc := s.publisher.known()
			r = response{Type: "response", ID: cmd.ID, Command: cmd.Type, Success: true, Data: &doc}
		}
		if !c.write(r) {
			return
		}
	}
	// The end of what it says. It may have half-closed and still listen.
	check := time.NewTicker(quietTime)
	defer check.Stop()
	for !hungUp(c.conn) {
		select {
		case <-s.ctx.Done():
			return
		case <-check.C:
		}
	}
}

// broadcastLocked hands a document to every subscriber. One that is too far
// behind is cut off: it must ask anew rather than miss a transition unawares.
func (s *server) broadcastLocked(doc Document) {
	for c := range s.clients {
		if c.pushes == nil {
			continue
		}
		select {
		case c.pushes <- doc:
		default:
			close(c.pushes)
			c.pushes = nil
		}
	}
}

// write sends one line and reports whether the client took it in time.
func (c *client) write(v any) bool {
	data, err := json.Marshal(v)
	if err != nil {
		return false
	}
	_ = c.conn.SetWriteDeadline(time.Now().Add(answerTime))
	_, err = c.conn.Write(append(data, '\n'))
	return err == nil
}
