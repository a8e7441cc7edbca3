package proc

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"
)

// With PROC_TEST set the test binary is a process to look at, which ends with
// its standard input.
func TestMain(m *testing.M) {
	if os.Getenv("PROC_TEST") != "" {
		io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func startChild(t *testing.T) (cmd *exec.Cmd, stop io.Closer) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd = exec.Command(exe)
	cmd.Env = append(os.Environ(), "PROC_TEST=1")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	return cmd, in
}

// waitState waits until id is in the wanted state: signals take a moment.
func waitState(t *testing.T, id ID, want Status) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for {
		got := State(id)
		if got == want {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("State(%+v) = %s, want %s", id, got, want)
		}
		time.Sleep(time.Millisecond)
	}
}

func TestSelf(t *testing.T) {
	id := Self()
	if id.PID != os.Getpid() || id.Host == "" {
		t.Errorf("Self() = %+v", id)
	}
	if again := Self(); again != id {
		t.Errorf("Self() = %+v, then %+v", id, again)
	}
	if got := State(id); got != Alive {
		t.Errorf("State(Self()) = %s", got)
	}
}

func TestChild(t *testing.T) {
	cmd, stop := startChild(t)
	id, err := Of(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	if got := State(id); got != Alive {
		t.Errorf("State of a running child = %s", got)
	}
	if id.Start == "" {
		t.Skip("this system tells no more here")
	}
	if got, err := Parent(id.PID); got != os.Getpid() || err != nil {
		t.Errorf("Parent = %d, %v; want %d", got, err, os.Getpid())
	}
	if Name(id.PID) == "" || Name(id.PID) != Name(os.Getpid()) {
		t.Errorf("Name = %q, want %q", Name(id.PID), Name(os.Getpid()))
	}

	stop.Close()
	waitState(t, id, Gone) // a zombie, on unix
	cmd.Wait()
	waitState(t, id, Gone)
	if _, err := Of(id.PID); !errors.Is(err, ErrNoProcess) {
		t.Errorf("Of a process that ended = %v, want ErrNoProcess", err)
	}
	if _, err := Parent(id.PID); !errors.Is(err, ErrNoProcess) {
		t.Errorf("Parent of a process that ended = %v, want ErrNoProcess", err)
	}
}

func TestNobody(t *testing.T) {
	for _, pid := range []int{0, -1, 1 << 30} {
		if _, err := Of(pid); !errors.Is(err, ErrNoProcess) {
			t.Errorf("Of(%d) = %v, want ErrNoProcess", pid, err)
		}
		if got := Name(pid); got != "" {
			t.Errorf("Name(%d) = %q", pid, got)
		}
	}
}

func TestJudge(t *testing.T) {
	here := ID{Host: "h", Boot: "b", PIDNS: "n"}
	other := errors.New("some other error")
	tests := []struct {
		name  string
		id    ID
		facts facts
		err   error
		want  Status
	}{
		{"all equal", ID{"h", "b", "n", 1, "5"}, facts{start: "5"}, nil, Alive},
		{"stopped", ID{"h", "b", "n", 1, "5"}, facts{start: "5", stopped: true}, nil, Stopped},
		{"zombie", ID{"h", "b", "n", 1, "5"}, facts{start: "5", zombie: true}, nil, Gone},
		{"no process", ID{"h", "b", "n", 1, "5"}, facts{}, ErrNoProcess, Gone},
		{"no pid", ID{"h", "b", "n", 0, "5"}, facts{}, nil, Gone},
		{"negative pid", ID{"h", "b", "n", -1, "5"}, facts{}, nil, Gone},
		{"pid used again", ID{"h", "b", "n", 1, "5"}, facts{start: "6"}, nil, Gone},
		{"pid used again, stopped", ID{"h", "b", "n", 1, "5"}, facts{start: "6", stopped: true}, nil, Gone},
		{"start unknown now", ID{"h", "b", "n", 1, "5"}, facts{}, nil, Alive},
		{"start unknown then", ID{"h", "b", "n", 1, ""}, facts{start: "6"}, nil, Alive},
		{"unreadable", ID{"h", "b", "n", 1, "5"}, facts{}, other, Alive},
		{"earlier boot", ID{"h", "a", "n", 1, "5"}, facts{start: "5"}, nil, Gone},
		{"earlier boot, another namespace", ID{"h", "a", "m", 1, "5"}, facts{start: "5"}, nil, Gone},
		{"boot unknown", ID{"h", "", "n", 1, "5"}, facts{start: "5"}, nil, Alive},
		{"another host", ID{"i", "a", "n", 1, "5"}, facts{}, ErrNoProcess, Foreign},
		{"another host, boot unknown", ID{"i", "", "n", 1, "5"}, facts{}, ErrNoProcess, Foreign},
		{"renamed host", ID{"i", "b", "n", 1, "5"}, facts{start: "5"}, nil, Alive},
		{"another namespace", ID{"h", "b", "m", 1, "5"}, facts{}, ErrNoProcess, Foreign},
		{"namespace unknown", ID{"h", "b", "", 1, "5"}, facts{start: "5"}, nil, Alive},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			lookup := func(int) (facts, error) { return tt.facts, tt.err }
			if got := judge(tt.id, here, lookup); got != tt.want {
				t.Errorf("judge(%+v) = %s, want %s", tt.id, got, tt.want)
			}
		})
	}
}

// Other programs and versions read these names.
func TestJSON(t *testing.T) {
	got, err := json.Marshal(ID{"h", "b", "n", 7, "99"})
	if want := `{"host":"h","boot":"b","pidns":"n","pid":7,"start":"99"}`; string(got) != want || err != nil {
		t.Errorf("Marshal = %s, %v; want %s", got, err, want)
	}
}

func TestClocks(t *testing.T) {
	for name, clock := range map[string]func() time.Duration{"boot": BootClock, "awake": AwakeClock} {
		start := clock()
		time.Sleep(40 * time.Millisecond) // Windows counts in steps of 16 ms
		if took := clock() - start; took < 20*time.Millisecond || took > 5*time.Second {
			t.Errorf("%s clock advanced by %v in 40ms", name, took)
		}
	}
	if boot, awake := BootClock(), AwakeClock(); boot < awake-time.Second {
		t.Errorf("boot clock %v is behind the awake clock %v", boot, awake)
	}
}
