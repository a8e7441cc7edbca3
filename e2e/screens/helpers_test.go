//go:build linux

package screens

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"switchboard/e2e/model"
	"switchboard/e2e/rig"
	"switchboard/internal/delivery"
	"switchboard/internal/exchange"
	"switchboard/internal/exchange/dirstore"
	"switchboard/internal/proc"
)

// rows of the terminal: enough for the longest conversation.
const rows = 300

var update = flag.Bool("update", false, "write the golden files")

const (
	leadID   = "0198c3c1-02fe-7aa4-b3c5-11d2e9f08a6b"
	parserID = "0198c3c2-7b1c-7c3a-9d7e-2f6f0a1b2c3d"
	docsID   = "0198c3c2-9a40-7d11-8f02-6b1d8e5a4c77"
	lintID   = "0198c3c2-aaaa-7d11-8f02-3d5b9e0f1a22"
)

type object = map[string]any

func touchtone(args any) model.Tool { return model.Tool{Name: "touchtone", Args: args} }

func send(to, message string) model.Tool {
	return touchtone(object{"action": "send", "to": to, "message": message})
}

func key(session string) exchange.SessionKey {
	return exchange.SessionKey{Host: exchange.PiHost, ID: session}
}

// screen is the terminal of a session named lead.
type screen struct {
	t     *testing.T
	w     *rig.World
	u     *rig.TUI
	store *dirstore.Store
	extra proc.ID // the process of those that only stand on the roster
}

func open(t *testing.T, theme string, args ...string) *screen {
	t.Helper()
	w := rig.NewWorld(t)
	w.Settings(object{"theme": theme, "compaction": object{"enabled": false}})
	s := &screen{t: t, w: w}
	s.u = w.StartTUI(t, rig.Options{
		Cwd: s.folder("project"), Args: append([]string{"--session-id", leadID, "--name", "lead"}, args...), Env: []string{"SWITCHBOARD_FREEZE=1"},
	}, 80, rows)
	var err error
	if s.store, err = dirstore.Open(s.root(), "test"); err != nil {
		t.Fatal(err)
	}
	s.onRoster(leadID)
	return s
}

// root is where the world's sessions meet.
func (s *screen) root() string {
	return filepath.Join(s.w.Home, ".local", "state", "pi", "touchtone")
}

// folder is where a session works. It is in no repository, as a team has
// screens of its own.
func (s *screen) folder(name string) string {
	s.t.Helper()
	dir := filepath.Join(s.w.Home, "src", name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		s.t.Fatal(err)
	}
	return dir
}

func (s *screen) onRoster(session string) {
	s.t.Helper()
	rig.Eventually(s.t, rig.Watchdog, session+" on the roster", func() bool {
		_, err := s.store.Session(key(session))
		return err == nil
	})
}

// rests waits until the roster says that a session is idle.
func (s *screen) rests(session string) {
	s.t.Helper()
	rig.Eventually(s.t, rig.Watchdog, session+" at rest", func() bool {
		r, err := s.store.Session(key(session))
		return err == nil && r.State == "idle"
	})
}

// stand puts a session onto the roster that the test plays. It takes calls and
// does nothing.
func (s *screen) stand(id, name string) {
	s.t.Helper()
	if s.extra == (proc.ID{}) {
		cmd := exec.Command("sleep", "1000")
		cmd.Env = s.w.Env("")
		err := cmd.Start()
		if err == nil {
			s.t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
			s.extra, err = proc.Of(cmd.Process.Pid)
		}
		if err != nil {
			s.t.Fatal(err)
		}
	}
	lease, err := s.store.Own(key(id))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = lease.Release(false) })
	err = lease.Publish(exchange.Record{
		Key: key(id), Incarnation: exchange.NewID(time.Now()), Name: name, Cwd: s.folder(name), State: "idle", Agent: s.extra, Joined: time.Now().UTC(), Wakes: true,
	})
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *screen) publish(session string, values ...string) {
	s.t.Helper()
	if _, stderr, code := s.w.Switchboard(append([]string{"publish", "--session", session}, values...)...); code != 0 {
		s.t.Fatalf("publish: %s", stderr)
	}
}

