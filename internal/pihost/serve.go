package pihost

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/creachadair/jrpc2"
	"github.com/creachadair/jrpc2/channel"
	"github.com/creachadair/jrpc2/handler"

	"switchboard/internal/agent"
	"switchboard/internal/delivery"
	"switchboard/internal/exchange"
	"switchboard/internal/guard"
	"switchboard/internal/lifecycle"
	"switchboard/internal/proc"
	"switchboard/internal/sidecar"
)

// Options say how to serve one extension.
type Options struct {
	Version string                            // of this program
	Open    func() (exchange.Exchange, error) // opens the exchange; called once, after hello
	Agents  string                            // Pi's agent folder, where the beacon lies
	Log     *slog.Logger

	Callsign string     // a fixed one for the session; empty for the first free word
	Guard    guard.Mode // of the session's edits
	NoTeam   bool       // the session is in no team
	Complain []string   // what its human must know of the settings
}

// server is one conversation with one extension instance.
type server struct {
	opts Options
	rpc  *jrpc2.Server

	mu      sync.Mutex // guards all below
	session agent.Session
	sidecar *sidecar.Sidecar // nil until hello
	problem string           // why there will be none
	agent   proc.ID
	bye     string
	retry   retryWatch

	checkouts checkouts

	greeted chan struct{} // closed when hello was dealt with
	once    sync.Once

	// Set by hello, before anything uses them.
	script *transcript
	light  *light
}

// Serve speaks with an extension over in and out until in ends, then leaves
// the exchange and returns.
func Serve(in io.ReadCloser, out io.WriteCloser, opts Options) error {
	s := &server{opts: opts, greeted: make(chan struct{})}
	mux := handler.Map{
		"hello":    handler.New(s.hello),
		"event":    handler.New(s.event),
		"boundary": handler.New(s.boundary),
		"tool":     handler.New(s.tool),
		"command":  handler.New(s.command),
		"toolCall": handler.New(s.toolCall),
		"toolDone": handler.New(s.toolDone),
		"declined": handler.New(s.declined),
		"woken":    handler.New(s.woken),
		"bye":      handler.New(s.goodbye),
	}
	s.rpc = jrpc2.NewServer(mux, &jrpc2.ServerOptions{
		AllowPush:   true,
		Concurrency: 64, // requests wait for their answers; none may hold up another
	})
	s.rpc.Start(channel.Line(in, out))
	err := s.rpc.Wait()
	s.leave()
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrClosedPipe) {
		return nil
	}
	return err
}

// dying is how long a killed Pi may take until its process is gone: its pipes
// close a moment earlier.
const dying = 500 * time.Millisecond

// leave gives the session up. A successor is expected after a reload, and
// whenever Pi lives on without having said why it hung up.
func (s *server) leave() {
	s.mu.Lock()
	sc, light, reason, id := s.sidecar, s.light, s.bye, s.agent
	s.mu.Unlock()
	if sc == nil {
		return
	}
	handOver := reason == "reload"
	if reason == "" {
		deadline := time.Now().Add(dying)
		for proc.State(id) != proc.Gone && time.Now().Before(deadline) {
			time.Sleep(5 * time.Millisecond)
		}
		handOver = proc.State(id) != proc.Gone
	}
	s.opts.Log.Info("leave", "reason", reason, "handOver", handOver)
	// First, since a sibling that sees this session leave may light its own.
	light.Off(!handOver && (reason == "quit" || reason == ""))
	sc.Leave(handOver)
}

// commands are what may follow /telecom.
var commands = []word{
	{"off", "leave the team: unseen by it, edits not guarded"},
	{"on", "take part in the team again"},
}

// hooks are the tools whose calls the extension asks about.
var hooks = []string{"read", "edit", "write"}

