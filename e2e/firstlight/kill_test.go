//go:build linux

package firstlight

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"

	"switchboard/e2e/model"
	"switchboard/e2e/rig"
)

// killPoints is how many seeds are tried: a short run in CI, SOAK times as
// many otherwise.
func killPoints(t *testing.T, short int) int {
	t.Helper()
	if n, err := strconv.Atoi(os.Getenv("SOAK")); err == nil && n > 0 {
		return n
	}
	return short
}

// moments are the instants at which Pi kills itself: before it has any message,
// and between a handover and the session file.
var moments = []string{
	"", "before_agent_start:1", "agent_start:1", "message_start:1", "message_end:1", "turn_start:1",
	"turn_end:1", "turn_end:2", "agent_end:1", "agent_before_settle:1", "agent_settled:1", "before_agent_start:2",
}

// Pi and its sidecar are killed at any moment; Pi is started again with the
// same session. Every message reaches the model once.
func TestKills(t *testing.T) {
	t.Parallel()
	for seed := range killPoints(t, 12) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			rnd := rand.New(rand.NewPCG(uint64(seed), 7))
			w := rig.NewWorld(t)
			s := store(t, w)
			id := fmt.Sprintf("kill-%d", seed)
			moment := moments[seed%len(moments)]
			t.Logf("killed at %q", moment)
			for range 40 {
				w.Model.Script("b", model.Step{Text: "read", Delay: time.Duration(rnd.IntN(30)) * time.Millisecond})
			}
			o := rig.Options{Session: "b", Args: []string{"--session-id", id}, ExtensionPaths: []string{testdata(t, "kill.ts")}, Env: []string{"KILL_AT=" + moment}}
			b := w.StartPi(t, o)
			listed(t, w, id)
			if seed%3 == 0 { // else the session has no message of its own yet
				b.Send(map[string]any{"type": "prompt", "message": "hello"})
			}
			want := texts("kill", 8)
			for i, text := range want {
				post(t, s, id, text)
				pause(rnd, 40)
				if i == 3 || i == 5 {
					if moment == "" || rnd.IntN(2) == 0 {
						for _, pid := range b.Sidecars() {
							_ = syscall.Kill(pid, syscall.SIGKILL)
						}
					}
					if i == 5 {
						_ = syscall.Kill(b.PID, syscall.SIGKILL)
					}
				}
			}
			_ = syscall.Kill(b.PID, syscall.SIGKILL) // it may have killed itself
			b.WaitExit(rig.Watchdog)
			o.Env = nil
			b = w.StartPi(t, o)
			emptied(t, s, id)
			handedOver(t, b.SessionFile(), want)
		})
	}
}

func pause(rnd *rand.Rand, ms int) { time.Sleep(time.Duration(rnd.IntN(ms)) * time.Millisecond) }

// The sidecar dies while a tool runs: the tool finishes, the human is told
// once, the sidecar is back and knows what Pi is doing.
func TestSidecarKilledDuringTool(t *testing.T) {
	t.Parallel()
	w := rig.NewWorld(t)
	b := start(t, w, rig.Options{Session: "b"})
	w.Model.Script("b", bash("until [ -e go ]; do sleep 0.02; done; echo tool-$((40+2))"), model.Step{Text: "done"})
	b.Prompt("work")
	b.Wait(rig.OfType("tool_execution_start"), rig.Watchdog)
	for range 3 {
		old := b.Sidecars()
		if len(old) != 1 {
			t.Fatalf("sidecars = %v, want one", old)
		}
		_ = syscall.Kill(old[0], syscall.SIGKILL)
		rig.Eventually(t, rig.Watchdog, "a new sidecar", func() bool {
			now := b.Sidecars()
			return len(now) == 1 && now[0] != old[0]
		})
	}
	rig.Eventually(t, rig.Watchdog, "the state that Pi has", func() bool { return roster(t, w)[b.SessionID()] == "working" })
	s := store(t, w)
	post(t, s, b.SessionID(), "after-01.")
	w.Write("go", "")
	b.Settled()
	turns := w.Model.Turns("b")
	once(t, turns[len(turns)-1], []string{"tool-42", "after-01."})
	if got := faults(b); len(got) != 1 {
		t.Errorf("the human was told %q, want one line", got)
	}
	rig.Eventually(t, rig.Watchdog, "idle on the roster", func() bool { return roster(t, w)[b.SessionID()] == "idle" })
}

// faults lists the warnings that Pi's human read.
func faults(p *rig.Pi) (out []string) {
	for _, n := range p.Notifications() {
		if n.Level == "warning" {
			out = append(out, n.Text)
		}
	}
	return out
}

// The sidecar is stopped: tools run after the deadline, and the calls of one
// message wait for it once, not each.
func TestSidecarStopped(t *testing.T) {
	t.Parallel()
	w := rig.NewWorld(t)
	b := start(t, w, rig.Options{Session: "b"})
	w.Write("a.txt", "content of a\n")
	tools := make([]model.Tool, 10)
	for i := range tools {
		tools[i] = model.Tool{Name: "read", Args: map[string]any{"path": "a.txt"}}
	}
	w.Model.Script("b", model.Step{Tools: tools}, model.Step{Text: "done"})
	sidecar := b.Sidecars()[0]
	_ = syscall.Kill(sidecar, syscall.SIGSTOP)
	began := time.Now()
	b.Run("read it ten times")
	took := time.Since(began)
	_ = syscall.Kill(sidecar, syscall.SIGCONT)
	if n := count(w.Model.Turns("b")[1], "content of a"); n != 10 {
		t.Errorf("%d of 10 reads came through", n)
	}
	// Ten waits for each of a message's calls would be over three seconds.
	t.Logf("the run took %v", took)
	if took > 2500*time.Millisecond {
		t.Errorf("the run took %v", took)
	}
	if got := faults(b); len(got) != 1 {
		t.Errorf("the human was told %q, want one line", got)
	}
	// It is taken back into service without a word, and messages flow.
	s := store(t, w)
	post(t, s, b.SessionID(), "again-01.")
	once(t, w.Model.WaitRequest(t, "b", 3, rig.Watchdog), []string{"again-01."})
	emptied(t, s, b.SessionID())
}
