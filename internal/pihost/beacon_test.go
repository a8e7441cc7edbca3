package pihost

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"switchboard/internal/agent"
	"switchboard/internal/beacon"
	"switchboard/internal/exchange"
	"switchboard/internal/lifecycle"
	"switchboard/internal/proc"
)

var joined = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)

func sibling(id string, wakes bool, after time.Duration) exchange.Session {
	return exchange.Session{Record: exchange.Record{
		Key: exchange.SessionKey{Host: exchange.PiHost, ID: id}, Name: "n-" + id, State: "working", Wakes: wakes,
		Joined: joined.Add(after), Agent: proc.ID{PID: os.Getpid()},
	}}
}

// candle is a light with a folder of its own.
func candle(t *testing.T) *light {
	t.Helper()
	dir, err := os.MkdirTemp("", "sb") // short: it holds a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return &light{
		dir: filepath.Join(dir, "beacon"), log: slog.New(slog.DiscardHandler), instance: "i", started: 1000, joined: joined,
		ask:  func(context.Context) (snapshot, error) { return snapshot{}, errors.New("no Pi") },
		tell: func(text string) { t.Errorf("told %q", text) },
		session: agent.Session{
			Key: exchange.SessionKey{Host: exchange.PiHost, ID: "s"}, Cwd: "/work", PID: os.Getpid(), Wakes: true,
		},
	}
}

// Of the sessions of a process one shows the beacon: with a human before
// without, then the first.
func TestFirst(t *testing.T) {
	tests := []struct {
		name   string
		wakes  bool
		others []exchange.Session
		want   bool
	}{
		{"alone", true, nil, true},
		{"alone, nobody to wake", false, nil, true},
		{"a later subagent", true, []exchange.Session{sibling("a", false, time.Second)}, true},
		{"an earlier one without a human", true, []exchange.Session{sibling("a", false, -time.Second)}, true},
		{"the subagent itself", false, []exchange.Session{sibling("a", true, time.Second)}, false},
		{"two of a kind, the earlier", true, []exchange.Session{sibling("a", true, time.Second)}, true},
		{"two of a kind, the later", true, []exchange.Session{sibling("a", true, -time.Second)}, false},
		{"two at once: the ids decide", true, []exchange.Session{sibling("t", true, 0)}, true},
		{"two at once, the other's id", true, []exchange.Session{sibling("r", true, 0)}, false},
		{"print mode and its subagent", false, []exchange.Session{sibling("a", false, time.Second)}, true},
		{"third of three", false, []exchange.Session{sibling("a", false, time.Second), sibling("b", false, -time.Second)}, false},
	}
	for _, tt := range tests {
		l := light{joined: joined, siblings: tt.others, session: agent.Session{Key: exchange.SessionKey{ID: "s"}, Wakes: tt.wakes}}
		if got := l.first(); got != tt.want {
			t.Errorf("%s: first = %v, want %v", tt.name, got, tt.want)
		}
		if l.joined = (time.Time{}); len(tt.others) > 0 && tt.others[0].Wakes == tt.wakes && l.first() {
			t.Errorf("%s: first before it is on the roster", tt.name)
		}
	}
}