func (s *server) hello(_ context.Context, h hello) (welcome, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.once.Do(func() { close(s.greeted) })
	w := welcome{Protocol: Protocol, Version: s.opts.Version, Hooks: hooks, Commands: commands}
	if s.sidecar != nil || s.problem != "" {
		return w, errors.New("hello was said already")
	}
	s.opts.Log.Info("hello", "session", h.Session.ID, "extension", h.Version, "mode", h.Mode, "pid", h.PID)
	if h.Protocol != Protocol {
		s.problem = fmt.Sprintf("the extension (%s) and the program (%s) don't speak the same protocol; mend it with: switchboard pi install, then /reload", h.Version, s.opts.Version)
		w.Problem = s.problem
		return w, nil
	}
	if h.Session.ID == "" {
		return w, errors.New("hello names no session")
	}
	since := h.Since
	for _, e := range h.Open { // it has been at that since, whatever it seemed to be in between
		if !h.Idle && e.At > 0 {
			since = min(since, e.At)
		}
	}
	facts := []agent.Event{agent.Lived{Fact: lifecycle.Looked{Idle: h.Idle}, At: moment(since)}}
	store, err := s.opts.Open()
	if err != nil {
		store = nil // not a nil *Store in an interface
		facts = append(facts, agent.Unavailable{Why: err.Error()})
	}
	id, err := proc.Of(h.PID)
	if err != nil {
		s.opts.Log.Error("look up pi", "pid", h.PID, "err", err)
	}
	s.agent = id
	s.session = agent.Session{
		Key: exchange.SessionKey{Host: exchange.PiHost, ID: h.Session.ID}, Name: h.Session.Name, Cwd: h.Cwd,
		Model: h.Model, Mode: h.Mode, File: h.Session.File, PID: h.PID,
		Wakes: h.Mode == "tui" || h.Mode == "rpc", Handles: handlesOf(h.PID),
		Callsign: s.opts.Callsign, Guard: s.opts.Guard, NoTeam: s.opts.NoTeam,
	}
	s.script = &transcript{path: h.Session.File}
	s.retry.settings = h.Retry
	s.light = &light{
		dir: BeaconDir(s.opts.Agents), ask: s.ask, tell: func(text string) { s.Tell(text, true) }, log: s.opts.Log,
		instance: exchange.NewID(time.Now()), started: h.StartedAt, limits: h.Limits,
		session: s.session, now: h.Now,
	}
	facts = append(facts, chosen(h.Choice), s.conversationHolds(h.InContext))
	for _, e := range h.Open {
		for _, fact := range s.facts(e) {
			facts = append(facts, agent.Lived{Fact: fact, At: moment(e.At)})
		}
	}
	s.sidecar = sidecar.Start(sidecar.Config{
		Exchange: store, Host: s, Session: s.session, Agent: id, Log: s.opts.Log,
		Facts: facts,
	})
	for _, text := range s.opts.Complain {
		s.Tell("switchboard: "+text, true)
	}
	return w, nil
}

// conversationHolds is what it means that Pi has messages in memory. Without a
// session file that is all there will ever be.
func (s *server) conversationHolds(ids []string) agent.Event {
	if s.session.File == "" {
		return agent.InTranscript{IDs: ids}
	}
	return agent.InConversation{IDs: ids}
}

// errNotReady answers what comes before hello, or without an exchange.
var errNotReady = errors.New("not connected")

func (s *server) connected(ctx context.Context) (*sidecar.Sidecar, error) {
	select {
	case <-s.greeted: // requests are answered side by side, and may overtake it
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sidecar == nil {
		return nil, errNotReady
	}
	return s.sidecar, nil
}

func (s *server) event(_ context.Context, e hostEvent) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sidecar == nil {
		return errNotReady
	}
	switch e.Type {
	case "session_info_changed":
		s.session.Name = e.Name
		s.light.Describe(s.session)
		s.sidecar.Event(agent.Described{Session: s.session})
		return nil
	case "model_select":
		s.session.Model = e.Model
		s.light.Describe(s.session)
		s.sidecar.Event(agent.Described{Session: s.session})
		return nil
	}
	if len(e.InContext) > 0 {
		s.sidecar.Event(s.conversationHolds(e.InContext))
	}
	if e.Now != nil {
		s.light.Note(*e.Now)
	}
	for _, fact := range s.facts(e) {
		s.sidecar.Event(agent.Lived{Fact: fact, At: moment(e.At)})
	}
	if e.Type == "session_tree" {
		if e.Calls != nil {
			s.sidecar.Event(agent.Rewound{Calls: e.Calls})
		}
		s.sidecar.Event(chosen(e.Choice))
	}
	return nil
}

