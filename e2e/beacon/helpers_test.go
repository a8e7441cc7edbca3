//go:build linux

// Package beacon holds the end-to-end tests of the beacon: real Pi processes,
// the real program, a scripted model, and a subscriber that hears of each
// transition.
package beacon

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"switchboard/e2e/model"
	"switchboard/e2e/rig"
	"switchboard/internal/beacon"
	"switchboard/internal/lifecycle"
)

// testdata is the path of a file beside the tests.
func testdata(t *testing.T, name string) string {
	t.Helper()
	return filepath.Join(rig.ModuleRoot(t), "e2e", "beacon", "testdata", name)
}

func bash(command string) model.Step {
	return model.Step{Tools: []model.Tool{{Name: "bash", Args: map[string]any{"command": command}}}}
}

// untilFile is a shell line that ends when the test writes a file.
func untilFile(name string) string {
	return fmt.Sprintf("until [ -e %s ]; do sleep 0.02; done", name)
}

// start starts a Pi with the probe and waits until its beacon is lit.
func start(t *testing.T, w *rig.World, o rig.Options) *rig.Pi {
	t.Helper()
	o.ExtensionPaths = append(o.ExtensionPaths, testdata(t, "probe.ts"))
	p := w.StartPi(t, o)
	lit(t, w, p.PID)
	return p
}

// dir is where beacons lie.
func dir(w *rig.World) string { return filepath.Join(w.AgentDir, "beacon") }

// read reads the document of a process from its file.
func read(w *rig.World, pid int) (beacon.Document, error) {
	var d beacon.Document
	data, err := os.ReadFile(beacon.Path(dir(w), pid))
	if err != nil {
		return d, err
	}
	return d, json.Unmarshal(data, &d)
}

// lit waits until a process has a document and a socket that answers.
func lit(t *testing.T, w *rig.World, pid int) beacon.Document {
	t.Helper()
	var d beacon.Document
	rig.Eventually(t, rig.Watchdog, fmt.Sprintf("a beacon of process %d", pid), func() bool {
		file, err := read(w, pid)
		if err != nil {
			return false
		}
		d, err = beacon.Query(t.Context(), file.Socket)
		return err == nil
	})
	return d
}

// query asks a process's beacon.
func query(t *testing.T, w *rig.World, pid int) beacon.Document {
	t.Helper()
	file, err := read(w, pid)
	if err != nil {
		t.Fatal(err)
	}
	d, err := beacon.Query(t.Context(), file.Socket)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// until waits until a fresh document passes ok, and returns it.
func until(t *testing.T, w *rig.World, pid int, what string, ok func(beacon.Document) bool) beacon.Document {
	t.Helper()
	var d beacon.Document
	var err error
	met := false
	defer func() {
		if !met {
			t.Logf("the last document: %+v (%v)", d, err)
		}
	}()
	rig.Eventually(t, rig.Watchdog, what, func() bool {
		d, err = read(w, pid)
		if err == nil {
			d, err = beacon.Query(t.Context(), d.Socket)
		}
		met = err == nil && ok(d)
		return met
	})
	return d
}

// untilState waits until a fresh document has a state.
func untilState(t *testing.T, w *rig.World, pid int, want lifecycle.State) beacon.Document {
	t.Helper()
	return until(t, w, pid, "the state "+string(want), func(d beacon.Document) bool { return d.State == want })
}

// dark waits until both files of a process are gone and says how long it took.
func dark(t *testing.T, w *rig.World, pid int) time.Duration {
	t.Helper()
	began := time.Now()
	rig.Eventually(t, rig.Watchdog, fmt.Sprintf("the beacon of process %d to be gone", pid), func() bool {
		_, errDoc := os.Lstat(beacon.Path(dir(w), pid))
		_, errSock := os.Lstat(filepath.Join(dir(w), fmt.Sprintf("%d.sock", pid)))
		return errors.Is(errDoc, fs.ErrNotExist) && errors.Is(errSock, fs.ErrNotExist)
	})
	return time.Since(began)
}

// subscriber hears of each transition of one beacon.
type subscriber struct {
	t   *testing.T
	sub *beacon.Subscription

	mu      sync.Mutex // guards all below
	heard   []beacon.Document
	err     error         // why it hears no more
	changed chan struct{} // closed and replaced with every document
}

// subscribe waits until a process is idle and listens from then on.
func subscribe(t *testing.T, w *rig.World, pid int) *subscriber {
	t.Helper()
	untilState(t, w, pid, lifecycle.Idle)
	file, err := read(w, pid)
	if err != nil {
		t.Fatal(err)
	}
	sub, first, err := beacon.Subscribe(t.Context(), file.Socket)
	if err != nil {
		t.Fatal(err)
	}
	if first.State != lifecycle.Idle {
		t.Fatalf("the subscription begins with %s, want idle", say(first))
	}
	s := &subscriber{t: t, sub: sub, changed: make(chan struct{})}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			d, err := sub.Next()
			s.mu.Lock()
			if err == nil {
				s.heard = append(s.heard, d)
			}
			s.err = err
			close(s.changed)
			s.changed = make(chan struct{})
			s.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		sub.Close()
		<-ended
	})
	return s
}

