package sidecar_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"switchboard/internal/agent"
	"switchboard/internal/exchange"
	"switchboard/internal/exchange/dirstore"
	"switchboard/internal/guard"
	"switchboard/internal/proc"
	"switchboard/internal/repo"
	"switchboard/internal/sidecar"
	"switchboard/internal/team"
)

// member is a session of a team, and what it does to files.
type member struct {
	t *testing.T
	*host
	sc   *sidecar.Sidecar
	call int
}

func joinTeam(t *testing.T, store exchange.Exchange, cwd, id string, mode guard.Mode) *member {
	return joinFrom(t, store, cwd, id, mode, proc.Self())
}

// joinFrom joins a session that runs in another process.
func joinFrom(t *testing.T, store exchange.Exchange, cwd, id string, mode guard.Mode, p proc.ID) *member {
	h := &host{}
	sc := sidecar.Start(sidecar.Config{
		Exchange: store, Host: h, Log: slog.New(slog.DiscardHandler), Agent: p,
		Session: agent.Session{Key: exchange.SessionKey{Host: exchange.PiHost, ID: id}, Cwd: cwd, PID: os.Getpid(), Guard: mode},
	})
	return &member{t: t, host: h, sc: sc}
}

func (m *member) callsign() string {
	s, _ := strings.CutPrefix(m.get(func(h *host) string { return h.status }), "📡 ")
	word, _, _ := strings.Cut(s, " ")
	return word
}

func (m *member) about(op agent.Op, path string) (call string, v agent.Verdict) {
	m.t.Helper()
	m.call++
	call = fmt.Sprint("call-", m.call)
	got, err := m.sc.Ask(context.Background(), func(req agent.Request) agent.Event {
		return agent.ToolAbout{Req: req, CallID: call, Tool: string(op), Op: op, Path: team.Path{File: path, Root: filepath.Dir(path), Rel: filepath.Base(path)}}
	})
	if err != nil {
		m.t.Fatal(err)
	}
	return call, got.(agent.Verdict)
}

func (m *member) done(call string, op agent.Op, path string) string {
	m.t.Helper()
	got, err := m.sc.Ask(context.Background(), func(req agent.Request) agent.Event {
		return agent.ToolDone{Req: req, CallID: call, Op: op, Path: team.Path{File: path, Root: filepath.Dir(path), Rel: filepath.Base(path)}}
	})
	if err != nil {
		m.t.Fatal(err)
	}
	return got.(agent.Note).Text
}

func (m *member) read(path string) {
	m.t.Helper()
	call, _ := m.about(agent.Reads, path)
	m.done(call, agent.Reads, path)
}

