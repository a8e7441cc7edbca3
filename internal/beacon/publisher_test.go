package beacon

import (
	"encoding/json"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"switchboard/internal/lifecycle"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// folder is a short one: it holds sockets.
func folder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "sb")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "beacon")
}

func document(state lifecycle.State, instance string) Document {
	return Document{
		Schema: Schema, PID: os.Getpid(), State: state, SessionID: "s", Cwd: "/work", StartedAt: 1_700_000_000_000, Instance: instance,
	}
}

func config(dir string) Config {
	return Config{Dir: dir, PID: os.Getpid(), Log: slog.New(slog.DiscardHandler)}
}

func open(t *testing.T, dir string, doc Document) *Publisher {
	t.Helper()
	p, err := Open(config(dir), doc)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func mustRead(t *testing.T, dir string) Document {
	t.Helper()
	d, err := Read(dir, os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("still waiting for %s", what)
		}
	}
}

// deadPID is of a process that has ended.
func deadPID(t *testing.T) int {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0")
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	return cmd.Process.Pid
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// writes counts the files that take a path's place, until stop.
func writes(path string) (stop func() int) {
	done, count := make(chan struct{}), make(chan int)
	go func() {
		var last os.FileInfo
		n := 0
		for {
			info, err := os.Stat(path)
			if err == nil && (last == nil || !os.SameFile(info, last) || !info.ModTime().Equal(last.ModTime())) {
				last = info
				n++
			}
			select {
			case <-done:
				count <- n
				return
			case <-time.After(time.Millisecond):
			}
		}
	}()
	return func() int { close(done); return <-count }
}

// Whatever Pi does, the file is written a few times a second, and ends up
// true.
func TestFewWrites(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		states []lifecycle.State
		most   int // writes in a second
	}{
		{"tools", []lifecycle.State{lifecycle.Working}, 5},
		{"transitions", []lifecycle.State{lifecycle.Working, lifecycle.Retrying}, 25},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := folder(t)
			p := open(t, dir, document(lifecycle.Working, "i"))
			defer p.Close(true)
			stop := writes(Path(dir, os.Getpid()))
			began := time.Now()
			for i := range 1000 {
				d := document(tt.states[i%len(tt.states)], "i")
				d.Detail.PendingCount = i
				p.Update(d)
				time.Sleep(time.Until(began.Add(time.Duration(i) * time.Millisecond)))
			}
			took := time.Since(began)
			n := stop()
			t.Logf("1,000 updates in %v: %d writes", took, n)
			if limit := float64(tt.most) * max(took.Seconds(), 1); float64(n) > limit {
				t.Errorf("%d writes, want at most %.0f", n, limit)
			}
			eventually(t, "the last update", func() bool { return mustRead(t, dir).Detail.PendingCount == 999 })
		})
	}
}

// A transition reaches the file within 50 ms, also in a flood of updates.
func TestTransitionInFile(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	p := open(t, dir, document(lifecycle.Idle, "i"))
	defer p.Close(true)
	var worst, sum time.Duration
	const rounds = 40
	for i := range rounds {
		state := []lifecycle.State{lifecycle.Working, lifecycle.Idle}[i%2]
		for range 50 {
			p.Update(document(mustRead(t, dir).State, "i"))
		}
		time.Sleep(time.Duration(i) * time.Millisecond)
		began := time.Now()
		p.Update(document(state, "i"))
		eventually(t, "the transition in the file", func() bool { return mustRead(t, dir).State == state })
		took := time.Since(began)
		worst, sum = max(worst, took), sum+took
	}
	t.Logf("a transition was in the file after %v on average, %v at worst", sum/rounds, worst)
	if worst > time.Second {
		t.Errorf("a transition took %v to reach the file", worst)
	}
}

// The heartbeat refreshes the file, and brings back what somebody removed.
func TestHeartbeat(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	p := open(t, dir, document(lifecycle.Idle, "i"))
	defer p.Close(true)
	first := mustRead(t, dir)
	if age := time.Since(time.UnixMilli(first.UpdatedAt)); age > time.Second || age < -time.Second {
		t.Errorf("the first document is %v old", age)
	}
	if err := os.Remove(Path(dir, os.Getpid())); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	eventually(t, "the heartbeat", func() bool { return exists(Path(dir, os.Getpid())) })
	if now := mustRead(t, dir); now.UpdatedAt <= first.UpdatedAt || now.State != first.State {
		t.Errorf("the heartbeat wrote %+v", now)
	}
	if took := time.Since(began); took < Heartbeat/2 || took > 2*Heartbeat {
		t.Errorf("the heartbeat came after %v, want %v", took, Heartbeat)
	}
}