// chosen is what a choice means; nil is none.
func chosen(c *agent.Choice) agent.Event {
	if c == nil {
		return agent.Chosen{}
	}
	return agent.Chosen{Off: &c.Off}
}

func (s *server) command(ctx context.Context, c command) (agent.CommandResult, error) {
	sc, err := s.connected(ctx)
	if err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		return agent.CommandResult{Text: "switchboard is off: " + s.problem, Bad: true}, nil
	}
	v, err := sc.Ask(ctx, func(req agent.Request) agent.Event { return agent.Commanded{Req: req, Args: c.Args} })
	if err != nil {
		return agent.CommandResult{}, err
	}
	r, _ := v.(agent.CommandResult)
	return r, nil
}

// expired returns a context that ends when the extension stops waiting.
func expired(ctx context.Context, sentAt int64, waitMS int) (context.Context, context.CancelFunc) {
	return context.WithDeadline(ctx, time.UnixMilli(sentAt).Add(time.Duration(waitMS)*time.Millisecond))
}

func (s *server) boundary(ctx context.Context, b boundary) (*handover, error) {
	sc, err := s.connected(ctx)
	if err != nil {
		return nil, err
	}
	s.light.Note(b.Now)
	s.mu.Lock()
	s.retry.see(hostEvent{Type: "boundary"})
	s.mu.Unlock()
	ctx, cancel := expired(ctx, b.SentAt, b.WaitMS)
	defer cancel()
	v, err := sc.Ask(ctx, func(req agent.Request) agent.Event {
		return agent.BoundaryReached{
			Req: req, At: agent.Boundary(b.At), ByHuman: b.ByHuman, Open: b.Open, Closed: b.Closed, Prompt: b.Prompt,
			Asked:  moment(b.SentAt),
			Tokens: value(b.Now.Usage.Tokens, 0), Window: value(b.Now.Usage.ContextWindow, 0),
		}
	})
	if err != nil {
		return nil, err
	}
	h, ok := v.(*agent.Handover)
	if !ok || h == nil {
		return nil, nil
	}
	out := wrap(*h)
	return &out, nil
}

func wrap(h agent.Handover) handover {
	return handover{
		Batch: h.Batch, Continue: h.Continue,
		Message: message{CustomType: MessageType, Content: h.Text, Display: true, Details: h.Details},
	}
}

func (s *server) tool(ctx context.Context, t toolRun) (agent.ToolResult, error) {
	sc, err := s.connected(ctx)
	if err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		return agent.ToolResult{Text: "switchboard is off: " + s.problem, IsError: true}, nil
	}
	v, err := sc.Ask(ctx, func(req agent.Request) agent.Event {
		return agent.ToolCalled{Req: req, Tool: t.Tool, Params: t.Params}
	})
	if err != nil {
		return agent.ToolResult{}, err
	}
	result, ok := v.(agent.ToolResult)
	if !ok {
		return result, fmt.Errorf("tool %s got a %T for an answer (this is a bug)", t.Tool, v)
	}
	return result, nil
}

