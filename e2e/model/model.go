// Package model is a scripted stand-in for a language model: an
// OpenAI-compatible chat-completions server on loopback that answers each
// session from its own queue of steps and remembers every request as it came.
//
// A session is named by the request header [SessionHeader]. It has two queues,
// one for turns and one for the requests that summarize a conversation. An
// empty queue answers "ok", so a script says only what matters to its test.
package model

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// SessionHeader is the request header that names the script to play.
const SessionHeader = "X-Session-Script"

// Server answers model requests from scripts. Its methods may be called from
// any goroutine.
type Server struct {
	// URL is the base address, to be used as "baseUrl": it ends in /v1.
	URL string

	http *httptest.Server
	stop context.CancelFunc // releases the answers that still wait

	mu       sync.Mutex // guards all below
	sessions map[string]*session
	changed  chan struct{} // closed and replaced with every request
}

type session struct {
	main, summary []Step
	requests      []Request
}

// Start runs a server until the test ends.
func Start(t testing.TB) *Server {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	s := &Server{
		stop:     stop,
		sessions: map[string]*session{},
		changed:  make(chan struct{}),
	}
	s.http = httptest.NewServer(s.handler(ctx))
	s.URL = s.http.URL + "/v1"
	t.Cleanup(s.close)
	return s
}

func (s *Server) close() {
	s.stop()
	s.http.CloseClientConnections()
	s.http.Close()
}

// Script appends steps to the session's turns.
func (s *Server) Script(name string, steps ...Step) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.sessionLocked(name)
	e.main = append(e.main, steps...)
}

// ScriptSummary appends steps to the session's summaries.
func (s *Server) ScriptSummary(name string, steps ...Step) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.sessionLocked(name)
	e.summary = append(e.summary, steps...)
}

// Requests returns all requests of a session so far, summaries included, in
// the order of their arrival.
func (s *Server) Requests(name string) []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.sessionLocked(name).requests...)
}

// Turns returns the session's requests so far without the summaries.
func (s *Server) Turns(name string) []Request {
	turns, _ := s.turns(name)
	return turns
}

// WaitRequest waits until the session has made at least n requests other than
// summaries, and returns the nth, counted from one. The request has arrived
// but may not be answered yet.
func (s *Server) WaitRequest(t testing.TB, name string, n int, timeout time.Duration) Request {
	t.Helper()
	deadline := time.NewTimer(timeout)
	defer deadline.Stop()
	for {
		turns, changed := s.turns(name)
		if len(turns) >= n {
			return turns[n-1]
		}
		select {
		case <-changed:
		case <-deadline.C:
			t.Fatalf("model: session %q made %d requests in %v, want %d", name, len(turns), timeout, n)
		}
	}
}

// turns also returns the channel that is closed when the answer may differ.
func (s *Server) turns(name string) ([]Request, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var turns []Request
	for _, r := range s.sessionLocked(name).requests {
		if !r.Summary {
			turns = append(turns, r)
		}
	}
	return turns, s.changed
}

func (s *Server) sessionLocked(name string) *session {
	e := s.sessions[name]
	if e == nil {
		e = &session{}
		s.sessions[name] = e
	}
	return e
}

func (s *Server) handler(stopped context.Context) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", func(w http.ResponseWriter, r *http.Request) {
		// The whole body must be read before the answer starts: only then
		// does net/http notice that the client has gone.
		raw, err := io.ReadAll(r.Body)
		if err != nil {
			return // the client is gone
		}
		req, err := decodeRequest(raw)
		if err != nil {
			writeError(w, Step{Status: http.StatusBadRequest, Message: err.Error()})
			return
		}
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		defer context.AfterFunc(stopped, cancel)()

		step, n := s.take(r.Header.Get(SessionHeader), req)
		step.play(ctx, w, answer{model: req.Model, n: n})
	})
	return mux
}