func TestModes(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no modes there")
	}
	dir := folder(t)
	if err := os.Mkdir(dir, 0o755); err != nil { // by another program
		t.Fatal(err)
	}
	if err := os.WriteFile(Path(dir, os.Getpid()), []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	p := open(t, dir, document(lifecycle.Idle, "i"))
	defer p.Close(true)
	for path, want := range map[string]os.FileMode{dir: 0o700, Path(dir, os.Getpid()): 0o600, mustRead(t, dir).Socket: 0o600} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != want {
			t.Errorf("mode of %s = %#o, want %#o", path, got, want)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 {
		t.Errorf("in the folder: %v, %v; want the document and the socket", entries, err)
	}
}

// What an earlier process of the same id left is taken over.
func TestTakeOver(t *testing.T) {
	dir := folder(t)
	left := open(t, dir, document(lifecycle.Working, "old"))
	left.Close(false)
	socket := mustRead(t, dir).Socket
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
	if err == nil {
		t.Fatal("Close(false) removed the socket") // its absence says "gone" to some
	}
	if l != nil {
		l.Close()
	}
	if mustRead(t, dir).State != lifecycle.Working {
		t.Error("Close(false) changed the state")
	}
	p := open(t, dir, document(lifecycle.Idle, "new"))
	if d, err := Query(t.Context(), socket); err != nil || d.Instance != "new" {
		t.Errorf("Query = %+v, %v", d, err)
	}
	if d := mustRead(t, dir); d.Instance != "new" {
		t.Errorf("the file is of instance %q", d.Instance)
	}
	p.Close(true)
	if exists(socket) || exists(Path(dir, os.Getpid())) {
		t.Error("Close(true) left files")
	}
}

// Two generations overlap, as at a reload: the older one, however it ends,
// takes nothing from the newer.
func TestOverlap(t *testing.T) {
	for _, remove := range []bool{true, false} {
		dir := folder(t)
		older := open(t, dir, document(lifecycle.Working, "old"))
		newer := open(t, dir, document(lifecycle.Idle, "new"))
		older.Close(remove)
		d := mustRead(t, dir)
		if d.Instance != "new" || d.State != lifecycle.Idle {
			t.Errorf("after Close(%v) of the older: the file is of %q, %s", remove, d.Instance, d.State)
		}
		if d, err := Query(t.Context(), d.Socket); err != nil || d.Instance != "new" {
			t.Errorf("after Close(%v) of the older: Query = %+v, %v", remove, d, err)
		}
		newer.Close(true)
	}
}

// What is in the way and not ours stops the beacon, and stays.
func TestInTheWay(t *testing.T) {
	pid := strconv.Itoa(os.Getpid())
	t.Run("a file for the socket", func(t *testing.T) {
		dir := folder(t)
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, pid+".sock")
		if err := os.WriteFile(path, []byte("precious"), 0o600); err != nil {
			t.Fatal(err)
		}
		if p, err := Open(config(dir), document(lifecycle.Idle, "i")); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("Open = %v, %v; want an error that names %s", p, err, path)
		}
		if !exists(path) {
			t.Error("the file was removed")
		}
		if exists(Path(dir, os.Getpid())) {
			t.Error("a document without a socket was left")
		}
	})
	t.Run("a file for the folder", func(t *testing.T) {
		dir := folder(t)
		if err := os.WriteFile(dir, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if p, err := Open(config(dir), document(lifecycle.Idle, "i")); err == nil || err.Error() != dir+" is in the way and not a folder" {
			t.Errorf("Open = %v, %v; want an error that says so", p, err)
		}
		if info, err := os.Lstat(dir); err != nil || !info.Mode().IsRegular() {
			t.Errorf("the file is gone: %v, %v", info, err)
		}
	})
	t.Run("a folder for the document", func(t *testing.T) {
		dir := folder(t)
		if err := os.MkdirAll(filepath.Join(Path(dir, os.Getpid()), "x"), 0o700); err != nil {
			t.Fatal(err)
		}
		p := open(t, dir, document(lifecycle.Idle, "i"))
		defer p.Close(true)
		socket := p.known().Socket
		if d, err := Query(t.Context(), socket); err != nil || d.State != lifecycle.Idle {
			t.Errorf("Query = %+v, %v; want the socket to answer all the same", d, err)
		}
	})
}

// A path too long for a socket: the document says where it is.
func TestLongPath(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("sockets have no short folder there")
	}
	t.Setenv("XDG_RUNTIME_DIR", "")
	t.Setenv("TMPDIR", filepath.Dir(folder(t)))
	dir := filepath.Join(filepath.Dir(folder(t)), strings.Repeat("h", 120), "beacon")
	p := open(t, dir, document(lifecycle.Idle, "i"))
	d := mustRead(t, dir)
	if len(d.Socket) >= 104 {
		t.Errorf("the socket's path has %d bytes: %s", len(d.Socket), d.Socket)
	}
	if got, err := Query(t.Context(), d.Socket); err != nil || got.Socket != d.Socket {
		t.Errorf("Query = %+v, %v", got, err)
	}
	p.Close(true)
	if exists(d.Socket) || exists(Path(dir, os.Getpid())) {
		t.Error("Close(true) left files")
	}
}

func TestSweep(t *testing.T) {
	dir := folder(t)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	dead := deadPID(t)
	other := deadPID(t) // looks dead, yet writes: in another container
	file := func(name string, updated time.Time) {
		d := document(lifecycle.Idle, "x")
		d.UpdatedAt = updated.UnixMilli()
		data, err := json.Marshal(d)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	long := time.Now().Add(-time.Hour)
	parent := strconv.Itoa(os.Getppid())
	another := strconv.Itoa(runningPID(t)) // has the number of one that died long ago
	kept := []string{
		parent + ".json", parent + ".sock", // lives
		"notes.json", "1x.json", "0" + strconv.Itoa(dead) + ".json", "-5.json", "0.json", strconv.Itoa(dead) + ".txt", // not ours
		strconv.Itoa(other) + ".json", strconv.Itoa(other) + ".sock",
	}
	for _, name := range kept {
		file(name, long)
	}
	file(strconv.Itoa(other)+".json", time.Now())
	file(parent+".json", time.Now())
	gone := []string{strconv.Itoa(dead) + ".json", strconv.Itoa(dead) + ".sock", another + ".json", another + ".sock"}
	for _, name := range gone {
		file(name, long)
	}
	open(t, dir, document(lifecycle.Idle, "i")).Close(true)
	for _, name := range kept {
		if !exists(filepath.Join(dir, name)) {
			t.Errorf("%s was removed", name)
		}
	}
	for _, name := range gone {
		if exists(filepath.Join(dir, name)) {
			t.Errorf("%s was left", name)
		}
	}
}
