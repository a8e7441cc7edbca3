package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"switchboard/internal/beacon"
	"switchboard/internal/lifecycle"
)

// A frugal publisher knows no more than the specification: no field and no
// command of ours, and one answer a connection.
type frugal struct {
	home   string
	always bool // it answers whatever it is asked with its document

	mu    sync.Mutex
	state lifecycle.State
	asked map[string]int // by command
}

// show starts it, as this process.
func (f *frugal) show(t *testing.T) {
	t.Helper()
	var err error
	if f.home, err = os.MkdirTemp("", "sb"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(f.home) })
	f.asked = make(map[string]int)
	path := beacon.Path(beaconsOf(func(name string) string { return map[string]string{"HOME": f.home}[name] }), os.Getpid())
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, f.document(), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", strings.TrimSuffix(path, ".json")+".sock")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			f.answer(conn)
		}
	}()
}

func (f *frugal) answer(conn net.Conn) {
	defer conn.Close()
	var command struct {
		Type string `json:"type"`
	}
	line, _ := bufio.NewReader(conn).ReadBytes('\n')
	_ = json.Unmarshal(line, &command)
	f.mu.Lock()
	f.asked[command.Type]++
	f.mu.Unlock()
	if f.always || command.Type == "get_state" {
		fmt.Fprintf(conn, `{"type":"response","command":"get_state","success":true,"data":%s}`+"\n", f.document())
	}
}

// document is as the specification shows it.
func (f *frugal) document() []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now().UnixMilli()
	return fmt.Appendf(nil, `{"schema":"pi-beacon/v1","pid":%d,"state":%q,"detail":{"pendingMessages":false},"model":null,`+
		`"sessionFile":null,"sessionId":"id-f","sessionName":"frugal","cwd":"/work","contextUsage":{"tokens":null,"contextWindow":null,"percent":null},`+
		`"startedAt":%d,"updatedAt":%d}`, os.Getpid(), f.state, now, now)
}

func (f *frugal) set(state lifecycle.State) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.state = state
}

func (f *frugal) count(command string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.asked[command]
}

// A publisher that only answers is polled, and asked once only whether it
// would tell by itself.
func TestWaitPolls(t *testing.T) {
	f := &frugal{state: lifecycle.Working}
	f.show(t)
	time.AfterFunc(time.Second, func() { f.set(lifecycle.Idle) })
	var out guarded
	if code := here(f.home, &out, "wait", "frugal", "--for", "idle", "--timeout", "20s", "--json"); code != done {
		t.Fatalf("exit code %d: %s", code, &out)
	}
	if n := f.count("subscribe"); n != 1 {
		t.Errorf("asked to push %d times, want once", n)
	}
	if n := f.count("get_state"); n < 3 || n > 10 {
		t.Errorf("asked %d times in a second", n)
	}
	if !strings.Contains(out.String(), ".sock\"") {
		t.Errorf("the answer does not say where it came from: %s", &out)
	}
}

// One that takes any command for get_state, and hangs up, is not asked without
// a pause.
func TestWaitIsPatient(t *testing.T) {
	f := &frugal{state: lifecycle.Working, always: true}
	f.show(t)
	time.AfterFunc(time.Second, func() { f.set(lifecycle.Idle) })
	var out guarded
	if code := here(f.home, &out, "wait", "frugal", "--for", "idle", "--timeout", "20s"); code != done {
		t.Fatalf("exit code %d: %s", code, &out)
	}
	if n := f.count("subscribe"); n > 30 {
		t.Errorf("asked %d times in a second", n)
	}
}

// A line stays a line, whatever the session is called and whoever told of it.
func TestSightLines(t *testing.T) {
	long := strings.Repeat("long ", 40)
	d := document("id-x", long, "dancing")
	d.UpdatedAt = time.Now().UnixMilli()
	show := func(s sight, asJSON bool) string {
		t.Helper()
		var out bytes.Buffer
		if err := (&app{stdout: &out}).printSight(sight{}, s, asJSON); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	s := sight{Event: stateEvent, instance: filed(d)}
	got := show(s, false)
	if want := strings.Repeat("long ", 40)[:longestName-1] + "…  unknown 3m, by its file\n"; !strings.HasSuffix(got, "  "+want) {
		t.Errorf("line = %q, want it to end in %q", got, want)
	}
	if got := show(s, true); !strings.Contains(got, `"state":"dancing"`) || !strings.Contains(got, `"sessionName":"`+long+`"`) || !strings.Contains(got, `"source":"file"`) {
		t.Errorf("JSON = %s", got)
	}
	for _, cell := range stateTable([]instance{s.instance}, time.Now())[instanceName].cells {
		if cells(cell) > longestName || !strings.HasSuffix(cell, "…") {
			t.Errorf("name in the table = %q", cell)
		}
	}
}