// What the document says of each view: as JSON, so that null and absent show.
func TestDocument(t *testing.T) {
	since := time.UnixMilli(5000)
	tool := time.UnixMilli(6000)
	tests := []struct {
		name  string
		view  agent.View
		now   snapshot
		state string
		want  string // the detail
	}{
		{"idle", agent.View{State: lifecycle.Idle}, snapshot{}, "idle", `{"pendingMessages":false,"pendingCount":0}`},
		{"ours waits", agent.View{State: lifecycle.Idle, Waiting: 2}, snapshot{}, "idle", `{"pendingMessages":true,"pendingCount":2}`},
		{"the human's waits", agent.View{State: lifecycle.Working}, snapshot{Pending: true}, "working", `{"pendingMessages":true,"pendingCount":0}`},
		{
			"a tool",
			agent.View{State: lifecycle.Working, Detail: lifecycle.Detail{Tool: "ba\x1b[2Jsh\n", ToolSince: tool}},
			snapshot{},
			"working", `{"pendingMessages":false,"pendingCount":0,"tool":"bash","toolSince":6000}`,
		},
		{
			"a dialog",
			agent.View{State: lifecycle.Working, Detail: lifecycle.Detail{Dialog: true}},
			snapshot{},
			"working", `{"pendingMessages":false,"pendingCount":0,"waitingForUser":true}`,
		},
		{
			"compacting",
			agent.View{State: lifecycle.Compacting, Detail: lifecycle.Detail{Compaction: &lifecycle.CompactionBegan{Reason: lifecycle.Threshold}}},
			snapshot{},
			"compacting", `{"pendingMessages":false,"pendingCount":0,"compactionReason":"threshold","willRetry":false}`,
		},
		{
			"compacting to retry",
			agent.View{State: lifecycle.Compacting, Detail: lifecycle.Detail{Compaction: &lifecycle.CompactionBegan{Reason: lifecycle.Overflow, WillRetry: true}}},
			snapshot{},
			"compacting", `{"pendingMessages":false,"pendingCount":0,"compactionReason":"overflow","willRetry":true}`,
		},
		{
			"retrying",
			agent.View{State: lifecycle.Retrying, Detail: lifecycle.Detail{Retry: &lifecycle.RetryScheduled{Attempt: 2, Max: 3, Delay: 4 * time.Second, Error: "429"}}},
			snapshot{},
			"retrying", `{"pendingMessages":false,"pendingCount":0,"attempt":2,"maxAttempts":3,"delayMs":4000,"error":"429"}`,
		},
		{
			"retrying at once",
			agent.View{State: lifecycle.Retrying, Detail: lifecycle.Detail{Retry: &lifecycle.RetryScheduled{Attempt: 1, Max: 3}}},
			snapshot{},
			"retrying", `{"pendingMessages":false,"pendingCount":0,"attempt":1,"maxAttempts":3,"delayMs":0}`,
		},
		{
			"a retry that waits for a compaction",
			agent.View{State: lifecycle.Compacting, Detail: lifecycle.Detail{
				Compaction: &lifecycle.CompactionBegan{Reason: lifecycle.Manual}, Retry: &lifecycle.RetryScheduled{Attempt: 1, Max: 3},
			}},
			snapshot{},
			"compacting", `{"pendingMessages":false,"pendingCount":0,"compactionReason":"manual","willRetry":false}`,
		},
	}
	for _, tt := range tests {
		l := candle(t)
		tt.view.Since = since
		l.view, l.now = tt.view, tt.now
		d := l.document()
		detail, err := json.Marshal(d.Detail)
		if err != nil || string(detail) != tt.want || string(d.State) != tt.state || d.Since != 5000 {
			t.Errorf("%s: %s since %d, detail %s, %v; want %s, %s", tt.name, d.State, d.Since, detail, err, tt.state, tt.want)
		}
	}
}

// Unknown is null and never invented.
func TestDocumentNulls(t *testing.T) {
	l := candle(t)
	l.view = agent.View{State: lifecycle.Idle, Since: time.UnixMilli(5000)}
	fields := func() map[string]any {
		data, err := json.Marshal(l.document())
		if err != nil {
			t.Fatal(err)
		}
		var out map[string]any
		if err := json.Unmarshal(data, &out); err != nil {
			t.Fatal(err)
		}
		return out
	}
	got := fields()
	for _, name := range []string{"model", "sessionFile", "sessionName"} {
		if v, there := got[name]; !there || v != nil {
			t.Errorf("%s = %v (there: %v), want null", name, v, there)
		}
	}
	none := map[string]any{"tokens": nil, "contextWindow": nil, "percent": nil}
	if !reflect.DeepEqual(got["contextUsage"], none) {
		t.Errorf("contextUsage = %v, want %v", got["contextUsage"], none)
	}
	for name, want := range map[string]any{
		"schema": "pi-beacon/v1", "pid": float64(os.Getpid()), "sessionId": "s", "cwd": "/work", "startedAt": 1000.0, "since": 5000.0, "instance": "i",
	} {
		if got[name] != want {
			t.Errorf("%s = %v, want %v", name, got[name], want)
		}
	}
	for _, name := range []string{"sessions", "limits"} {
		if v, there := got[name]; there {
			t.Errorf("%s = %v, want it absent", name, v)
		}
	}

	tokens, window, percent := 10, 100, 10.0
	l.session.Model, l.session.File, l.session.Name = "p/m", "/s.jsonl", "ann"
	l.now = snapshot{Usage: beacon.Usage{Tokens: &tokens, ContextWindow: &window, Percent: &percent}}
	l.siblings, l.limits = []exchange.Session{sibling("a", false, time.Second)}, "no dialogs"
	got = fields()
	for name, want := range map[string]any{
		"model": "p/m", "sessionFile": "/s.jsonl", "sessionName": "ann", "limits": "no dialogs",
		"contextUsage": map[string]any{"tokens": 10.0, "contextWindow": 100.0, "percent": 10.0},
		"sessions":     []any{map[string]any{"id": "a", "name": "n-a", "state": "working"}},
	} {
		if !reflect.DeepEqual(got[name], want) {
			t.Errorf("%s = %v, want %v", name, got[name], want)
		}
	}
}

