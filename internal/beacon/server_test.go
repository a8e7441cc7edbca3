package beacon

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"switchboard/internal/lifecycle"
)

// wire is a client that keeps to no rules.
type wire struct {
	*net.UnixConn
	in *bufio.Reader
}

func dial(t *testing.T, p *Publisher) *wire {
	t.Helper()
	conn, err := net.Dial("unix", p.known().Socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(30 * time.Second))
	return &wire{conn.(*net.UnixConn), bufio.NewReader(conn)}
}

func (w *wire) say(t *testing.T, text string) {
	t.Helper()
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
}

// line returns the next line without its end, "" at the end of all.
func (w *wire) line(t *testing.T) string {
	t.Helper()
	s, err := w.in.ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) && !isReset(err) {
		t.Fatal(err)
	}
	return strings.TrimSuffix(s, "\n")
}

func isReset(err error) bool { return strings.Contains(err.Error(), "connection reset") }

func lit(t *testing.T) *Publisher {
	t.Helper()
	p := open(t, folder(t), document(lifecycle.Working, "i"))
	t.Cleanup(func() { p.Close(true) })
	return p
}

// clients counts the connections that the server holds.
func (p *Publisher) clients() int {
	p.server.mu.Lock()
	defer p.server.mu.Unlock()
	return len(p.server.clients)
}

// The answer has the shape of the specification, every field of it.
func TestGetState(t *testing.T) {
	p := lit(t)
	d := document(lifecycle.Working, "i")
	model, file, tokens, window, percent := "provider/model-id", "/s.jsonl", 116718, 1048576, 11.13
	d.Model, d.SessionFile, d.ContextUsage = &model, &file, Usage{&tokens, &window, &percent}
	p.Update(d)
	w := dial(t, p)
	w.say(t, `{"type":"get_state"}`+"\n")
	var got struct {
		Type    string
		Command string
		Success bool
		Data    map[string]any
	}
	text := w.line(t)
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	if got.Type != "response" || got.Command != "get_state" || !got.Success {
		t.Errorf("the envelope is %s", text)
	}
	if !strings.HasPrefix(text, `{"type":"response","command":"get_state","success":true,"data":{"schema":"pi-beacon/v1","pid":`) {
		t.Errorf("the answer begins %.120s", text)
	}
	for field, want := range map[string]any{
		"schema": "pi-beacon/v1", "pid": float64(d.PID), "state": "working", "model": model, "sessionFile": file,
		"sessionId": "s", "sessionName": nil, "cwd": "/work", "startedAt": float64(d.StartedAt),
	} {
		if v, ok := got.Data[field]; !ok || v != want {
			t.Errorf("%s = %v (there: %v), want %v", field, v, ok, want)
		}
	}
	if v := fmt.Sprint(got.Data["contextUsage"]); v != "map[contextWindow:1.048576e+06 percent:11.13 tokens:116718]" {
		t.Errorf("contextUsage = %s", v)
	}
	if v := got.Data["detail"].(map[string]any)["pendingMessages"]; v != false {
		t.Errorf("pendingMessages = %v", v)
	}
	updated, _ := got.Data["updatedAt"].(float64)
	if age := time.Since(time.UnixMilli(int64(updated))); age > 5*time.Second || age < -time.Second {
		t.Errorf("updatedAt is %v ago", age)
	}
}

// A query gets what the host says now; when that doesn't answer, what is known.
func TestFresh(t *testing.T) {
	cfg := config(folder(t))
	var answers atomic.Bool
	cfg.Fresh = func(context.Context) (Document, bool) {
		d := document(lifecycle.Retrying, "fresh")
		d.Socket = "wrong"
		return d, answers.Load()
	}
	p, err := Open(cfg, document(lifecycle.Idle, "known"))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close(true)
	for _, fresh := range []bool{false, true} {
		answers.Store(fresh)
		d, err := Query(t.Context(), p.known().Socket)
		want := map[bool]string{false: "known", true: "fresh"}[fresh]
		if err != nil || d.Instance != want || d.Socket != p.known().Socket {
			t.Errorf("Query = %+v, %v; want instance %s", d, err, want)
		}
	}
}

