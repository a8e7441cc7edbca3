package beacon

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"switchboard/internal/lifecycle"
	"switchboard/internal/proc"
)

// Documents that are not what they should be are left out, and Read says why.
func TestHostileDocuments(t *testing.T) {
	good := func(change func(*Document)) string {
		d := document(lifecycle.Idle, "i")
		d.StartedAt = time.Now().UnixMilli()
		change(&d)
		data, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	tests := []struct {
		name, text string
		ok         bool
	}{
		{"good", good(func(*Document) {}), true},
		{"of a newer version, with more fields", strings.Replace(good(func(*Document) {}), "{", `{"more":[1],`, 1), true},
		{"empty", "", false},
		{"half", good(func(*Document) {})[:40], false},
		{"garbage", "\x00\xff", false},
		{"wrong types", `{"schema":"pi-beacon/v1","pid":"12"}`, false},
		{"wrong schema", good(func(d *Document) { d.Schema = "pi-beacon/v2" }), false},
		{"no schema", "{}", false},
		{"of another process", good(func(d *Document) { d.PID++ }), false},
		{"huge", good(func(d *Document) { d.Cwd = strings.Repeat("x", maxDocument) }), false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(Path(dir, os.Getpid()), []byte(tt.text), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := Read(dir, os.Getpid()); (err == nil) != tt.ok {
				t.Errorf("Read: %v, want ok %v", err, tt.ok)
			}
			if got := List(dir); (len(got) == 1) != tt.ok {
				t.Errorf("List = %+v, want ok %v", got, tt.ok)
			}
		})
	}
}

func TestRead(t *testing.T) {
	dir := t.TempDir()
	if _, err := Read(dir, 1); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Read of nothing: %v", err)
	}
	// As the original publisher writes it.
	text := fmt.Sprintf(`{"schema":"pi-beacon/v1","pid":%d,"state":"idle","detail":{"pendingMessages":false},"sessionId":"s","cwd":"/"}`, os.Getpid())
	if err := os.WriteFile(Path(dir, os.Getpid()), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	d, err := Read(dir, os.Getpid())
	if want := filepath.Join(dir, strconv.Itoa(os.Getpid())+".sock"); err != nil || d.Socket != want {
		t.Errorf("Read = %+v, %v; want socket %s", d, err, want)
	}
	if List(filepath.Join(dir, "none")) != nil {
		t.Error("List of no folder found something")
	}
}

// runningPID starts a process and returns its number.
func runningPID(t *testing.T) int {
	t.Helper()
	cmd := exec.Command("sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return cmd.Process.Pid
}

func TestOld(t *testing.T) {
	now := time.Now()
	for ago, want := range map[time.Duration]bool{0: false, Stale - time.Second: false, Stale + time.Second: true, -time.Second: false, -time.Hour: true} {
		d := Document{UpdatedAt: now.Add(-ago).UnixMilli()}
		if got := d.Old(now); got != want {
			t.Errorf("written %v ago: old %v", ago, got)
		}
	}
}

// A beacon that only knows what the specification asks for.
func TestNoPushes(t *testing.T) {
	d := document(lifecycle.Working, "i")
	data, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	socket := folder(t)
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			line, _ := bufio.NewReader(conn).ReadString('\n')
			if strings.Contains(line, "get_state") {
				fmt.Fprintf(conn, "{\"type\":\"response\",\"command\":\"get_state\",\"success\":true,\"data\":%s}\n", data)
			} else {
				fmt.Fprintln(conn, `{"type":"response","command":"subscribe","success":false,"error":"unknown"}`)
			}
			conn.Close()
		}
	}()
	if _, got, err := Subscribe(t.Context(), socket); !errors.Is(err, ErrNoPushes) || got.State != lifecycle.Working || got.Socket != socket {
		t.Errorf("Subscribe = %+v, %v", got, err)
	}
}

// Of a process that began after its document, which of its times count.
func TestOrphaned(t *testing.T) {
	pid := runningPID(t)
	began, err := proc.Began(pid)
	if err != nil {
		t.Skip(err)
	}
	tests := []struct {
		name             string
		started, updated time.Duration // before the process began
		want             bool
	}{
		{"its own", 0, 0, false},
		{"clocks differ a little", time.Second, time.Second, false},
		{"of one that ended", time.Hour, 3 * time.Second, true},
		{"of one whose clock was wrong", time.Hour, -time.Hour, true},
		{"its own, while the clock is wrong", 0, -time.Hour, false},
	}
	for _, tt := range tests {
		d := Document{PID: pid, StartedAt: began.Add(-tt.started).UnixMilli(), UpdatedAt: began.Add(-tt.updated).UnixMilli()}
		if got := d.Orphaned(); got != tt.want {
			t.Errorf("%s: orphaned %v", tt.name, got)
		}
	}
	if (Document{PID: pid, StartedAt: 1}).Orphaned() == (Document{PID: pid}).Orphaned() {
		t.Error("a start alone does not count, or nothing does")
	}
}

