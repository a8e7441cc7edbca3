package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"switchboard/internal/beacon"
	"switchboard/internal/exchange"
	"switchboard/internal/lifecycle"
	"switchboard/internal/pihost"
)

func beaconsOf(getenv func(string) string) string {
	return pihost.BeaconDir(pihost.AgentDir(getenv, getenv("HOME")))
}

// document is one of this process.
func document(id, name string, state lifecycle.State) beacon.Document {
	now := time.Now()
	d := beacon.Document{
		Schema: beacon.Schema, PID: os.Getpid(), State: state, SessionID: id, Cwd: "/work/project",
		StartedAt: now.UnixMilli(), Since: now.Add(-3 * time.Minute).UnixMilli(), Instance: exchange.NewID(now),
	}
	if name != "" {
		d.SessionName = &name
	}
	return d
}

// runBeacon shows a beacon for its own process: beacon [-dumb] FILE [COMMAND…].
// FILE holds fields of the document; whenever it changes, so does the beacon.
// "quit" in it ends the process as Pi ends, "die" as when it is killed. With a
// command it lasts as long as that. With -dumb there is
// only a file; with -plain it only answers get_state, once a connection.
func runBeacon(args []string) error {
	f := flag.NewFlagSet("beacon", flag.ExitOnError)
	dumb := f.Bool("dumb", false, "")
	plain := f.Bool("plain", false, "")
	_ = f.Parse(args)
	doc := document("id-"+f.Arg(0), f.Arg(0), lifecycle.Idle)
	last, err := os.ReadFile(f.Arg(0))
	if err == nil && len(last) > 0 {
		err = json.Unmarshal(last, &doc)
	}
	if err != nil {
		return err
	}
	if *dumb {
		doc.Socket = beacon.Path(beaconsOf(os.Getenv), doc.PID) // no socket
		if doc.UpdatedAt == 0 {
			doc.UpdatedAt = time.Now().UnixMilli()
		}
		if last, err = json.Marshal(doc); err == nil {
			err = errors.Join(os.MkdirAll(beaconsOf(os.Getenv), 0o700), os.WriteFile(doc.Socket, last, 0o600))
		}
		if err != nil {
			return err
		}
		time.Sleep(time.Hour)
	}
	if *plain {
		return plainBeacon(doc, f.Arg(0))
	}
	p, err := beacon.Open(beacon.Config{Dir: beaconsOf(os.Getenv), PID: doc.PID, Log: slog.New(slog.DiscardHandler)}, doc)
	if err != nil {
		return err
	}
	if f.NArg() > 1 {
		cmd := exec.Command(f.Arg(1), f.Args()[2:]...)
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		err := cmd.Run()
		p.Close(true)
		return err
	}
	for ; ; time.Sleep(2 * time.Millisecond) {
		now, err := os.ReadFile(f.Arg(0))
		if err != nil || bytes.Equal(now, last) || len(now) == 0 {
			continue
		}
		last = now
		switch strings.TrimSpace(string(now)) {
		case "quit":
			p.Close(true)
			return nil
		case "die":
			return nil
		}
		if json.Unmarshal(now, &doc) == nil {
			doc.Since = time.Now().UnixMilli()
			p.Update(doc)
		}
	}
}

// plainBeacon does what the specification asks for, and no more.
func plainBeacon(doc beacon.Document, fields string) error {
	path := beacon.Path(beaconsOf(os.Getenv), doc.PID)
	l, err := net.Listen("unix", strings.TrimSuffix(path, ".json")+".sock")
	if err != nil {
		return err
	}
	now := func() []byte {
		if data, err := os.ReadFile(fields); err == nil {
			_ = json.Unmarshal(data, &doc)
		}
		doc.UpdatedAt = time.Now().UnixMilli()
		data, _ := json.Marshal(doc)
		return data
	}
	if err := os.WriteFile(path, now(), 0o600); err != nil {
		return err
	}
	for {
		conn, err := l.Accept()
		if err != nil {
			return err
		}
		if line, _ := bufio.NewReader(conn).ReadString('\n'); strings.Contains(line, "get_state") {
			fmt.Fprintf(conn, "{\"type\":\"response\",\"command\":\"get_state\",\"success\":true,\"data\":%s}\n", now())
		}
		conn.Close()
	}
}