// A document appears once both the state and the siblings are known, goes to
// the session that is first, and with the last one.
func TestLightTakesTurns(t *testing.T) {
	l := candle(t)
	lit := func() bool { _, err := beacon.Read(l.dir, os.Getpid()); return err == nil }
	l.Note(snapshot{Pending: true})
	l.Show(agent.View{State: lifecycle.Working})
	if lit() {
		t.Error("it is lit before the siblings are known")
	}
	l.Siblings(nil)
	d, err := beacon.Read(l.dir, os.Getpid())
	if err != nil || d.State != lifecycle.Working || !d.Detail.PendingMessages {
		t.Errorf("document = %+v, %v", d, err)
	}
	sub, _, err := beacon.Subscribe(t.Context(), d.Socket)
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	l.Show(agent.View{State: lifecycle.Idle})
	if d, err := sub.Next(); err != nil || d.State != lifecycle.Idle {
		t.Errorf("pushed %+v, %v", d, err)
	}

	l.Siblings([]exchange.Session{sibling("elder", true, -time.Second)})
	if _, err := sub.Next(); err == nil {
		t.Error("a session that is not the first answers still")
	}
	if !lit() {
		t.Error("the document went although another session is there to show it")
	}
	l.Siblings(nil)
	for deadline := time.Now().Add(10 * time.Second); ; { // the one before closes first
		if d, err = beacon.Query(t.Context(), d.Socket); err == nil || time.Now().After(deadline) {
			break
		}
		d.Socket = filepath.Join(l.dir, strconv.Itoa(os.Getpid())+".sock")
	}
	if err != nil || d.State != lifecycle.Idle {
		t.Errorf("first again: Query = %+v, %v", d, err)
	}
	l.Off(true)
	l.Show(agent.View{State: lifecycle.Working})
	if lit() {
		t.Error("it is lit after it was put out")
	}
	l.Off(true)
}

// A beacon that can't be had is told once, and tried again later.
func TestLightCannot(t *testing.T) {
	l := candle(t)
	if err := os.WriteFile(l.dir, nil, 0o600); err != nil { // in the way of the folder
		t.Fatal(err)
	}
	var told []string
	l.tell = func(text string) { told = append(told, text) }
	l.Siblings(nil)
	for range 10 {
		l.Show(agent.View{State: lifecycle.Idle})
	}
	if len(told) != 1 || !strings.Contains(told[0], "no beacon for this session") {
		t.Errorf("told %q, want it once", told)
	}
	if err := os.Remove(l.dir); err != nil {
		t.Fatal(err)
	}
	l.failed = time.Now().Add(-beacon.Heartbeat)
	l.Show(agent.View{State: lifecycle.Idle})
	if _, err := beacon.Read(l.dir, os.Getpid()); err != nil {
		t.Error(err)
	}
	l.Off(true)
}

// Many queries at once cost Pi one question, whether it answers or not; a later
// one asks anew.
func TestFreshAsksOnce(t *testing.T) {
	for _, answers := range []bool{true, false} {
		l := candle(t)
		l.view = agent.View{State: lifecycle.Working}
		var asked atomic.Int32
		l.ask = func(ctx context.Context) (snapshot, error) {
			asked.Add(1)
			if !answers {
				<-ctx.Done()
				return snapshot{}, ctx.Err()
			}
			time.Sleep(5 * time.Millisecond)
			return snapshot{Pending: true}, nil
		}
		query := func() {
			d, ok := l.fresh(t.Context())
			if ok != answers || ok && (!d.Detail.PendingMessages || d.State != lifecycle.Working) {
				t.Errorf("fresh = %+v, %v", d, ok)
			}
		}
		began := time.Now()
		var all sync.WaitGroup
		for range 100 {
			all.Go(query)
		}
		all.Wait()
		took := time.Since(began)
		// On a machine that is slow enough an answer may be too old by then.
		if n := asked.Load(); n > 1+int32(took/snapshotAge) || n > 10 {
			t.Errorf("100 queries in %v asked Pi %d times (it answers: %v)", took, n, answers)
		}
		before := asked.Load()
		time.Sleep(snapshotAge)
		query()
		if asked.Load() != before+1 {
			t.Error("a later query did not ask Pi")
		}
	}
}