// Whatever arrives is answered with an error or not at all, and the next client
// is served.
func TestHostileLines(t *testing.T) {
	p := lit(t)
	const ok = `"command":"get_state","success":true,"data":{`
	tests := []struct {
		name, send string
		want       []string // a part of each line of the answer
	}{
		{"two questions", "{\"type\":\"get_state\"}\n{\"type\":\"get_state\"}\n", []string{ok, ok}},
		{"windows line ends", "{\"type\":\"get_state\"}\r\n", []string{ok}},
		{"id, a number", "{\"type\":\"get_state\",\"id\":7}\n", []string{`{"type":"response","id":7,` + ok}},
		{"id, an object", "{\"type\":\"get_state\",\"id\":{\"a\":[1]}}\n", []string{`"id":{"a":[1]},`}},
		{"id of an error", "{\"type\":\"prompt\",\"id\":\"x\",\"message\":\"do it\"}\n", []string{`{"type":"response","id":"x","command":"prompt","success":false,"error":"unknown command`}},
		{"long name", `{"type":"` + strings.Repeat("x", 1000) + "\"}\n", []string{`"command":"unknown","success":false,"error":"unknown command`}},
		{"no type", "{}\n", []string{`"success":false,"error":"want a JSON object`}},
		{"null", "null\n", []string{`"success":false`}},
		{"garbage, then a question", "\x00\xff\x1b[2J}{\n{\"type\":\"get_state\"}\n", []string{`"success":false,"error":"want a JSON object`, ok}},
		{"an array", "[1]\n", []string{`"success":false,"error":"want a JSON object`}},
		{"wrong type", "{\"type\":5}\n", []string{`"success":false,"error":"want a JSON object`}},
		{"empty line", "\n", []string{`"success":false`}},
		{"no line end, then half-closed", `{"type":"get_state"}`, []string{ok}},
		{"half a question, then half-closed", `{"type":"get_st`, []string{`"success":false`}},
		{"nothing, half-closed", "", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := dial(t, p)
			w.say(t, tt.send)
			if err := w.CloseWrite(); err != nil {
				t.Fatal(err)
			}
			for _, want := range tt.want {
				if got := w.line(t); !strings.Contains(got, want) || !json.Valid([]byte(got)) {
					t.Errorf("answer %.300q, want %q in it", got, want)
				}
			}
			if got := w.line(t); got != "" {
				t.Errorf("one answer too many: %s", got)
			}
		})
	}
	eventually(t, "the clients to be gone", func() bool { return p.clients() == 0 })
}

// A line that does not end is cut off early.
func TestEndlessLine(t *testing.T) {
	p := lit(t)
	w := dial(t, p)
	sent := 0
	var err error
	for block := bytes.Repeat([]byte("x"), 1<<20); err == nil && sent < 10; sent++ {
		_, err = w.Write(block)
	}
	if err == nil {
		t.Error("10 MB of one line were taken")
	}
	if got := w.line(t); !strings.Contains(got, "at most 64 KB") {
		t.Errorf("answer %q", got)
	}
	if _, err := Query(t.Context(), p.known().Socket); err != nil {
		t.Error(err)
	}
}

// One that asks and never reads holds up nobody, and is cut off.
func TestSlowReader(t *testing.T) {
	t.Parallel()
	p := lit(t)
	w := dial(t, p)
	began := time.Now()
	blocked := make(chan error, 1)
	go func() {
		for {
			if _, err := io.WriteString(w, strings.Repeat("{\"type\":\"get_state\"}\n", 100)); err != nil {
				blocked <- err
				return
			}
		}
	}()
	for served := 0; ; served++ {
		asked := time.Now()
		if _, err := Query(t.Context(), p.known().Socket); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(asked); took > time.Second {
			t.Errorf("another client waited %v", took)
		}
		select {
		case err := <-blocked:
			t.Logf("cut off after %v (%v); %d others were served meanwhile", time.Since(began), err, served)
			return
		default:
			time.Sleep(time.Millisecond)
		}
	}
}