func (s *server) toolCall(ctx context.Context, t toolCall) (agent.Verdict, error) {
	sc, err := s.connected(ctx)
	if err != nil {
		return agent.Verdict{}, nil // without an exchange every call may run
	}
	ctx, cancel := expired(ctx, t.SentAt, t.WaitMS)
	defer cancel()
	op, path := s.target(t.Tool, t.Path)
	v, err := sc.AskWithin(ctx, holdLimit, func(req agent.Request) agent.Event {
		return agent.ToolAbout{Req: req, CallID: t.CallID, Tool: t.Tool, Op: op, Path: path}
	})
	if err != nil {
		return agent.Verdict{}, err
	}
	verdict, _ := v.(agent.Verdict)
	return verdict, nil
}

// holdLimit is longer than any verdict takes: the extension says itself when
// it stops waiting.
const holdLimit = 5 * time.Second

func (s *server) toolDone(ctx context.Context, t toolDone) (agent.Note, error) {
	sc, err := s.connected(ctx)
	if err != nil {
		return agent.Note{}, nil
	}
	op, path := s.target(t.Tool, t.Path)
	// It happened, whether somebody still waits for the answer or not.
	v, err := sc.Ask(ctx, func(req agent.Request) agent.Event {
		return agent.ToolDone{Req: req, CallID: t.CallID, Op: op, Path: path, Failed: t.Failed}
	})
	if err != nil {
		return agent.Note{}, err
	}
	note, _ := v.(agent.Note)
	return note, nil
}

func (s *server) declined(ctx context.Context, d declined) error {
	sc, err := s.connected(ctx)
	if err != nil {
		return err
	}
	sc.Event(agent.Declined{Batch: d.Batch})
	return nil
}

func (s *server) goodbye(_ context.Context, b bye) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bye = b.Reason
	if s.light != nil && b.Reason != "quit" {
		s.light.Off(false) // at once: its successor may be starting already
	}
	return nil
}

// ask asks Pi for what no event tells.
func (s *server) ask(ctx context.Context) (snapshot, error) {
	var now snapshot
	rsp, err := s.rpc.Callback(ctx, "snapshot", nil)
	if err == nil {
		err = rsp.UnmarshalResult(&now)
	}
	return now, err
}

// Show implements sidecar.Host.
func (s *server) Show(v agent.View) { s.light.Show(v) }

// Deck implements sidecar.Host.
func (s *server) Deck(count int) { s.push("deck", deck{Count: count}) }

// Siblings implements sidecar.Host.
func (s *server) Siblings(others []exchange.Session) { s.light.Siblings(others) }

func (s *server) woken(ctx context.Context, w woken) error {
	sc, err := s.connected(ctx)
	if err != nil {
		return err
	}
	sc.Event(agent.WakeAnswered{Batch: w.Batch, Accepted: w.Accepted, Idle: w.Idle})
	return nil
}

// Wake implements sidecar.Host.
func (s *server) Wake(h agent.Handover) { s.push("wake", wrap(h)) }

// Tell implements sidecar.Host.
func (s *server) Tell(text string, bad bool) {
	level := "info"
	if bad {
		level = "warning"
	}
	s.push("tell", tell{Text: delivery.Line(text, 600), Level: level})
}

// Status implements sidecar.Host.
func (s *server) Status(text string) { s.push("status", status{Text: text}) }

func (s *server) push(method string, params any) {
	if err := s.rpc.Notify(context.Background(), method, params); err != nil {
		s.opts.Log.Debug("push", "method", method, "err", err) // Pi is gone; so shall we be
	}
}

// Hold implements sidecar.Host.
func (s *server) Hold(callID string, limit time.Duration) {
	s.push("hold", hold{CallID: callID, MS: limit.Milliseconds()})
}

// Transcript implements sidecar.Host.
func (s *server) Transcript() []string {
	ids, err := s.script.read()
	if err != nil {
		s.opts.Log.Error("read transcript", "err", err)
	}
	return ids
}

// decodeIDs reads the ids out of a message's details.
func decodeIDs(details json.RawMessage) []string {
	var d delivery.Details
	if json.Unmarshal(details, &d) != nil {
		return nil
	}
	return d.IDs
}
