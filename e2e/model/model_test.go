package model_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"switchboard/e2e/model"
)

// watchdog only ends a test that hangs.
const watchdog = 20 * time.Second

const turn = `{"model":"m","stream":true,
	"messages":[
		{"role":"system","content":"You code."},
		{"role":"user","content":[{"type":"text","text":"hel"},{"type":"text","text":"lo"},{"type":"image_url"}]},
		{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"read","arguments":"{\"path\":\"a\"}"}}]},
		{"role":"tool","tool_call_id":"c1","content":"one"}],
	"tools":[{"type":"function","function":{"name":"read","description":"d"}}]}`

const summary = `{"model":"m","messages":[{"role":"system","content":"You summarize conversations."},{"role":"user","content":"x"}]}`

func TestRequestIsDecoded(t *testing.T) {
	t.Parallel()
	s := model.Start(t)
	ask(t, s, "ann", turn)
	ask(t, s, "ann", summary)

	got := s.WaitRequest(t, "ann", 1, watchdog)
	if got.System != "You code." || len(got.Messages) != 3 || len(got.Tools) != 1 || got.Tools[0] != "read" || got.Summary {
		t.Errorf("request = %+v", got)
	}
	want := "user: hello<image_url>\nassistant:  [read {\"path\":\"a\"}]\ntool: one\n"
	if got.Transcript() != want {
		t.Errorf("Transcript() = %q, want %q", got.Transcript(), want)
	}
	if got.Last().ToolCallID != "c1" || got.Messages[1].ToolCalls[0].ID != "c1" {
		t.Errorf("messages = %+v", got.Messages)
	}
	if string(got.Raw) != turn || !strings.Contains(string(got.ToolsJSON), `"description":"d"`) {
		t.Errorf("Raw = %s, ToolsJSON = %s", got.Raw, got.ToolsJSON)
	}
	if all := s.Requests("ann"); len(all) != 2 || !all[1].Summary {
		t.Errorf("Requests = %+v, want a turn and a summary", all)
	}
	if n := len(s.Turns("bob")); n != 0 {
		t.Errorf("another session has %d requests", n)
	}
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	closed := make(chan struct{})
	close(closed)
	for _, tt := range []struct {
		name string
		step model.Step
		want string
	}{
		{"text", model.Step{Text: "hi"}, "hi|stop|1020"},
		{"chunks", model.Step{Text: "grüße", Chunks: 3, ChunkDelay: time.Millisecond}, "g/rü/ße|stop|1020"},
		{"more chunks than text", model.Step{Text: "ab", Chunks: 9}, "a/b|stop|1020"},
		{"usage and finish", model.Step{Text: "x", Usage: model.Usage{Prompt: 7, Completion: 1}, Finish: "length"}, "x|length|8"},
		{
			"tools",
			model.Step{Tools: []model.Tool{{Name: "read", Args: map[string]any{"path": "a"}}, {Name: "ls"}, {Name: "bad", Args: "{"}}},
			`read({"path":"a"})/ls({})/bad({)|tool_calls|1020`,
		},
		{
			"a tool in pieces",
			model.Step{Tools: []model.Tool{{Name: "read", Args: model.Pieces{{Text: `{"pa`}, {Text: `th":"a"`, Wait: closed}, {Text: "}"}}}, {Name: "ls"}}},
			`read({"pa)/(th":"a")/(})/ls({})|tool_calls|1020`,
		},
		{"after waiting", model.Step{Text: "x", Wait: closed, Delay: time.Millisecond}, "x|stop|1020"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := model.Start(t)
			s.Script("a", tt.step)
			if got := ask(t, s, "a", turn); got != tt.want {
				t.Errorf("answer = %q, want %q", got, tt.want)
			}
			if got := ask(t, s, "a", turn); got != "ok|stop|1020" {
				t.Errorf("answer of an empty queue = %q", got)
			}
		})
	}
}

func TestQueuesAreApart(t *testing.T) {
	t.Parallel()
	s := model.Start(t)
	s.Script("a", model.Step{Text: "turn"})
	s.ScriptSummary("a", model.Step{Text: "sum"})
	s.Script("b", model.Step{Text: "other"})
	for _, tt := range []struct{ session, body, want string }{
		{"a", summary, "sum|stop|1020"},
		{"b", turn, "other|stop|1020"},
		{"a", turn, "turn|stop|1020"},
	} {
		if got := ask(t, s, tt.session, tt.body); got != tt.want {
			t.Errorf("%s: answer = %q, want %q", tt.session, got, tt.want)
		}
	}
}