// Whatever others hold open, a question is answered at once.
func TestManyConnections(t *testing.T) {
	for name, first := range map[string]string{
		"silent": "", "asking": "{\"type\":\"get_state\"}\n", "subscribing": "{\"type\":\"subscribe\"}\n", "half a command": "{\"type\":",
	} {
		t.Run(name, func(t *testing.T) {
			p := lit(t)
			all := make([]*wire, maxClients+50)
			for i := range all {
				all[i] = dial(t, p)
				_, _ = io.WriteString(all[i], first)
			}
			began := time.Now()
			if _, err := Query(t.Context(), p.known().Socket); err != nil {
				t.Error(err)
			}
			if took := time.Since(began); took > 2*time.Second { // far less than a silent one may stay
				t.Errorf("answered after %v", took)
			}
			if n := p.clients(); n > maxClients {
				t.Errorf("%d connections", n)
			}
			for _, w := range all {
				w.Close()
			}
			eventually(t, "the clients to be gone", func() bool { return p.clients() == 0 })
			if p.server.subscribers != 0 {
				t.Errorf("%d subscribers are left", p.server.subscribers)
			}
		})
	}
}

// 200 clients at once are all answered, while others hold every other place.
func TestManyQueries(t *testing.T) {
	p := lit(t)
	for i := range maxClients {
		w := dial(t, p)
		if i%4 != 0 {
			w.say(t, "{\"type\":\"subscribe\"}\n")
			w.line(t)
		}
	}
	if p.server.subscribers != maxSubscribers {
		t.Fatalf("%d subscribers, want %d", p.server.subscribers, maxSubscribers)
	}
	const clients, atOnce = 200, 32
	var work sync.WaitGroup
	places := make(chan struct{}, atOnce)
	for range clients {
		places <- struct{}{}
		work.Go(func() {
			defer func() { <-places }()
			if _, err := Query(t.Context(), p.known().Socket); err != nil {
				t.Error(err)
			}
		})
	}
	work.Wait()
}

// A new connection ends the least useful one, and never a subscriber.
func TestDisplacement(t *testing.T) {
	s := &server{ctx: t.Context(), publisher: new(Publisher), clients: make(map[*client]bool)}
	names := make(map[*client]string)
	add := func(name string) *client {
		conn, other := net.Pipe()
		t.Cleanup(func() { conn.Close(); other.Close() })
		c := &client{conn: conn}
		if !s.admit(c) {
			t.Fatal("not admitted")
		}
		names[c] = name
		return c
	}
	poller := add("poller")
	s.rank(poller, quiet)
	for range maxSubscribers {
		s.enlist(add("subscriber"))
	}
	s.rank(add("older busy"), busy)
	s.rank(add("newer busy"), busy)
	s.rank(add("quiet"), quiet)
	s.rank(poller, busy)
	s.rank(poller, quiet)
	add("older silent")
	for len(s.clients) < maxClients {
		add("silent")
	}
	gone := func() (out string) {
		for c, name := range names {
			if !s.clients[c] {
				out = name
				delete(names, c)
			}
		}
		return out
	}
	spare := maxClients - maxSubscribers - 5 // silent ones beside the oldest
	for i, want := range append(append([]string{"older silent"}, slices.Repeat([]string{"silent"}, spare)...), "quiet", "poller", "older busy", "newer busy") {
		s.rank(add("new"), busy)
		if got := gone(); got != want {
			t.Fatalf("connection %d took the place of %q, want %q", i, got, want)
		}
	}
	if n := s.subscribers; n != maxSubscribers {
		t.Errorf("%d subscribers", n)
	}
}