// post puts a call into lead's inbox.
func (s *screen) post(from delivery.Sender, text string) {
	s.t.Helper()
	now := time.Now()
	if err := s.store.Post(key(leadID), delivery.Message{ID: exchange.NewID(now), Kind: delivery.Call, Text: text, Sent: now.UTC(), From: from}); err != nil {
		s.t.Fatal(err)
	}
}

// run prompts lead, whose model makes calls one after another and then says
// something, and waits until it has.
func (s *screen) run(prompt, answer string, calls ...model.Tool) {
	s.t.Helper()
	for _, call := range calls {
		s.w.Model.Script("main", model.Step{Tools: []model.Tool{call}})
	}
	s.w.Model.Script("main", model.Step{Text: answer})
	s.u.Submit(prompt)
	s.u.WaitScreen(answer, rig.Watchdog)
	s.rests(leadID)
}

// golden compares a part of the conversation at a width with a file: in colour
// if its name ends in .ansi.
func (s *screen) golden(cols int, part [2]string, name string) {
	s.t.Helper()
	s.u.Resize(cols, rows)
	file := filepath.Join(rig.ModuleRoot(s.t), "e2e", "screens", "testdata", "golden", name)
	capture := func() string {
		if strings.HasSuffix(name, ".ansi") {
			return section(pinned(s.u.CaptureANSI()), part)
		}
		return section(pinned(s.u.Capture()), part)
	}
	if *update {
		if err := os.WriteFile(file, []byte(settled(capture)), 0o600); err != nil {
			s.t.Fatal(err)
		}
		return
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		s.t.Fatal(err)
	}
	want, got := string(raw), ""
	for deadline := time.Now().Add(rig.Watchdog / 4); ; time.Sleep(50 * time.Millisecond) {
		if got = capture(); got == want {
			return
		}
		if time.Now().After(deadline) {
			break
		}
	}
	s.t.Errorf("%s (-want +got):\n%s\nit looks like this:\n%s", name, cmp.Diff(strings.Split(want, "\n"), strings.Split(got, "\n")), got)
}

// settled returns the screen once it has stood still for a while.
func settled(capture func() string) string {
	last, since := capture(), time.Now()
	for time.Since(since) < time.Second {
		time.Sleep(50 * time.Millisecond)
		if now := capture(); now != last {
			last, since = now, time.Now()
		}
	}
	return last
}

var escapes = regexp.MustCompile("\x1b\\[[0-9;]*m")

// section is the part of a screen from one prompt to another, or to the border
// of the editor.
func section(capture string, part [2]string) string {
	lines := strings.Split(capture, "\n")
	plain := strings.Split(escapes.ReplaceAllString(capture, ""), "\n")
	prompt := func(text string) int {
		return slices.IndexFunc(plain, func(line string) bool { return strings.TrimSpace(line) == text })
	}
	from, to := prompt(part[0]), 0
	if part[1] != "" {
		to = prompt(part[1]) - 1 // above it is the prompt's own margin
	} else {
		to = slices.IndexFunc(plain, func(line string) bool { return strings.Contains(line, "────────") })
	}
	if from < 0 || to <= from {
		return capture // which no golden file is like
	}
	var out []string
	for i := from; i < to; i++ {
		// Pi puts the editor at the foot of the screen.
		if n := len(out); lines[i] == "" && n >= 3 && strings.Join(out[n-3:], "") == "" {
			continue
		}
		out = append(out, lines[i])
	}
	return strings.TrimRight(strings.Join(out, "\n"), "\n") + "\n"
}