// change is a whole edit or write; it says what the model reads.
func (m *member) change(op agent.Op, path, text string) string {
	m.t.Helper()
	call, v := m.about(op, path)
	if v.Block {
		return v.Reason
	}
	put(m.t, path, text)
	return m.done(call, op, path)
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func openStore(t *testing.T) *dirstore.Store {
	t.Helper()
	store, err := dirstore.Open(t.TempDir(), "test")
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// another starts a process that stands for one of Pi.
func another(t *testing.T) proc.ID {
	t.Helper()
	cmd := exec.Command("sleep", "300")
	if err := cmd.Start(); err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	p, err := proc.Of(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func teamOf(t *testing.T, dir string) exchange.TeamID {
	t.Helper()
	c, err := repo.Find(dir)
	if err != nil {
		t.Fatal(err)
	}
	return exchange.TeamID(c.Key())
}

// two starts alpha and bravo.
func two(t *testing.T, store exchange.Exchange, dir string) (a, b *member) {
	t.Helper()
	a = joinTeam(t, store, dir, "a", guard.Standard)
	eventually(t, "alpha", func() bool { return a.callsign() == "alpha" })
	b = joinTeam(t, store, dir, "b", guard.Standard)
	for _, m := range []*member{a, b} {
		eventually(t, "both", func() bool { return strings.Contains(m.get(func(h *host) string { return h.status }), "1 peer") })
	}
	return a, b
}

// Thirty sessions that start at once get thirty callsigns, and skip none.
func TestThirtyJoinAtOnce(t *testing.T) {
	store, dir := openStore(t), t.TempDir()
	const n = 30
	members := make([]*member, n)
	var starting sync.WaitGroup
	for i := range members {
		p := another(t)
		starting.Go(func() { members[i] = joinFrom(t, store, dir, fmt.Sprintf("s-%02d", i), guard.Standard, p) })
	}
	starting.Wait()
	for _, m := range members {
		defer m.sc.Leave(false)
	}
	var got []string
	for _, m := range members {
		eventually(t, "a callsign", func() bool { return m.callsign() != "" })
		got = append(got, m.callsign())
	}
	want := slices.Clone(team.Words[:])
	for _, w := range team.Words[:n-len(want)] {
		want = append(want, w+"2")
	}
	slices.SortFunc(got, team.CompareCallsigns)
	if !slices.Equal(got, want) {
		t.Errorf("callsigns %v", got)
	}
	for _, m := range members {
		eventually(t, "all to see all", func() bool {
			return strings.Contains(m.get(func(h *host) string { return h.status }), fmt.Sprintf("· %d peers", n-1))
		})
	}
}

// What changes nothing blocks nobody; what changes something does, until it is
// read (spec: telecom, The edit guard).
func TestGuard(t *testing.T) {
	store, dir := openStore(t), t.TempDir()
	a, b := two(t, store, dir)
	defer a.sc.Leave(false)
	defer b.sc.Leave(false)
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		put(t, path, text)
		return path
	}
	pass := func(what, got string) {
		t.Helper()
		if got != "" {
			t.Errorf("%s: %q", what, got)
		}
	}
	refused := func(what, got, want string) {
		t.Helper()
		if !strings.Contains(got, want) {
			t.Errorf("%s: %q lacks %q", what, got, want)
		}
	}

	f := file("same", "one\n")
	a.read(f)
	pass("the same bytes again", b.change(agent.Writes, f, "one\n"))
	pass("after that", a.change(agent.Writes, f, "two\n"))

	f = file("undone", "one\n")
	a.read(f)
	pass("a first write", b.change(agent.Writes, f, "two\n"))
	pass("its undoing", b.change(agent.Writes, f, "one\n"))
	pass("after that", a.change(agent.Writes, f, "three\n"))

	f = file("stale", "one\n")
	a.read(f)
	b.read(f)
	pass("a's write", a.change(agent.Writes, f, "two\n"))
	refused("b's write", b.change(agent.Writes, f, "three\n"), "Call read on stale")
	b.read(f)
	pass("b's write after reading", b.change(agent.Writes, f, "four\n"))

	f = file("edited", "one\n")
	a.read(f)
	b.read(f)
	pass("a's edit", a.change(agent.Edits, f, "two\n"))
	refused("b's edit", b.change(agent.Edits, f, "three\n"), "⚠ alpha changed edited")
	refused("b's write after its edit", b.change(agent.Writes, f, "four\n"), "Not done: alpha changed edited")
	refused("the second time", b.change(agent.Writes, f, "four\n"), "Not done: alpha changed edited")
	refused("the third time", b.change(agent.Writes, f, "four\n"), "⚠ This went over alpha's change")

	f = file("counted", "one\n")
	b.read(f)
	pass("a's write", a.change(agent.Writes, f, "two\n"))
	refused("b's first", b.change(agent.Writes, f, "x\n"), "Not done")
	refused("b's second", b.change(agent.Writes, f, "x\n"), "Not done")
	pass("a's newer write", a.change(agent.Writes, f, "three\n"))
	refused("a newer change counts anew", b.change(agent.Writes, f, "x\n"), "Not done")

	f = filepath.Join(dir, "created")
	pass("a creates", a.change(agent.Writes, f, "one\n"))
	refused("b never read it", b.change(agent.Writes, f, "two\n"), "alpha created created")
	if err := os.Remove(f); err != nil {
		t.Fatal(err)
	}
	pass("it is gone", b.change(agent.Writes, f, "two\n"))

	// A read in whose middle the file changed does not count.
	f = file("torn", "one\n")
	call, _ := b.about(agent.Reads, f)
	pass("a's write", a.change(agent.Writes, f, "two\n"))
	b.done(call, agent.Reads, f)
	refused("b read half of it", b.change(agent.Writes, f, "three\n"), "Not done")

	// A peer that left: its change is still unread.
	f = file("left", "one\n")
	b.read(f)
	pass("a's write", a.change(agent.Writes, f, "two\n"))
	a.sc.Leave(false)
	entries, _, err := store.Read(teamOf(t, dir), exchange.Cursor{})
	if err != nil || len(entries) == 0 || entries[len(entries)-1].Kind != string(team.Left) {
		t.Errorf("the journal ends with %+v, %v; want that a left", entries[max(0, len(entries)-1):], err)
	}
	eventually(t, "b to be alone", func() bool { return b.get(func(h *host) string { return h.status }) == "📡 bravo" })
	refused("b's write", b.change(agent.Writes, f, "three\n"), "alpha changed left")
}

// A write waits for a peer that is at the file, and is refused when that takes
// too long; two that wait for each other don't.
func TestGuardWaits(t *testing.T) {
	store, dir := openStore(t), t.TempDir()
	a, b := two(t, store, dir)
	defer a.sc.Leave(false)
	defer b.sc.Leave(false)
	x, y := filepath.Join(dir, "x"), filepath.Join(dir, "y")
	put(t, x, "one\n")
	put(t, y, "one\n")
	a.read(x)
	b.read(x)
	call, _ := a.about(agent.Writes, x)
	answered := make(chan string, 1)
	began := time.Now()
	go func() { answered <- b.change(agent.Writes, x, "b\n") }()
	time.Sleep(200 * time.Millisecond) // b is to wait; too short a wait is seen below
	put(t, x, "a\n")
	a.done(call, agent.Writes, x)
	if got := <-answered; !strings.Contains(got, "alpha changed x") {
		t.Errorf("b was told %q", got)
	}
	if took := time.Since(began); took < 200*time.Millisecond || took > 1500*time.Millisecond {
		t.Errorf("b waited %v", took)
	}

	b.read(x)
	call, _ = a.about(agent.Writes, x)
	if _, v := b.about(agent.Writes, x); !v.Block || !strings.Contains(v.Reason, "alpha is changing x at this moment") {
		t.Errorf("b's verdict %+v", v)
	}
	put(t, x, "a2\n")
	a.done(call, agent.Writes, x)

	// a has begun x and wants y, b has begun y and wants x: neither waits for
	// good, and b's 2 seconds for this response are used up.
	a.read(x)
	b.read(y)
	a.about(agent.Edits, x)
	b.about(agent.Edits, y)
	began = time.Now()
	go func() { _, v := a.about(agent.Edits, y); answered <- v.Reason }()
	if _, v := b.about(agent.Edits, x); v.Block {
		t.Errorf("b's verdict %+v", v)
	}
	<-answered
	if took := time.Since(began); took > 1500*time.Millisecond {
		t.Errorf("the circle took %v", took)
	}
}