// A connection costs little memory.
func TestSmallConnections(t *testing.T) {
	p := lit(t)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for range maxSubscribers {
		w := dial(t, p)
		w.say(t, "{\"type\":\"subscribe\"}\n")
		w.line(t)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	each := (int64(after.HeapAlloc) - int64(before.HeapAlloc)) / maxSubscribers
	if t.Logf("%d bytes each", each); each > 32<<10 {
		t.Errorf("a subscriber costs %d bytes", each)
	}
}

// Subscribers above their number are told so, and none is displaced.
func TestManySubscribers(t *testing.T) {
	p := lit(t)
	refused := 0
	var all []*wire
	for range maxClients {
		w := dial(t, p)
		w.say(t, "{\"type\":\"subscribe\"}\n")
		if got := w.line(t); strings.Contains(got, "too many subscribers") {
			refused++
		} else if strings.Contains(got, `"success":true`) {
			all = append(all, w)
		}
	}
	if len(all) != maxSubscribers || refused != maxClients-maxSubscribers {
		t.Errorf("%d subscribed, %d refused", len(all), refused)
	}
	for range maxClients {
		dial(t, p)
	}
	p.Update(numbered(2))
	for _, w := range all {
		if got := w.line(t); !strings.Contains(got, `"type":"state"`) {
			t.Fatalf("a subscriber heard %q", got)
		}
	}
}

// A subscriber may ask as well.
func TestAskAfterSubscribe(t *testing.T) {
	p := lit(t)
	w := dial(t, p)
	w.say(t, "{\"type\":\"subscribe\",\"id\":1}\n{\"type\":\"get_state\",\"id\":2}\n{}\n")
	for _, want := range []string{`"id":1,"command":"subscribe","success":true`, `"id":2,"command":"get_state","success":true`, `"success":false`} {
		if got := w.line(t); !strings.Contains(got, want) {
			t.Errorf("answer %q lacks %q", got, want)
		}
	}
	p.Update(numbered(2))
	if got := w.line(t); !strings.Contains(got, `"type":"state"`) {
		t.Errorf("then it heard %q", got)
	}
}

// An answer on a subscribed connection is never older than a push before it, so
// that whoever takes what came last knows the state.
func TestAnswersAndPushesInOrder(t *testing.T) {
	p := open(t, folder(t), numbered(0))
	defer p.Close(true)
	w := dial(t, p)
	w.say(t, "{\"type\":\"subscribe\"}\n")
	w.line(t)
	const transitions = 2000
	var heard atomic.Int64
	var work sync.WaitGroup
	defer work.Wait()
	work.Go(func() {
		for n := 1; n <= transitions; n++ {
			p.Update(numbered(n))
			for int64(n)-heard.Load() > maxBacklog/2 && t.Context().Err() == nil {
				time.Sleep(50 * time.Microsecond)
			}
		}
	})
	work.Go(func() {
		for heard.Load() < transitions {
			if _, err := io.WriteString(w, "{\"type\":\"get_state\"}\n"); err != nil {
				return
			}
			time.Sleep(20 * time.Microsecond)
		}
	})
	answers := 0
	for last := int64(0); last < transitions; heard.Store(last) {
		var m push
		if text := w.line(t); json.Unmarshal([]byte(text), &m) != nil {
			t.Errorf("line %q", text)
			heard.Store(transitions)
			return
		}
		switch {
		case m.Type == "response" && m.Data.Since >= last:
			answers++
		case m.Type == "state" && m.Data.Since == last+1:
			last++
		default:
			t.Errorf("after push %d came a %s of %d", last, m.Type, m.Data.Since)
			heard.Store(transitions)
			return
		}
	}
	if answers == 0 {
		t.Error("no question was answered")
	}
}

// What happened before a question is told before its answer.
func TestPushesBeforeAnswer(t *testing.T) {
	cfg := config(folder(t))
	asked, answer := make(chan bool), make(chan bool)
	cfg.Fresh = func(context.Context) (Document, bool) {
		asked <- true
		<-answer
		return Document{}, false
	}
	p, err := Open(cfg, numbered(0))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close(true)
	w := dial(t, p)
	w.say(t, "{\"type\":\"subscribe\"}\n")
	w.line(t)
	for round := range 10 { // without a rule it is a matter of chance
		w.say(t, strings.Repeat("{\"type\":\"get_state\"}\n", 2))
		<-asked
		p.Update(numbered(2*round + 1))
		p.Update(numbered(2*round + 2))
		time.Sleep(5 * time.Millisecond) // for the second question to be read
		answer <- true
		<-asked
		answer <- true
		var got []string
		for range 4 {
			var m push
			if text := w.line(t); json.Unmarshal([]byte(text), &m) != nil {
				t.Fatalf("line %q", text)
			}
			got = append(got, m.Type)
		}
		if want := []string{"response", "state", "state", "response"}; !slices.Equal(got, want) {
			t.Fatalf("heard %q, want %q", got, want)
		}
	}
}

// A subscriber that breaks the rules is told so and closed.
func TestEndlessLineOfSubscriber(t *testing.T) {
	p := lit(t)
	w := dial(t, p)
	w.say(t, "{\"type\":\"subscribe\"}\n")
	w.line(t)
	w.say(t, strings.Repeat("x", maxLine+usualLine))
	if got := w.line(t); !strings.Contains(got, "at most 64 KB") {
		t.Errorf("answer %q", got)
	}
	if got := w.line(t); got != "" {
		t.Errorf("then %q", got)
	}
}

// What is no command is told so; names count as they are written.
func TestNoCommands(t *testing.T) {
	p := lit(t)
	const want = `"command":"unknown","success":false,"error":"want a JSON object`
	for _, line := range []string{"{}", "null", "[]", "7", `"get_state"`, `{"type":null}`, `{"type":7}`, `{"Type":"get_state"}`, `{"TYPE":"get_state"}`} {
		w := dial(t, p)
		w.say(t, line+"\n")
		if got := w.line(t); !strings.Contains(got, want) {
			t.Errorf("%s: answer %q, want %s in it", line, got, want)
		}
	}
	for line, want := range map[string]string{
		`{"id":7}`:             `{"type":"response","id":7,` + want,
		`{"type":""}`:          `"command":"unknown","success":false,"error":"unknown command`,
		`{"type":"GET_STATE"}`: `"command":"GET_STATE","success":false,"error":"unknown command`,
	} {
		w := dial(t, p)
		w.say(t, line+"\n")
		if got := w.line(t); !strings.Contains(got, want) {
			t.Errorf("%s: answer %q, want %s in it", line, got, want)
		}
	}
}

// Connections that say nothing are not kept for ever, nor those that drip.
func TestSilentClients(t *testing.T) {
	t.Parallel()
	p := lit(t)
	silent, drips := dial(t, p), dial(t, p)
	began := time.Now()
	go func() {
		for {
			if _, err := io.WriteString(drips, " "); err != nil {
				return
			}
			time.Sleep(100 * time.Millisecond)
		}
	}()
	for _, w := range []*wire{silent, drips} {
		if got := w.line(t); got != "" {
			t.Errorf("answer %q", got)
		}
	}
	if took := time.Since(began); took < silentTime-time.Second || took > 2*silentTime {
		t.Errorf("closed after %v, want %v", took, silentTime)
	}
}

// A client that was answered and is quiet is closed after a second; one that
// keeps asking is kept.
func TestQuietAfterAnswer(t *testing.T) {
	t.Parallel()
	p := lit(t)
	quiet, asks := dial(t, p), dial(t, p)
	quiet.say(t, "{\"type\":\"get_state\"}\n")
	quiet.line(t)
	began := time.Now()
	closed := make(chan time.Duration, 1)
	go func() {
		_, _ = quiet.in.ReadByte()
		closed <- time.Since(began)
	}()
	for time.Since(began) < 3*quietTime {
		asks.say(t, "{\"type\":\"get_state\"}\n")
		if got := asks.line(t); !strings.Contains(got, `"success":true`) {
			t.Fatalf("answer %q after %v", got, time.Since(began))
		}
		time.Sleep(quietTime / 3)
	}
	if took := <-closed; took < quietTime/2 || took > 3*quietTime {
		t.Errorf("closed after %v, want %v", took, quietTime)
	}
}

// numbered is the document of the n-th transition.
func numbered(n int) Document {
	d := document([]lifecycle.State{lifecycle.Idle, lifecycle.Working}[n%2], "i")
	d.Since = int64(n)
	return d
}

// Every subscriber hears of every transition after its answer, once and in
// order, whoever makes them and whenever it came.
func TestSubscribeComplete(t *testing.T) {
	t.Parallel()
	const subscribers, transitions, writers = 8, 1000, 4
	p := open(t, folder(t), numbered(0))
	defer p.Close(true)
	var heard [subscribers]atomic.Int64
	slowest := func() int64 {
		least := heard[0].Load()
		for i := range heard {
			least = min(least, heard[i].Load())
		}
		return least
	}
	var work sync.WaitGroup
	for i := range subscribers {
		work.Go(func() {
			// Until it has subscribed it holds up nobody.
			heard[i].Store(transitions)
			time.Sleep(time.Duration(i) * 2 * time.Millisecond)
			sub, doc, err := Subscribe(t.Context(), p.known().Socket)
			if err != nil {
				t.Error(err)
				return
			}
			defer sub.Close()
			for first := doc.Since; ; {
				heard[i].Store(doc.Since)
				if doc.Since == transitions {
					t.Logf("subscriber %d heard %d to %d", i, first, doc.Since)
					return
				}
				next, err := sub.Next()
				if err != nil || next.Since != doc.Since+1 || next.State == doc.State {
					t.Errorf("subscriber %d: after %d came %d, %v", i, doc.Since, next.Since, err)
					heard[i].Store(transitions)
					return
				}
				doc = next
			}
		})
	}
	var mu sync.Mutex
	n := 0
	for range writers {
		work.Go(func() {
			for {
				mu.Lock()
				if n == transitions {
					mu.Unlock()
					return
				}
				n++
				p.Update(numbered(n))
				// The same state again is no transition.
				p.Update(numbered(n))
				last := int64(n)
				mu.Unlock()
				// None is further behind than a backlog, so none is cut off.
				for last-slowest() > maxBacklog/2 {
					time.Sleep(50 * time.Microsecond)
				}
				time.Sleep(20 * time.Microsecond)
			}
		})
	}
	work.Wait()
}

// A subscriber that is too far behind is cut off: what it read until then is
// complete.
func TestSlowSubscriber(t *testing.T) {
	t.Parallel()
	p := open(t, folder(t), numbered(0))
	defer p.Close(true)
	w := dial(t, p)
	w.say(t, "{\"type\":\"subscribe\"}\n")
	eventually(t, "the subscription", func() bool {
		p.server.mu.Lock()
		defer p.server.mu.Unlock()
		for c := range p.server.clients {
			return c.pushes != nil
		}
		return false
	})
	const transitions = 20_000
	began := time.Now()
	for n := range transitions {
		p.Update(numbered(n + 1))
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("%d updates took %v: a slow subscriber holds them up", transitions, took)
	}
	last := int64(-1)
	for {
		text, err := w.in.ReadBytes('\n')
		if err != nil {
			break // the last line may be half of one
		}
		var m push
		if err := json.Unmarshal(text, &m); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if last >= 0 && m.Data.Since != last+1 {
			t.Fatalf("after %d came %d", last, m.Data.Since)
		}
		last = m.Data.Since
	}
	t.Logf("cut off after %d of %d", last, transitions)
	if last >= transitions {
		t.Error("it was not cut off")
	}
	eventually(t, "the client to be gone", func() bool { return p.clients() == 0 })
}

// A subscriber that says no more may still listen.
func TestHalfClosedSubscriber(t *testing.T) {
	t.Parallel()
	p := open(t, folder(t), numbered(0))
	defer p.Close(true)
	w := dial(t, p)
	w.say(t, `{"type":"subscribe","id":"me"}`)
	if err := w.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if got := w.line(t); !strings.HasPrefix(got, `{"type":"response","id":"me","command":"subscribe","success":true,"data":{`) {
		t.Fatalf("answer %q", got)
	}
	for n := 1; n <= 3; n++ {
		time.Sleep(quietTime * 3 / 4)
		p.Update(numbered(n))
		if got := w.line(t); !strings.HasPrefix(got, `{"type":"state","data":{`) || !strings.Contains(got, fmt.Sprintf(`"since":%d`, n)) {
			t.Fatalf("push %d is %q", n, got)
		}
	}
	w.Close()
	eventually(t, "the client to be gone", func() bool { return p.clients() == 0 })
}

// A subscriber that goes is noticed without a transition.
func TestGoneSubscriber(t *testing.T) {
	p := lit(t)
	for range 20 {
		sub, _, err := Subscribe(t.Context(), p.known().Socket)
		if err != nil {
			t.Fatal(err)
		}
		sub.Close()
	}
	eventually(t, "the clients to be gone", func() bool { return p.clients() == 0 })
}

// Close ends every connection, whatever it waits for.
func TestCloseWithClients(t *testing.T) {
	cfg := config(folder(t))
	cfg.Fresh = func(ctx context.Context) (Document, bool) {
		<-ctx.Done() // a host that doesn't answer
		return Document{}, false
	}
	p, err := Open(cfg, document(lifecycle.Idle, "i"))
	if err != nil {
		t.Fatal(err)
	}
	silent, asks := dial(t, p), dial(t, p)
	asks.say(t, "{\"type\":\"get_state\"}\n")
	sub, _, err := Subscribe(t.Context(), p.known().Socket)
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	p.Close(true)
	if _, err := sub.Next(); err == nil {
		t.Error("a subscription goes on after Close")
	}
	silent.line(t)
	asks.line(t)
}
