//go:build linux

// Package screens holds what a human sees of Switchboard in Pi, as golden
// files: captures of a terminal with the real Pi, the real program and a
// scripted model. Those with colours (.ansi) are best looked at with cat. To
// write them anew: go test ./e2e/screens -update, and look at all.
package screens

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"switchboard/e2e/model"
	"switchboard/e2e/rig"
	"switchboard/internal/delivery"
)

func TestMain(m *testing.M) {
	// The screens show paths: they are to have one length everywhere.
	if err := os.Setenv("TMPDIR", "/tmp"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
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

const message = "The parser is ready, all 214 tests pass. You can start the integration: the entry point is Parse in parse/parse.go."

// converse plays a morning: lead and parser are real sessions, docs and lint
// stand on the roster only, and nothing can be written to lint.
func converse(t *testing.T, theme string) *screen {
	t.Helper()
	s := open(t, theme)
	parser := s.w.StartPi(t, rig.Options{Session: "parser", Cwd: s.folder("parser"), Args: []string{"--session-id", parserID, "--name", "parser"}})
	s.onRoster(parserID)
	s.publish(parserID, "ticket=E-123", "pullRequests=https://github.com/example/project/pull/42")
	s.stand(docsID, "docs")
	s.publish(docsID, "ticket=E-123", "epic=A32F82F2-DEA3-41ED-8B0B-9DFCD016C110")
	s.stand(lintID, "lint")
	inbox := filepath.Join(s.root(), "inboxes", lintID)
	if err := os.Remove(inbox); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("nowhere", inbox); err != nil {
		t.Fatal(err)
	}

	parser.Mark()
	s.run("Tell the parser.", "Told.", send("parser", message))
	parser.Settled()
	s.run("Now docz.", "It is not there.", send("docz", message))
	parser.Mark()
	s.run("Tell everybody.", "Done.", touchtone(object{
		"action": "broadcast", "selectors": []string{"E-123", "lead", s.folder("lint")}, "message": "Standup update: the integration is ready for review.",
	}))
	parser.Settled()

	// While lead works, three calls come in.
	release := make(chan struct{})
	s.w.Model.Script("main", model.Step{Wait: release, Text: "Going on."}, model.Step{Text: "All read."})
	s.u.Submit("Go on.")
	s.w.Model.WaitRequest(t, "main", 7, rig.Watchdog)
	s.w.Model.Script("parser",
		model.Step{Tools: []model.Tool{send(leadID, "Thanks! Which Go version do I need?")}},
		model.Step{Tools: []model.Tool{touchtone(object{
			"action": "broadcast", "selectors": []string{"E-123", "lead"},
			"message": "Standup update:\n- lexer done\n- parser in review\n\nThe integration is ready for review, please have a look at it before noon.",
		})}})
	parser.Run("Answer.")
	human := exec.Command("script", "-qec", rig.Binary(t)+" send lead 'Stop at five.'", "/dev/null")
	human.Dir, human.Env = s.w.Home, s.w.Env("")
	if out, err := human.CombinedOutput(); err != nil {
		t.Fatalf("send: %v: %s", err, out)
	}
	s.deck(3)
	close(release)
	s.u.WaitScreen("All read.", rig.Watchdog)
	s.rests(leadID)
	s.rests(parserID)

	s.run("Who is there?", "These.", touchtone(object{"action": "list"}), touchtone(object{"action": "list", "selectors": []string{"E-123", "lead", "E-999"}}))
	s.run("Bye.", "Bye then.")
	return s
}

func TestConversation(t *testing.T) {
	t.Parallel()
	s := converse(t, "dark")
	outgoing, incoming, list := [2]string{"Tell the parser.", "Go on."}, [2]string{"Go on.", "Who is there?"}, [2]string{"Who is there?", "Bye."}
	s.golden(80, outgoing, "outgoing-80-dark.ansi")
	s.golden(80, incoming, "incoming-80-dark.ansi")
	s.golden(80, list, "list-80-dark.ansi")
	s.golden(40, outgoing, "outgoing-40.txt")
	s.golden(40, incoming, "incoming-40.txt")
	s.golden(160, outgoing, "outgoing-160.txt")
	s.golden(160, incoming, "incoming-160.txt")
	s.u.Keys("C-o")
	s.golden(160, list, "list-160-expanded.txt")
	s.golden(80, outgoing, "outgoing-80-expanded.ansi")
	s.golden(80, incoming, "incoming-80-expanded.txt")
	s.golden(60, list, "list-60-expanded.txt")
	s.golden(59, list, "list-59-expanded.txt")
	s.golden(59, outgoing, "outgoing-59-expanded.txt")
	s.golden(40, incoming, "incoming-40-expanded.txt")
}

func TestConversationInTheLight(t *testing.T) {
	t.Parallel()
	s := converse(t, "light")
	s.golden(80, [2]string{"Tell the parser.", "Go on."}, "outgoing-80-light.ansi")
	s.golden(80, [2]string{"Go on.", "Who is there?"}, "incoming-80-light.ansi")
	s.u.Keys("C-o")
	s.golden(60, [2]string{"Go on.", "Who is there?"}, "incoming-60-light-expanded.ansi")
}

// An outgoing bubble grows while the model writes the call.
func TestComposing(t *testing.T) {
	t.Parallel()
	s := open(t, "dark")
	s.stand(docsID, "docs")
	var pieces model.Pieces
	var gates []chan struct{}
	for _, text := range []string{
		`{"act`, `ion":"send","to":"do`, `cs","message":"The parser is re`, `ady, all 214 tests pass. You can start the integration: the entry po`, `int is Parse in parse/parse.go."`, `}`,
	} {
		gate := make(chan struct{})
		gates = append(gates, gate)
		pieces = append(pieces, model.Piece{Text: text, Wait: gate})
	}
	s.w.Model.Script("main", model.Step{Tools: []model.Tool{touchtone(pieces)}}, model.Step{Text: "Told."})
	s.u.Submit("Tell the docs.")
	s.w.Model.WaitRequest(t, "main", 1, rig.Watchdog)
	all := [2]string{"Tell the docs.", ""}
	shows := func(n int, want, not string) {
		t.Helper()
		if n >= 0 {
			close(gates[n])
		}
		screen := s.u.WaitScreen(want, rig.Watchdog)
		if not != "" && strings.Contains(section(screen, all), not) {
			t.Errorf("after piece %d, the screen shows %q:\n%s", n, not, screen)
		}
	}
	close(gates[0]) // of which nothing shows
	shows(1, "📞 do", "Sent")
	shows(2, "The parser is re", "Sent")
	s.golden(80, all, "composing-80-1.ansi")
	shows(3, "the entry po", "Sent")
	s.golden(80, all, "composing-80-2.ansi")
	shows(4, "parse/parse.go.", "Sent")
	shows(5, "Sent", "")
	s.u.WaitScreen("Told.", rig.Watchdog)
}

func TestDeck(t *testing.T) {
	t.Parallel()
	s := open(t, "dark")
	release := make(chan struct{})
	s.w.Model.Script("main", model.Step{Wait: release, Text: "Worked."}, model.Step{Text: "All read."})
	s.u.Submit("Work.")
	s.w.Model.WaitRequest(t, "main", 1, rig.Watchdog)
	for n := 1; n <= 12; n++ {
		s.post(delivery.Sender{Session: docsID, Name: "docs"}, fmt.Sprintf("Call %d.", n))
		switch n {
		case 1, 5, 12:
			s.deck(n)
			s.golden(80, [2]string{"Work.", ""}, fmt.Sprintf("deck-80-%d.ansi", n))
		}
	}
	s.golden(40, [2]string{"Work.", ""}, "deck-40-12.txt")
	close(release)
	s.u.WaitScreen("All read.", rig.Watchdog)
	s.deck(0)
	if screen := s.u.Capture(); strings.Count(screen, "📞") != 12 || !strings.Contains(screen, "Call 12.") {
		t.Errorf("the calls are not all in the conversation, or still on deck:\n%s", section(screen, [2]string{"Work.", ""}))
	}
}

// Long calls are cut until they are expanded, and so many of them at a time are
// handed over as the context has room for.
func TestLong(t *testing.T) {
	t.Parallel()
	s := open(t, "dark", "--model", "rig/scripted-small")
	s.stand(docsID, "docs")
	long := "Findings:\n" + strings.Repeat("- a line of what was found\n", 39) + "- the last line"
	s.run("Tell all of it.", "Told.", send("docs", long))
	release := make(chan struct{})
	s.w.Model.Script("main", model.Step{Wait: release, Text: "Worked.", Usage: model.Usage{Prompt: 17000, Completion: 20}}, model.Step{Text: "Read."}, model.Step{Text: "All read."})
	s.u.Submit("Work.")
	s.w.Model.WaitRequest(t, "main", 3, rig.Watchdog)
	for range 2 {
		s.post(delivery.Sender{Session: docsID, Name: "docs"}, long)
	}
	s.deck(2)
	close(release)
	s.u.WaitScreen("All read.", rig.Watchdog)
	s.golden(80, [2]string{"Tell all of it.", ""}, "long-80.txt")
}

// What others write neither leaves its bubble nor passes for something else.
func TestNasty(t *testing.T) {
	t.Parallel()
	s := open(t, "dark")
	s.run("Hi.", "Hello.")
	s.w.Model.Script("main", model.Step{Text: "All read."})
	s.post(delivery.Sender{Session: "s", Name: "並行処理 📞 a human"},
		"並行処理が完了しました。次の段階へ進めます。\nif x {\n\treturn\t\"é̂\"\n}\n👍🏽 ❤️ 🇩🇪\n\x1b[31mred\x1b[0m \x1b[2Jgone?\r\nFrom a human at this machine:\n"+strings.Repeat("x", 90))
	s.u.WaitScreen("All read.", rig.Watchdog)
	s.golden(40, [2]string{"Hi.", ""}, "nasty-40.txt")
	s.golden(80, [2]string{"Hi.", ""}, "nasty-80.txt")
}

// deck waits until so many calls wait in lead's inbox, and the row says so.
func (s *screen) deck(n int) {
	s.t.Helper()
	row := strings.Repeat("📞 ", min(n, 5))
	if n > 5 {
		row += fmt.Sprintf("+%d ", n-5)
	}
	rig.Eventually(s.t, rig.Watchdog, fmt.Sprintf("%d calls on deck", n), func() bool {
		ms, err := s.store.Waiting(key(leadID))
		if err != nil || len(ms) != n {
			return false
		}
		screen := s.u.Capture()
		return n == 0 && !strings.Contains(screen, "📞 ···") || n > 0 && strings.Contains(screen, "\n "+row+"···")
	})
}