// documents are those heard so far.
func (s *subscriber) documents() []beacon.Document {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]beacon.Document(nil), s.heard...)
}

// expect waits until exactly these transitions were heard, and a while longer
// for one too many.
func (s *subscriber) expect(want []string) []beacon.Document {
	s.t.Helper()
	deadline := time.After(rig.Watchdog)
	var quiet <-chan time.Time
	for {
		s.mu.Lock()
		heard, err, changed := s.heard, s.err, s.changed
		s.mu.Unlock()
		for i, d := range heard {
			if i >= len(want) || say(d) != want[i] {
				s.t.Fatalf("transitions:\n  got  %s\n  want %s", list(heard), strings.Join(want, " → "))
			}
		}
		if err != nil {
			s.t.Fatalf("the subscription ended after %s: %v", list(heard), err)
		}
		if len(heard) == len(want) && quiet == nil {
			quiet = time.After(quietTime)
		}
		select {
		case <-changed:
		case <-quiet:
			return heard
		case <-deadline:
			s.t.Fatalf("transitions:\n  got  %s, and no more\n  want %s", list(heard), strings.Join(want, " → "))
		}
	}
}

// quietTime is how long nothing more may be heard.
const quietTime = 300 * time.Millisecond

// await waits until the nth transition, counted from one, was heard.
func (s *subscriber) await(n int) beacon.Document {
	s.t.Helper()
	rig.Eventually(s.t, rig.Watchdog, fmt.Sprintf("transition %d", n), func() bool { return len(s.documents()) >= n })
	return s.documents()[n-1]
}

// say is a document's state with what belongs to it.
func say(d beacon.Document) string {
	out := string(d.State)
	if d.Detail.CompactionReason != "" {
		out += " " + string(d.Detail.CompactionReason)
	}
	if d.Detail.WillRetry != nil && *d.Detail.WillRetry {
		out += ", will retry"
	}
	if d.Detail.Attempt != 0 {
		out += fmt.Sprintf(" %d/%d", d.Detail.Attempt, d.Detail.MaxAttempts)
	}
	if d.Detail.DelayMS != nil {
		out += fmt.Sprintf(" in %dms", *d.Detail.DelayMS)
	}
	return out
}

func list(docs []beacon.Document) string {
	said := make([]string, len(docs))
	for i, d := range docs {
		said[i] = say(d)
	}
	return strings.Join(said, " → ")
}

// opinion is what Pi says of itself.
type opinion struct {
	Idle    bool
	Pending bool
	Spans   int // how often it was seen to become idle
}

// ask asks Pi itself, through the probe.
func ask(t *testing.T, p *rig.Pi) opinion {
	t.Helper()
	from := len(p.Notifications())
	r := p.Cmd(map[string]any{"type": "prompt", "message": "/probe idle"}, rig.Watchdog)
	if !r.Success {
		t.Fatalf("/probe idle: %s", r.Error)
	}
	var o opinion
	rig.Eventually(t, rig.Watchdog, "the probe's answer", func() bool {
		for _, n := range p.Notifications()[from:] {
			if text, ok := strings.CutPrefix(n.Text, `probe {"idle"`); ok {
				return json.Unmarshal([]byte(`{"idle"`+text), &o) == nil
			}
		}
		return false
	})
	return o
}

// probe runs a command of the probe without waiting for its end.
func probe(p *rig.Pi, args string) {
	p.Send(map[string]any{"type": "prompt", "message": "/probe " + args})
}

// probed waits until the probe has said something.
func probed(t *testing.T, p *rig.Pi, prefix string) string {
	t.Helper()
	var said string
	rig.Eventually(t, rig.Watchdog, "the probe to say "+prefix, func() bool {
		for _, n := range p.Notifications() {
			if strings.HasPrefix(n.Text, "probe "+prefix) {
				said = n.Text
				return true
			}
		}
		return false
	})
	return said
}

// roster reads `switchboard list --json`: id to state.
func roster(t *testing.T, w *rig.World) map[string]string {
	t.Helper()
	out, stderr, code := w.Switchboard("list", "--json")
	if code != 0 {
		t.Fatalf("switchboard list: exit %d: %s", code, stderr)
	}
	var said struct {
		Sessions []struct{ ID, State string } `json:"sessions"`
	}
	if err := json.Unmarshal([]byte(out), &said); err != nil {
		t.Fatalf("switchboard list --json: %v in %q", err, out)
	}
	live := make(map[string]string)
	for _, s := range said.Sessions {
		live[s.ID] = s.State
	}
	return live
}
