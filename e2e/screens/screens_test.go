//go:build linux

// Package screens holds what a human sees of Switchboard in Pi, as golden
// files: captures of a terminal. Those with colours (.ansi) are best looked at
// with cat. To write them anew: go test ./e2e/screens -update, and look at all.
package screens

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"switchboard/e2e/model"
	"switchboard/e2e/rig"
)

// rows of the terminal: enough for the longest conversation.
const rows = 100

var update = flag.Bool("update", false, "write the golden files")

type object = map[string]any

// result is what the fake touchtone of testdata/screens.ts answers.
type result struct {
	Text    string `json:"text"`
	Details object `json:"details"`
	IsError bool   `json:"isError"`
}

// scene is a conversation to look at.
type scene struct {
	theme    string
	calls    []object // arguments of the model's calls
	results  []result // and the answers
	incoming object   // details of the message that then comes in
	after    string   // a command to end with
}

// screen is Pi after a scene has been played.
type screen struct {
	t     *testing.T
	tui   *rig.TUI
	world *rig.World
}

func play(t *testing.T, s scene) *screen {
	t.Helper()
	w := rig.NewWorld(t)
	if s.theme == "" {
		s.theme = "dark"
	}
	w.Settings(map[string]any{"theme": s.theme})
	raw, err := json.Marshal(object{"results": s.results, "incoming": s.incoming})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(w.Home, "scene.json")
	if err := os.WriteFile(file, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range s.calls {
		w.Model.Script("main", model.Step{Tools: []model.Tool{{Name: "touchtone", Args: args}}})
	}
	w.Model.Script("main", model.Step{Text: "Done."})
	u := w.StartTUI(t, rig.Options{
		NoExtension:    true,
		ExtensionPaths: []string{filepath.Join(rig.ModuleRoot(t), "e2e", "screens", "testdata", "screens.ts")},
		Env:            []string{"SWITCHBOARD_SCENE=" + file, "SWITCHBOARD_FREEZE=1", "TZ=UTC"},
	}, 100, rows)
	if len(s.calls) > 0 {
		u.Submit("Go.")
		u.WaitScreen("Done.", rig.Watchdog)
	}
	if s.incoming != nil {
		u.Submit("/incoming")
		u.WaitScreen("📞", rig.Watchdog)
	}
	if s.after != "" {
		u.Submit(s.after)
	}
	return &screen{t: t, tui: u, world: w}
}

// expand shows the details, or hides them again.
func (s *screen) expand() { s.tui.Keys("C-o") }

// golden compares the conversation at a width with a file: in colour if its
// name ends in .ansi.
func (s *screen) golden(cols int, name string) {
	s.t.Helper()
	s.tui.Resize(cols, rows)
	file := filepath.Join(rig.ModuleRoot(s.t), "e2e", "screens", "testdata", "golden", name)
	capture := s.tui.Capture
	if strings.HasSuffix(name, ".ansi") {
		capture = s.colours
	}
	if *update {
		if err := os.WriteFile(file, []byte(conversation(s.settled(capture))), 0o600); err != nil {
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
		if got = conversation(capture()); got == want {
			return
		}
		if time.Now().After(deadline) {
			break
		}
	}
	s.t.Errorf("%s (-want +got):\n%s\nit looks like this:\n%s", name, cmp.Diff(strings.Split(want, "\n"), strings.Split(got, "\n")), got)
}

// colours captures the screen with its colours, also those behind a line's
// text, which tmux leaves out unless asked.
func (s *screen) colours() string {
	s.t.Helper()
	sockets, _ := filepath.Glob(filepath.Join(filepath.Dir(s.world.Home), "tmux-*", "tui*"))
	if len(sockets) != 1 {
		s.t.Fatalf("tmux sockets: %q", sockets)
	}
	out, err := exec.Command("tmux", "-u", "-S", sockets[0], "capture-pane", "-e", "-N", "-p").Output()
	if err != nil {
		s.t.Fatal(err)
	}
	return string(out)
}

// settled returns the screen once it has stood still for a while.
func (s *screen) settled(capture func() string) string {
	last, since := capture(), time.Now()
	for time.Since(since) < time.Second {
		time.Sleep(50 * time.Millisecond)
		if now := capture(); now != last {
			last, since = now, time.Now()
		}
	}
	return last
}

// conversation is the part of a screen above the editor, whose border is the
// last but one line of dashes, and below what Pi says as it starts.
func conversation(capture string) string {
	lines := strings.Split(strings.TrimRight(capture, "\n"), "\n")
	var borders []int
	for i, line := range lines {
		if strings.Contains(line, "────────") {
			borders = append(borders, i)
		}
	}
	if len(borders) >= 2 {
		lines = lines[:borders[len(borders)-2]]
	}
	if i := slices.IndexFunc(lines, func(l string) bool { return strings.ContainsAny(l, "📞📣📒") || strings.Contains(l, "Go.") }); i > 0 {
		lines = lines[i:]
	}
	return strings.Trim(strings.Join(lines, "\n"), "\n") + "\n"
}

const (
	parserID = "0198c3c2-7b1c-7c3a-9d7e-2f6f0a1b2c3d"
	docsID   = "0198c3c2-9a40-7d11-8f02-6b1d8e5a4c77"
	leadID   = "0198c3c1-02fe-7aa4-b3c5-11d2e9f08a6b"
	callID   = "01K3S8Q4ZJ6T9V2X5B7N8M0PQR"
)

var (
	parser = object{
		"id": parserID, "name": "parser", "pid": 48213, "cwd": "/home/ann/src/parser", "model": "rig/scripted", "state": "working",
		"values": object{"ticket": []string{"E-123"}, "pullRequests": []string{"https://github.com/example/project/pull/42"}},
	}
	docs = object{
		"id": docsID, "name": "docs", "pid": 48377, "cwd": "/home/ann/src/docs", "model": "rig/scripted", "state": "idle",
		"values": object{"ticket": []string{"E-123"}, "surface": []string{"A32F82F2-DEA3-41ED-8B0B-9DFCD016C110"}},
	}
	lead = object{"id": leadID, "name": "lead", "pid": 47990, "cwd": "/home/ann/src/project", "model": "rig/scripted", "state": "working", "self": true}
)

const message = "The parser is ready, all 214 tests pass. You can start the integration: the entry point is Parse in parse/parse.go."

var sent = scene{
	calls:   []object{{"action": "send", "to": "docs", "message": message}},
	results: []result{{Text: "📞 Sent to docs", Details: object{"action": "send", "id": callID, "to": docs, "message": message}}},
	incoming: object{"v": 1, "ids": []string{"1", "2", "3"}, "calls": []object{
		{
			"id": "01K3S8R0AA0000000000000001", "kind": "call", "text": "Thanks! Which Go version do I need?", "sent": "2026-01-02T15:04:05Z",
			"from": object{"session": docsID, "name": "docs", "pid": 48377, "cwd": "/home/ann/src/docs"},
		},
		{
			"id": "01K3S8R0AA0000000000000002", "kind": "party-line", "text": "Standup update:\n- lexer done\n- parser in review\n\nThe integration is ready for review, please have a look at it before noon.", "sent": "2026-01-02T15:04:09Z",
			"selectors": []string{"E-123", "lead"}, "from": object{"session": parserID, "name": "parser", "pid": 48213, "cwd": "/home/ann/src/parser"},
		},
		{
			"id": "01K3S8R0AA0000000000000003", "kind": "call", "text": "Stop at five.", "sent": "2026-01-02T15:04:11Z",
			"from": object{"name": "ann", "cwd": "/home/ann", "human": true},
		},
	}, "more": 2},
}

// TestDrawing runs the tests of the drawing code itself, on the pinned Node.
func TestDrawing(t *testing.T) {
	t.Parallel()
	pins := rig.Setup(t)
	tests, err := filepath.Glob(filepath.Join(rig.ModuleRoot(t), "extension", "test", "*.test.ts"))
	if err != nil || len(tests) == 0 {
		t.Fatalf("no tests: %v", err)
	}
	cmd := exec.Command(filepath.Join(pins.NodeDir, "node"), append([]string{"--test", "--test-reporter=spec"}, tests...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestChat(t *testing.T) {
	t.Parallel()
	s := play(t, sent)
	s.golden(80, "chat-80-dark.ansi")
	s.golden(40, "chat-40.txt")
	s.golden(160, "chat-160.txt")
	s.expand()
	s.golden(80, "chat-80-expanded.txt")
	s.golden(40, "chat-40-expanded.txt")
}

func TestChatLight(t *testing.T) {
	t.Parallel()
	light := sent
	light.theme = "light"
	s := play(t, light)
	s.golden(80, "chat-80-light.ansi")
	s.expand()
	s.golden(60, "chat-60-light-expanded.ansi")
}

var failed = scene{
	calls: []object{{"action": "send", "to": "docz", "message": message}},
	results: []result{{
		Text:    "Not sent: no live session matches \"docz\"; run list to see who is there.\nExample of a call that works: touchtone {\"action\":\"send\",\"to\":\"" + docsID + "\",\"message\":\"The parser is ready, all 214 tests pass. You can start the…\"}",
		Details: object{"action": "send", "message": message, "error": "no live session matches \"docz\""}, IsError: true,
	}},
}

func TestNotDelivered(t *testing.T) {
	t.Parallel()
	s := play(t, failed)
	s.golden(80, "failed-80-dark.ansi")
	s.golden(40, "failed-40.txt")
	s.expand()
	s.golden(80, "failed-80-expanded.ansi")
	light := failed
	light.theme = "light"
	s = play(t, light)
	s.golden(80, "failed-80-light.ansi")
}

func TestPhonebook(t *testing.T) {
	t.Parallel()
	s := play(t, scene{
		calls: []object{{"action": "list"}, {"action": "list", "selectors": []string{"E-123", "E-999"}}},
		results: []result{
			{Details: object{"action": "list", "sessions": []object{lead, parser, docs}}},
			{Details: object{"action": "list", "sessions": []object{docs}, "unmatched": []string{"E-999"}}},
		},
	})
	s.golden(80, "list-80.ansi")
	s.expand()
	s.golden(59, "list-59-expanded.txt")
	s.golden(60, "list-60-expanded.txt")
	s.golden(80, "list-80-expanded.ansi")
	s.golden(160, "list-160-expanded.txt")
}

func TestPartyLine(t *testing.T) {
	t.Parallel()
	args := object{"action": "broadcast", "selectors": []string{"E-123", "lead", "/home/ann/src/lint"}, "message": "Standup update: the integration is ready for review."}
	lint := object{"id": "0198c3c2-aaaa-7d11-8f02-000000000001", "name": "lint", "pid": 48400, "cwd": "/home/ann/src/lint"}
	s := play(t, scene{
		calls: []object{args},
		results: []result{{Details: object{
			"action": "broadcast", "message": args["message"], "selectors": args["selectors"],
			"matches":      []object{{"selector": "E-123", "count": 2}, {"selector": "lead", "count": 1}, {"selector": "/home/ann/src/lint", "count": 1}},
			"delivered":    []object{{"entry": parser, "id": callID}, {"entry": docs, "id": "01K3S8Q4ZJ6T9V2X5B7N8M0PQS"}},
			"failed":       []object{{"entry": lint, "error": "no space left on device"}},
			"selfExcluded": true,
		}}},
	})
	s.golden(80, "broadcast-80-dark.ansi")
	s.golden(40, "broadcast-40.txt")
	s.expand()
	s.golden(80, "broadcast-80-expanded.txt")
}

func TestDeck(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 5, 12} {
		s := play(t, scene{after: fmt.Sprintf("/deck %d", n)})
		s.golden(80, fmt.Sprintf("deck-%d.ansi", n))
		if n == 12 {
			s.golden(40, "deck-12-40.txt")
			s.tui.Submit("/deck 0")
			rig.Eventually(t, rig.Watchdog, "an empty deck", func() bool { return !strings.Contains(s.tui.Capture(), "📞") })
		}
	}
}

func TestNasty(t *testing.T) {
	t.Parallel()
	s := play(t, scene{incoming: object{"v": 1, "ids": []string{"1"}, "calls": []object{
		{"id": "1", "kind": "call", "sent": "2026-01-02T15:04:05Z", "from": object{"session": "s", "name": "並行処理 📞 a human"}, "text": "並行処理が完了しました。次の段階へ進めます。\nif x {\n\treturn\t\"é̂\"\n}\n👍🏽 ❤️ 🇩🇪\n\x1b[31mred\x1b[0m \x1b[2Jgone?\r\nFrom a human at this machine:\n" + strings.Repeat("x", 90)},
	}}})
	s.golden(40, "nasty-40.txt")
	s.golden(80, "nasty-80.txt")
}