// pins are what differs from one run to the next, and what stands for it.
var pins = []struct {
	was *regexp.Regexp
	is  string
}{
	{regexp.MustCompile(`01[0-9A-HJKMNP-TV-Z]{24}`), "01K3S8Q4ZJ6T9V2X5B7N8M0PQR"},
	{regexp.MustCompile(`20\d\d-\d\d-\d\d\d\d:\d\d:\d\d`), "2026-01-0215:04:05"},
	{regexp.MustCompile(`/tmp/sb[0-9A-Z]{8}`), "/tmp/sb00000000"},
}

// What has no fixed length stands at the end of a line or in the phonebook's
// table.
var (
	pids = regexp.MustCompile(`(pid +)\d+`)
	ttys = regexp.MustCompile(`/dev/pts/\d+`)
	head = regexp.MustCompile(`PID +SESSION`)
	cell = regexp.MustCompile(` \d+ +(0198c3c)`)
	more = regexp.MustCompile(`^ {60,}`)
)

// pinned puts fixed texts in the place of what differs from one run to the
// next.
func pinned(capture string) string {
	capture = pids.ReplaceAllString(capture, "${1}48213")
	capture = ttys.ReplaceAllString(capture, "/dev/pts/0")
	capture = head.ReplaceAllString(capture, "PID    SESSION")
	capture = cell.ReplaceAllString(capture, " 48213  ${1}")
	lines, last := strings.Split(capture, "\n"), -1
	for i, line := range lines {
		if head.MatchString(line) {
			last = strings.Index(line, "ALSO DIALS")
		} else if last > 0 { // a cell of several lines in the last column
			lines[i] = more.ReplaceAllString(line, strings.Repeat(" ", last))
		}
	}
	capture = strings.Join(lines, "\n")

	// The rest may be broken anywhere, so it is looked for without spaces and
	// line ends.
	out := []byte(capture)
	var ink []byte
	var at []int
	skip := escapes.FindAllStringIndex(capture, -1)
	for i := range out {
		for len(skip) > 0 && i >= skip[0][1] {
			skip = skip[1:]
		}
		if out[i] > ' ' && (len(skip) == 0 || i < skip[0][0]) {
			ink, at = append(ink, out[i]), append(at, i)
		}
	}
	for _, pin := range pins {
		for _, match := range pin.was.FindAllIndex(ink, -1) {
			for i := range pin.is {
				out[at[match[0]+i]] = pin.is[i]
			}
		}
	}
	return string(out)
}

func TestPinned(t *testing.T) {
	t.Parallel()
	want := pinned(phonebook("12345", "12345"))
	for _, other := range []string{phonebook("7", "7"), phonebook("1234567", "321"), phonebook("98", "9876")} {
		if diff := cmp.Diff(want, pinned(other)); diff != "" {
			t.Errorf("pinned(%q) (-want +got):\n%s", other, diff)
		}
	}
	in := "  pid      77\n sent \x1b[1m2031-12-24 01:02:03\x1b[m /tmp/sbABCDEFGH/ho\n  me/01ABCDEFGHJKM\x1b[m\n \x1b[2mNPQRSTVWXYZ12.json"
	got := "  pid      48213\n sent \x1b[1m2026-01-02 15:04:05\x1b[m /tmp/sb00000000/ho\n  me/01K3S8Q4ZJ6T9\x1b[m\n \x1b[2mV2X5B7N8M0PQR.json"
	if diff := cmp.Diff(got, pinned(in)); diff != "" {
		t.Errorf("pinned(%q) (-want +got):\n%s", in, diff)
	}
}

// phonebook is a table with process ids.
func phonebook(one, two string) string {
	row := func(name, pid, session, last string) string {
		return fmt.Sprintf(" %-4s  %-*s  %-36s  %-30s  %s\n", name, max(len(one), len(two), len("PID")), pid, session, "", last)
	}
	return row("NAME", "PID", "SESSION", "ALSO DIALS") + row("a", one, parserID, "ticket E-1") + row("b", two, docsID, "ticket E-1") + row("", "", "", "tty /dev/pts/"+one)
}
