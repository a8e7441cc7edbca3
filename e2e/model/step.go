package model

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Step is the answer to one request. The zero Step is an empty text.
//
// Wait, then Delay pass before anything is sent; both end early when the
// client gives up. Then the first of Hang, Status, Drop and the ordinary answer
// that is set applies.
type Step struct {
	Text  string
	Tools []Tool

	Wait       <-chan struct{} // answer only once it is closed
	Delay      time.Duration
	Chunks     int           // pieces the text is sent in, 0 means one
	ChunkDelay time.Duration // pause after each piece

	Usage  Usage
	Finish string // finish_reason; "" means "tool_calls" or "stop" as fits

	Hang    bool              // never answer
	Status  int               // HTTP error with Message and Headers
	Message string            // "" means one that names the status
	Headers map[string]string // for an error only
	Drop    bool              // start the stream, then cut the connection
}

// Tool is a tool call the model makes.
type Tool struct {
	Name string
	// Args is encoded as JSON; a string is sent as it is, so a script can
	// also send arguments that are not valid, and Pieces one after another.
	Args any
}

// Pieces are the JSON of a tool call's arguments as a model writes it.
type Pieces []Piece

// Piece is sent as it is, once Wait, if any, is closed.
type Piece struct {
	Text string
	Wait <-chan struct{}
}

// Usage is the token count an answer reports; the zero Usage stands for a
// small conversation. Agents decide by it when to compact.
type Usage struct{ Prompt, Completion int }

// answer is what a step needs to know of the request it answers.
type answer struct {
	model string
	n     int // the request's number in its session, for ids
}

func (s Step) play(ctx context.Context, w http.ResponseWriter, a answer) {
	wait(ctx, s.Wait)
	pause(ctx, s.Delay)
	if s.Hang {
		<-ctx.Done()
	}
	switch {
	case ctx.Err() != nil: // nobody listens any more
	case s.Status != 0:
		writeError(w, s)
	default:
		s.stream(ctx, w, a)
	}
}

func (s Step) stream(ctx context.Context, w http.ResponseWriter, a answer) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-cache")

	// Errors of writing are left alone: they mean that the client is gone,
	// which ctx tells as well.
	send := func(choices []any, usage any) {
		chunk, err := json.Marshal(map[string]any{
			"id":      fmt.Sprintf("chatcmpl-%d", a.n),
			"object":  "chat.completion.chunk",
			"created": time.Now().Unix(),
			"model":   a.model,
			"choices": choices,
			"usage":   usage,
		})
		if err != nil {
			panic("model: a script's step has no JSON form: " + err.Error())
		}
		_, _ = fmt.Fprintf(w, "data: %s\n\n", chunk)
		_ = http.NewResponseController(w).Flush()
	}
	delta := func(d map[string]any, finish any) {
		send([]any{map[string]any{"index": 0, "delta": d, "finish_reason": finish}}, nil)
	}

	delta(map[string]any{"role": "assistant", "content": ""}, nil)
	if s.Drop {
		panic(http.ErrAbortHandler) // net/http's way to cut the connection
	}
	for _, piece := range split(s.Text, s.Chunks) {
		delta(map[string]any{"content": piece}, nil)
		if pause(ctx, s.ChunkDelay); ctx.Err() != nil {
			return
		}
	}
	for i, tool := range s.Tools {
		call := map[string]any{"index": i, "id": fmt.Sprintf("call_%d_%d", a.n, i), "type": "function"}
		function := map[string]any{"name": tool.Name}
		for _, piece := range tool.arguments() {
			if wait(ctx, piece.Wait); ctx.Err() != nil {
				return
			}
			function["arguments"] = piece.Text
			call["function"] = function
			delta(map[string]any{"tool_calls": []any{call}}, nil)
			// Only the first piece says whose it is.
			call, function = map[string]any{"index": i}, map[string]any{}
		}
	}
	delta(map[string]any{}, s.finish())

	u := s.Usage
	if u == (Usage{}) {
		u = Usage{Prompt: 1000, Completion: 20}
	}
	send([]any{}, map[string]any{
		"prompt_tokens":     u.Prompt,
		"completion_tokens": u.Completion,
		"total_tokens":      u.Prompt + u.Completion,
	})
	_, _ = fmt.Fprint(w, "data: [DONE]\n\n")
}

func (s Step) finish() string {
	switch {
	case s.Finish != "":
		return s.Finish
	case len(s.Tools) > 0:
		return "tool_calls"
	}
	return "stop"
}

func (t Tool) arguments() Pieces {
	switch args := t.Args.(type) {
	case nil:
		return Pieces{{Text: "{}"}}
	case string:
		return Pieces{{Text: args}}
	case Pieces:
		return args
	default:
		raw, err := json.Marshal(args)
		if err != nil {
			panic("model: arguments of " + t.Name + " have no JSON form: " + err.Error())
		}
		return Pieces{{Text: string(raw)}}
	}
}

func writeError(w http.ResponseWriter, s Step) {
	for _, k := range slices.Sorted(maps.Keys(s.Headers)) {
		w.Header().Set(k, s.Headers[k])
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(s.Status)
	message := s.Message
	if message == "" {
		message = fmt.Sprintf("scripted %d", s.Status)
	}
	_ = json.NewEncoder(w).Encode(map[string]any{
		"error": map[string]any{"message": message, "type": "scripted_error", "code": nil},
	})
}

// wait waits until c, if any, is closed or ctx ends.
func wait(ctx context.Context, c <-chan struct{}) {
	if c == nil {
		return
	}
	select {
	case <-c:
	case <-ctx.Done():
	}
}

// pause waits for d or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// split cuts text into n pieces of about one size, never within a rune.
func split(text string, n int) []string {
	if text == "" {
		return nil
	}
	runes := []rune(text)
	n = min(max(n, 1), len(runes))
	pieces := make([]string, n)
	for i := range pieces {
		pieces[i] = string(runes[i*len(runes)/n : (i+1)*len(runes)/n])
	}
	if joined := strings.Join(pieces, ""); joined != text {
		return []string{text} // invalid UTF-8 must arrive as the script has it
	}
	return pieces
}