// lit NAME… waits until the beacon of each session is there, and puts its
// process id into the variable pid_NAME.
func litCommand(ts *testscript.TestScript, _ bool, args []string) {
	for _, name := range args {
		deadline := time.Now().Add(20 * time.Second)
		for found := false; !found; time.Sleep(2 * time.Millisecond) {
			for _, d := range beacon.List(beaconsOf(ts.Getenv)) {
				if text(d.SessionName) == name {
					ts.Setenv("pid_"+name, strconv.Itoa(d.PID))
					found = true
				}
			}
			if time.Now().After(deadline) {
				ts.Fatalf("no beacon of %s after 20 s", name)
			}
		}
	}
}

// saw TEXT FILE waits until a file, such as the output of a program in the
// background, has a text in it.
func sawCommand(ts *testscript.TestScript, _ bool, args []string) {
	deadline := time.Now().Add(20 * time.Second)
	for {
		got, _ := os.ReadFile(ts.MkAbs(args[1]))
		if bytes.Contains(got, []byte(args[0])) {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("%q is not in %s after 20 s:\n%s", args[0], args[1], got)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

func ptr[T any](v T) *T { return &v }

func TestWords(t *testing.T) {
	now := time.UnixMilli(1_700_000_000_000)
	ago := func(d time.Duration) int64 { return now.Add(-d).UnixMilli() }
	tests := []struct {
		state  lifecycle.State
		since  int64
		detail beacon.Detail
		want   string
	}{
		{"idle", ago(3 * time.Minute), beacon.Detail{}, "idle 3m"},
		{"idle", ago(0), beacon.Detail{PendingMessages: true}, "idle"},
		{"idle", 0, beacon.Detail{}, "idle"},
		{"working", ago(90 * time.Second), beacon.Detail{}, "working 1m"},
		{"working", ago(time.Hour), beacon.Detail{Tool: "bash", ToolSince: ago(14 * time.Minute)}, "working · bash 14m"},
		{"working", ago(time.Hour), beacon.Detail{Tool: "bash", ToolSince: ago(0)}, "working · bash"},
		{"working", ago(time.Hour), beacon.Detail{Tool: "bash", WaitingForUser: true}, "working · waiting for you"},
		{"compacting", ago(5 * time.Second), beacon.Detail{CompactionReason: "threshold", WillRetry: ptr(false)}, "compacting (threshold)"},
		{"compacting", ago(5 * time.Second), beacon.Detail{CompactionReason: "overflow", WillRetry: ptr(true)}, "compacting (overflow, will retry)"},
		{"compacting", ago(5 * time.Second), beacon.Detail{}, "compacting 5s"},
		{"retrying", ago(time.Second), beacon.Detail{Attempt: 2, MaxAttempts: 3, DelayMS: ptr(int64(4500)), Error: "429 slow\ndown"}, "retrying 2/3 in 4s: 429 slow down"},
		{"retrying", ago(time.Minute), beacon.Detail{Attempt: 3, MaxAttempts: 3, DelayMS: ptr(int64(4000))}, "retrying 3/3"},
		{"retrying", ago(time.Minute), beacon.Detail{}, "retrying 1m"},
		{"dancing", ago(time.Minute), beacon.Detail{}, "unknown 1m"},
		{"", ago(time.Minute), beacon.Detail{}, "unknown 1m"},
	}
	for _, tt := range tests {
		if got := words(beacon.Document{State: tt.state, Since: tt.since, Detail: tt.detail}, now); got != tt.want {
			t.Errorf("words(%s, %+v) = %q, want %q", tt.state, tt.detail, got, tt.want)
		}
	}
}

func TestUsage(t *testing.T) {
	tests := []struct {
		tokens, window *int
		percent        *float64
		want           string
	}{
		{nil, nil, nil, "-"},
		{ptr(61234), ptr(200_000), ptr(30.6), "61k/200k 31%"},
		{nil, ptr(200_000), nil, "?/200k"},
		{ptr(999), ptr(1_048_576), ptr(0.0), "999/1M 0%"},
		{ptr(1_234_567), ptr(2_000_000), ptr(61.7), "1.2M/2M 62%"},
	}
	for _, tt := range tests {
		if got := usage(beacon.Usage{Tokens: tt.tokens, ContextWindow: tt.window, Percent: tt.percent}); got != tt.want {
			t.Errorf("usage = %q, want %q", got, tt.want)
		}
	}
}

// A locator means a process, whichever of its sessions it names.
func TestNamed(t *testing.T) {
	docs := []beacon.Document{
		{PID: 10, SessionID: "id-a", SessionName: ptr("ann"), Cwd: "/work/a", Sessions: []beacon.Other{{ID: "id-sub", Name: "scout"}}},
		{PID: 20, SessionID: "id-b", Cwd: "/work/a"},
		{PID: 30, SessionID: "id-b", SessionName: ptr("two words"), Cwd: "/work/c"}, // a session open twice
	}
	for locator, want := range map[string][]int{
		"10": {10}, "id-a": {10}, "ann": {10}, "id-sub": {10}, "scout": {10}, "/work/a": {10, 20}, "id-b": {20, 30},
		"30": {30}, "two words": {30}, "an": nil, "": nil, "/work": nil,
	} {
		found, _ := named(docs, locator)
		var got []int
		for _, d := range found {
			got = append(got, d.PID)
		}
		if len(got) != len(want) || len(got) > 0 && got[0] != want[0] {
			t.Errorf("named(%q) = %v, want %v", locator, got, want)
		}
	}
}

// guarded is a buffer that several goroutines may use.
type guarded struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (g *guarded) Write(p []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.buf.Write(p)
}

func (g *guarded) String() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.buf.String()
}

// here runs a command in this process, in a home of its own.
func here(home string, out *guarded, args ...string) int {
	return Main(args, strings.NewReader(""), out, out, func(name string) string {
		return map[string]string{"HOME": home, "USERPROFILE": home}[name]
	})
}

// The helper that shows the beacon is killed and replaced while somebody waits:
// what its file still says does not count, what the next one says does.
func TestWaitOverHelpers(t *testing.T) {
	home, err := os.MkdirTemp("", "sb")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(home) })
	light := func(state lifecycle.State) *beacon.Publisher {
		dir := beaconsOf(func(name string) string { return map[string]string{"HOME": home}[name] })
		p, err := beacon.Open(beacon.Config{Dir: dir, PID: os.Getpid(), Log: slog.New(slog.DiscardHandler)}, document("id-w", "w", state))
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	for range 20 {
		p := light(lifecycle.Working)
		var out guarded
		code := make(chan int, 1)
		go func() { code <- here(home, &out, "wait", "w", "--for", "idle") }()
		time.Sleep(20 * time.Millisecond) // most often it listens by then; it need not
		p.Close(false)
		time.Sleep(5 * time.Millisecond)
		p = light(lifecycle.Retrying)
		p.Update(document("id-w", "w", lifecycle.Idle))
		if got := <-code; got != done || !strings.Contains(out.String(), "  w  idle") {
			t.Errorf("exit code %d: %s", got, &out)
		}
		p.Close(true)
	}
	// A file that nobody answers for is not believed.
	light(lifecycle.Idle).Close(false)
	var out guarded
	if code := here(home, &out, "wait", "w", "--for", "idle", "--timeout", "300ms"); code != timedOut || !strings.Contains(out.String(), "does not answer") {
		t.Errorf("exit code %d: %s", code, &out)
	}
	p := light(lifecycle.Working)
	defer p.Close(true)
	out = guarded{}
	if code := here(home, &out, "wait", "w", "--for", "idle,gone", "--timeout", "50ms"); code != timedOut || !strings.Contains(out.String(), "(w) is working 3m") {
		t.Errorf("exit code %d: %s", code, &out)
	}
}

// The state is reached at any moment around the start of the wait, and never
// missed.
func TestWaitRace(t *testing.T) {
	home, err := os.MkdirTemp("", "sb")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(home) })
	dir := beaconsOf(func(name string) string { return map[string]string{"HOME": home}[name] })
	p, err := beacon.Open(beacon.Config{Dir: dir, PID: os.Getpid(), Log: slog.New(slog.DiscardHandler)}, document("id-w", "w", lifecycle.Working))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close(true)
	for i := range 100 {
		p.Update(document("id-w", "w", lifecycle.Working))
		go func() {
			time.Sleep(time.Duration(i) * 50 * time.Microsecond)
			p.Update(document("id-w", "w", lifecycle.Idle))
		}()
		var out guarded
		if code := here(home, &out, "wait", "id-w", "--for", "idle", "--timeout", "20s"); code != done {
			t.Fatalf("round %d: exit code %d: %s", i, code, &out)
		}
	}
}

// Ctrl-C ends a watch, and all that it started.
func TestWatchEnds(t *testing.T) {
	home := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	var out guarded
	a := &app{stdout: &out, stderr: &out, getenv: func(name string) string { return map[string]string{"HOME": home}[name] }}
	ended := make(chan error, 1)
	go func() { ended <- a.watch(ctx, nil, false) }()
	cancel()
	if code, _, _ := explain(<-ended); code != interrupted {
		t.Errorf("exit code %d, want %d", code, interrupted)
	}
}