// take records a request and returns the step that answers it, with the
// request's number in its session.
func (s *Server) take(name string, req Request) (Step, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.sessionLocked(name)
	e.requests = append(e.requests, req)
	close(s.changed)
	s.changed = make(chan struct{})

	queue := &e.main
	if req.Summary {
		queue = &e.summary
	}
	step := Step{Text: "ok"}
	if len(*queue) > 0 {
		step, *queue = (*queue)[0], (*queue)[1:]
	}
	return step, len(e.requests)
}

// Request is one request as the model saw it.
type Request struct {
	At       time.Time // when it arrived
	Summary  bool      // asks for a summary of the conversation, not for a turn
	Model    string
	System   string    // all system messages
	Messages []Message // all others
	Tools    []string  // names of the tools on offer

	ToolsJSON json.RawMessage // the tools with descriptions and schemas, nil if none
	Raw       json.RawMessage // the body as received
}

// Message is one message of a request's conversation.
type Message struct {
	Role       string // user, assistant or tool
	Text       string
	ToolCalls  []ToolCall // calls an assistant message made
	ToolCallID string     // the call a tool message answers
}

// ToolCall is a call the model has made earlier.
type ToolCall struct {
	ID, Name string
	Args     string // JSON as the model wrote it
}

// Last returns the newest message, the zero Message if there is none.
func (r Request) Last() Message {
	if len(r.Messages) == 0 {
		return Message{}
	}
	return r.Messages[len(r.Messages)-1]
}

// Transcript writes the conversation one message after another, each after its
// role: for searching, counting and failure texts.
func (r Request) Transcript() string {
	var b strings.Builder
	for _, m := range r.Messages {
		b.WriteString(m.Role + ": " + m.Text)
		for _, c := range m.ToolCalls {
			b.WriteString(" [" + c.Name + " " + c.Args + "]")
		}
		b.WriteString("\n")
	}
	return b.String()
}

func decodeRequest(raw []byte) (Request, error) {
	var body struct {
		Model    string
		Tools    json.RawMessage
		Messages []struct {
			Role       string
			Content    content
			ToolCallID string `json:"tool_call_id"`
			ToolCalls  []struct {
				ID       string
				Function struct{ Name, Arguments string }
			} `json:"tool_calls"`
		}
	}
	if err := json.Unmarshal(raw, &body); err != nil {
		return Request{}, err
	}
	var tools []struct{ Function struct{ Name string } }
	if body.Tools != nil {
		if err := json.Unmarshal(body.Tools, &tools); err != nil {
			return Request{}, err
		}
	}
	req := Request{At: time.Now(), Model: body.Model, ToolsJSON: body.Tools, Raw: raw}
	for _, tool := range tools {
		req.Tools = append(req.Tools, tool.Function.Name)
	}
	for _, m := range body.Messages {
		if m.Role == "system" || m.Role == "developer" {
			req.System += string(m.Content)
			continue
		}
		msg := Message{Role: m.Role, Text: string(m.Content), ToolCallID: m.ToolCallID}
		for _, c := range m.ToolCalls {
			msg.ToolCalls = append(msg.ToolCalls, ToolCall{ID: c.ID, Name: c.Function.Name, Args: c.Function.Arguments})
		}
		req.Messages = append(req.Messages, msg)
	}
	// An agent's system prompt may speak of summaries too; only the start of
	// one without tools says what the request is for.
	head := strings.ToLower(req.System[:min(len(req.System), 400)])
	req.Summary = len(req.Tools) == 0 && strings.Contains(head, "summariz")
	return req, nil
}

// content is a message's text: a string, or parts of which we keep the texts
// and mark the rest by type.
type content string

func (c *content) UnmarshalJSON(raw []byte) error {
	var text string
	if json.Unmarshal(raw, &text) == nil { // also null
		*c = content(text)
		return nil
	}
	var parts []struct{ Type, Text string }
	if err := json.Unmarshal(raw, &parts); err != nil {
		return err
	}
	for _, p := range parts {
		if p.Type != "text" {
			p.Text = "<" + p.Type + ">"
		}
		*c += content(p.Text)
	}
	return nil
}