// What goes is decided by the process that a file is named after, and not by
// the one that it names.
func TestSweepGoesByNames(t *testing.T) {
	dir := t.TempDir()
	file := func(named, says int, updated time.Time) string {
		d := document(lifecycle.Idle, "x")
		d.PID, d.StartedAt, d.UpdatedAt = says, updated.UnixMilli(), updated.UnixMilli()
		data, err := json.Marshal(d)
		if err == nil {
			err = os.WriteFile(Path(dir, named), data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		return Path(dir, named)
	}
	young := runningPID(t)
	if _, err := proc.Began(young); err != nil {
		t.Skip(err)
	}
	leftover := file(young, 1, time.Now().Add(-time.Hour))
	ahead := file(deadPID(t), 1, time.Now().Add(time.Hour))
	lives := file(os.Getpid(), young, time.Now())
	sweep(dir)
	if exists(leftover) || exists(ahead) || !exists(lives) {
		t.Errorf("another's process number: there %v; a time ahead: there %v; a live one: there %v", exists(leftover), exists(ahead), exists(lives))
	}
}

// The documents of dead processes are left out, the others come by their start.
func TestList(t *testing.T) {
	dir := t.TempDir()
	started := map[int]int64{os.Getpid(): 200, os.Getppid(): 100, deadPID(t): 50, runningPID(t): 10}
	for pid, start := range started {
		d := document(lifecycle.Idle, "i")
		d.PID, d.StartedAt, d.UpdatedAt = pid, start, time.Now().UnixMilli()
		if start == 10 { // written by one that died before
			d.UpdatedAt = time.Now().Add(-time.Hour).UnixMilli()
		}
		data, err := json.Marshal(d)
		if err == nil {
			err = os.WriteFile(Path(dir, pid), data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	got := List(dir)
	if len(got) != 2 || got[0].PID != os.Getppid() || got[1].PID != os.Getpid() {
		t.Errorf("List = %+v", got)
	}
}

// liar is a socket that answers everything with the same text, and then waits
// for its client to go.
func liar(t *testing.T, text string) (socket string) {
	t.Helper()
	socket = folder(t)
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	t.Cleanup(func() { l.Close(); <-done })
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			in := bufio.NewReader(conn)
			_, _ = in.ReadString('\n')
			_, _ = io.WriteString(conn, text)
			_, _ = io.Copy(io.Discard, in)
			conn.Close()
		}
	}()
	return socket
}

// A client believes no socket blindly, and waits for none longer than it wants.
func TestHostileSockets(t *testing.T) {
	t.Parallel()
	data, err := json.Marshal(document(lifecycle.Idle, "i"))
	if err != nil {
		t.Fatal(err)
	}
	good := `{"type":"response","command":"x","success":true,"data":` + string(data) + "}\n"
	tests := []struct {
		name, text string
		err        string
	}{
		{"good", good, ""},
		{"refused", `{"type":"response","success":false,"error":"go away"}` + "\n", "go away"},
		{"no data", `{"type":"response","success":true}` + "\n", "refused"},
		{"wrong schema", strings.Replace(good, Schema, "other/v1", 1), "other/v1"},
		{"garbage", "\x00\n", "invalid character"},
		{"endless line", strings.Repeat("x", maxDocument+1), "buffer full"},
		{"says nothing", "", context.DeadlineExceeded.Error()},
		{"half a line", good[:20], context.DeadlineExceeded.Error()},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			socket := liar(t, tt.text)
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			_, err := Query(ctx, socket)
			if got := fmt.Sprint(err); (err == nil) != (tt.err == "") || !strings.Contains(got, tt.err) {
				t.Errorf("Query: %v, want %q", err, tt.err)
			}
			ctx, cancel = context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			sub, _, err := Subscribe(ctx, socket)
			if (err == nil) != (tt.err == "") {
				t.Errorf("Subscribe: %v, want %q", err, tt.err)
			}
			if err == nil {
				// The context counts for the answer only; Close ends Next.
				<-ctx.Done()
				time.AfterFunc(20*time.Millisecond, sub.Close)
				if d, err := sub.Next(); !errors.Is(err, net.ErrClosed) {
					t.Errorf("Next = %+v, %v; want it to end by Close", d, err)
				}
			}
		})
	}
	if _, err := Query(t.Context(), filepath.Join(t.TempDir(), "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Query of no socket: %v", err)
	}
}
