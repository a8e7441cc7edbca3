package beacon

import (
	"bufio"
	"cmp"
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
	usualLine      = 1 << 10          // what is set aside for one; few are longer
	maxClients     = 256              // connections at once; a new one takes the place of the least useful
	maxSubscribers = 192              // of them; more are refused, so that a question is always answered
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
	moment      int // counts changes of standing
}

// client is one connection.
type client struct {
	conn     net.Conn
	standing standing
	since    int            // the moment that the standing began
	pushes   chan *Document // where transitions go; nil unless it subscribed; closed when it fell behind
}

// standing is what a connection is worth when there are too many, the least
// first.
type standing int

const (
	silent     standing = iota // it never asked anything
	quiet                      // it was answered
	busy                       // it is being answered
	subscribed                 // it is never given up for another
)

// command is what a client sends.
type command struct {
	Type    string
	ID      json.RawMessage
	problem string // why it is none
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
	s.clients[c] = true
	s.rankLocked(c, silent)
	return true
}

func (s *server) rank(c *client, to standing) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rankLocked(c, to)
}

func (s *server) rankLocked(c *client, to standing) {
	s.moment++
	c.standing, c.since = to, s.moment
}

// displaceLocked ends the connection that is worth least, of several the one
// that has been so for longest: a client that keeps asking outlasts one that is
// done. There is one, since subscribers may not have all places.
func (s *server) displaceLocked() {
	var victim *client
	for c := range s.clients {
		if c.standing != subscribed && (victim == nil || c.less(victim)) {
			victim = c
		}
	}
	if victim != nil {
		victim.conn.Close()
		delete(s.clients, victim)
	}
}

// less reports whether a connection is to go before another.
func (c *client) less(other *client) bool {
	return cmp.Or(cmp.Compare(c.standing, other.standing), cmp.Compare(c.since, other.since)) < 0
}

func (s *server) drop(c *client) {
	c.conn.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.clients, c)
	if c.standing == subscribed {
		s.subscribers--
	}
}

// serve answers one client until it has nothing more to ask. A connection that
// was answered and is quiet is closed, since some clients never half-close.
func (s *server) serve(c *client) {
	in := bufio.NewReaderSize(c.conn, usualLine)
	for patience := silentTime; ; patience = quietTime {
		_ = c.conn.SetReadDeadline(time.Now().Add(patience))
		cmd, err := next(in)
		if cmd == nil {
			return
		}
		if cmd.Type == "subscribe" {
			s.subscribe(c, *cmd, in)
			return
		}
		s.rank(c, busy)
		if !c.write(s.answer(*cmd)) || err != nil {
			return
		}
		s.rank(c, quiet)
	}
}

// next reads a command, nil if there is none. With an error nothing follows.
func next(in *bufio.Reader) (*command, error) {
	line, err := readLine(in)
	switch {
	case errors.Is(err, bufio.ErrTooLong):
		return &command{problem: "a command is one line of at most 64 KB"}, err
	case err != nil && (len(line) == 0 || !errors.Is(err, io.EOF)):
		return nil, err
	}
	cmd := parse(line)
	return &cmd, err
}

// readLine reads up to the end of a line. Only a long one takes much memory.
func readLine(in *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		if line = append(line, part...); len(line) > maxLine {
			return nil, bufio.ErrTooLong
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// parse reads a command. Names of fields count as they are written, which they
// would not in a struct.
func parse(line []byte) command {
	const problem = `want a JSON object with a "type" that is a string`
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(line, &fields); err != nil {
		return command{problem: problem}
	}
	cmd := command{ID: fields["id"]}
	var name *string // null is no string
	if err := json.Unmarshal(fields["type"], &name); err != nil || name == nil {
		cmd.problem = problem
		return cmd
	}
	cmd.Type = *name
	return cmd
}

func (s *server) answer(cmd command) response {
	r := response{Type: "response", ID: cmd.ID, Command: cmd.Type}
	var doc Document
	switch cmd.Type {
	case "get_state":
		doc = s.publisher.current(s.ctx)
	case "subscribe": // again
		doc = s.publisher.known()
	default:
		r.Command = clip(cmd.Type)
		r.Error = cmp.Or(cmd.problem, "unknown command; there are get_state and subscribe")
		return r
	}
	r.Success, r.Data = true, &doc
	return r
}

// clip keeps an unknown command's name short in the answer, and never empty.
func clip(name string) string {
	if name == "" || len(name) > 64 {
		return "unknown"
	}
	return name
}

// subscribe answers with the document and then with one at each transition,
// none left out in between, until either side hangs up. Further commands are
// answered in between.
func (s *server) subscribe(c *client, cmd command, in *bufio.Reader) {
	r := response{Type: "response", ID: cmd.ID, Command: cmd.Type}
	doc, pushes := s.enlist(c)
	if pushes == nil {
		r.Error = "too many subscribers; ask get_state instead, or try again later"
		c.write(r)
		return
	}
	r.Success, r.Data = true, &doc
	if c.write(r) {
		s.attend(c, in, pushes)
	}
}

// enlist makes a client a subscriber and returns the document before the first
// push; no channel if there are too many.
func (s *server) enlist(c *client) (Document, chan *Document) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.subscribers >= maxSubscribers {
		return Document{}, nil
	}
	s.subscribers++
	s.rankLocked(c, subscribed)
	c.pushes = make(chan *Document, maxBacklog)
	// Taken in the same moment: a transition is either in it or pushed.
	return s.publisher.known(), c.pushes
}

// attend serves a subscriber. Answers and pushes are written by turns, so that
// an answer never comes after a transition that it doesn't know of.
func (s *server) attend(c *client, in *bufio.Reader, pushes <-chan *Document) {
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	questions := make(chan command)
	s.work.Go(func() { hear(ctx, c, in, questions) })
	for {
		select {
		case <-ctx.Done():
			return
		case cmd, ok := <-questions:
			if !ok || !c.pass(pushes, len(pushes)) || !c.write(s.answer(cmd)) {
				return
			}
		case doc, ok := <-pushes:
			if !ok || !c.write(push{Type: "state", Data: *doc}) {
				return
			}
		}
	}
}

// pass writes the next n transitions and reports whether the client took them.
func (c *client) pass(pushes <-chan *Document, n int) bool {
	for range n {
		if !c.write(push{Type: "state", Data: *<-pushes}) {
			return false
		}
	}
	return true
}

// hear passes on what a subscriber asks, and closes the channel when it is gone
// or broke the rules.
func hear(ctx context.Context, c *client, in *bufio.Reader, questions chan<- command) {
	defer close(questions)
	_ = c.conn.SetReadDeadline(time.Time{})
	for {
		cmd, err := next(in)
		if cmd != nil {
			select {
			case <-ctx.Done():
				return
			case questions <- *cmd:
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			c.outlast(ctx)
			return
		case err != nil:
			return
		}
	}
}

// outlast waits until a client that says no more is gone: it may have
// half-closed and still listen.
func (c *client) outlast(ctx context.Context) {
	check := time.NewTicker(quietTime)
	defer check.Stop()
	for !hungUp(c.conn) {
		select {
		case <-ctx.Done():
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
		case c.pushes <- &doc:
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