func TestErrorStatus(t *testing.T) {
	t.Parallel()
	s := model.Start(t)
	s.Script("a", model.Step{Status: 429, Message: "slow down", Headers: map[string]string{"Retry-After": "1"}})
	res := post(t, t.Context(), s, "a", turn)
	body, _ := io.ReadAll(res.Body)
	if res.StatusCode != 429 || res.Header.Get("Retry-After") != "1" || !strings.Contains(string(body), `"message":"slow down"`) {
		t.Errorf("%d %v %s", res.StatusCode, res.Header, body)
	}
	if res := post(t, t.Context(), s, "a", "{"); res.StatusCode != http.StatusBadRequest {
		t.Errorf("torn body: status %d", res.StatusCode)
	}
}

func TestDropCutsTheStream(t *testing.T) {
	t.Parallel()
	s := model.Start(t)
	s.Script("a", model.Step{Drop: true})
	res := post(t, t.Context(), s, "a", turn)
	body, err := io.ReadAll(res.Body)
	if !errors.Is(err, io.ErrUnexpectedEOF) || !strings.HasPrefix(string(body), "data: ") {
		t.Errorf("body = %q, err = %v, want a stream that breaks", body, err)
	}
}

// A step that does not answer ends with its client, and with the server.
func TestClientGone(t *testing.T) {
	t.Parallel()
	for name, step := range map[string]model.Step{
		"hang":  {Hang: true},
		"wait":  {Wait: make(chan struct{})},
		"delay": {Delay: time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := model.Start(t)
			s.Script("a", step, step)
			left := make(chan error, 2)
			open := func(ctx context.Context) {
				_, err := http.DefaultClient.Do(request(ctx, s, "a", turn))
				left <- err
			}
			ctx, cancel := context.WithCancel(t.Context())
			go open(ctx)
			s.WaitRequest(t, "a", 1, watchdog)
			cancel()
			if err := <-left; !errors.Is(err, context.Canceled) {
				t.Errorf("err = %v, want it cancelled", err)
			}
			// This one is still open when the server's Cleanup runs, which
			// waits for all its handlers.
			go open(context.WithoutCancel(ctx))
			s.WaitRequest(t, "a", 2, watchdog)
		})
	}
}

// A call that stays half written ends with the server, whose Cleanup waits for
// all its handlers.
func TestHalfACall(t *testing.T) {
	t.Parallel()
	s := model.Start(t)
	s.Script("a", model.Step{Tools: []model.Tool{{Name: "read", Args: model.Pieces{{Text: `{"pa`}, {Text: `th":"a"}`, Wait: make(chan struct{})}}}}})
	lines := bufio.NewScanner(post(t, t.Context(), s, "a", turn).Body)
	for lines.Scan() {
		if strings.Contains(lines.Text(), `{\"pa`) {
			return
		}
	}
	t.Errorf("the first piece did not come: %v", lines.Err())
}

func request(ctx context.Context, s *model.Server, session, body string) *http.Request {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+"/chat/completions", strings.NewReader(body))
	if err != nil {
		panic(err)
	}
	req.Header.Set(model.SessionHeader, session)
	return req
}

func post(t *testing.T, ctx context.Context, s *model.Server, session, body string) *http.Response {
	t.Helper()
	res, err := http.DefaultClient.Do(request(ctx, s, session, body))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = res.Body.Close() })
	return res
}

// ask returns the answer in short: pieces|finish|total tokens.
func ask(t *testing.T, s *model.Server, session, body string) string {
	t.Helper()
	res := post(t, t.Context(), s, session, body)
	var pieces []string
	var finish string
	var total json.Number
	done := false
	lines := bufio.NewScanner(res.Body)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok || data == "[DONE]" {
			done = done || ok
			continue
		}
		var chunk struct {
			Choices []struct {
				FinishReason string `json:"finish_reason"`
				Delta        struct {
					Content   string
					ToolCalls []struct {
						Function struct{ Name, Arguments string }
					} `json:"tool_calls"`
				}
			}
			Usage struct {
				Total json.Number `json:"total_tokens"`
			}
		}
		if err := json.Unmarshal([]byte(data), &chunk); err != nil {
			t.Fatalf("chunk %q: %v", data, err)
		}
		for _, c := range chunk.Choices {
			if c.Delta.Content != "" {
				pieces = append(pieces, c.Delta.Content)
			}
			for _, call := range c.Delta.ToolCalls {
				pieces = append(pieces, call.Function.Name+"("+call.Function.Arguments+")")
			}
			finish += c.FinishReason
		}
		if chunk.Usage.Total != "" {
			total = chunk.Usage.Total
		}
	}
	if !done {
		t.Errorf("the stream did not end with [DONE]")
	}
	return strings.Join(pieces, "/") + "|" + finish + "|" + total.String()
}
