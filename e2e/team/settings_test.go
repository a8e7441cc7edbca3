//go:build linux

package team

import (
	"strings"
	"testing"

	"switchboard/e2e/rig"
)

// A session that its human keeps out of the team is in none: nobody sees it on
// the board, nothing guards its edits, and its calls still work.
func TestTeamOff(t *testing.T) {
	t.Parallel()
	w := rig.NewWorld(t)
	alpha := start(t, w, rig.Options{Session: "alpha"})
	off := w.StartPi(t, rig.Options{Session: "off", Env: []string{"PI_TELECOM_DISABLE=1"}})
	rig.Eventually(t, rig.Watchdog, "its footer", func() bool { return footer(off) == "📡 off" })
	w.Model.Script("alpha", write("a.txt", "alpha\n"), telecom(map[string]any{"action": "board"}), ok)
	alpha.Run("write it")
	turns := w.Model.Turns("alpha")
	if got := turns[len(turns)-1].Last().Text; strings.Contains(got, "•") {
		t.Errorf("the board:\n%s", got)
	}
	w.Model.Script("off", write("a.txt", "off\n"), telecom(map[string]any{"action": "board"}), tool("touchtone", map[string]any{"action": "list"}), ok)
	off.Run("write over it")
	turns = w.Model.Turns("off")
	if got := fileText(t, inWorld(w, "a.txt")); got != "off\n" {
		t.Errorf("the file is %q", got)
	}
	if got := turns[2].Last().Text; !strings.Contains(got, "telecom is off in this session") {
		t.Errorf("telecom answered %q", got)
	}
	if got := turns[3].Last().Text; !strings.Contains(got, "2 live sessions") {
		t.Errorf("touchtone answered %q", got)
	}
}

// A setting that makes no sense is said to the human, and the default holds.
func TestBadSettings(t *testing.T) {
	t.Parallel()
	w := rig.NewWorld(t)
	p := start(t, w, rig.Options{Env: []string{"PI_TELECOM_GUARD=fierce", "PI_TELECOM_CALLSIGN=two words"}})
	if callsign(p) != "alpha" {
		t.Errorf("callsign %s", callsign(p))
	}
	for _, want := range []string{`PI_TELECOM_GUARD is "fierce"`, `PI_TELECOM_CALLSIGN is "two words"`} {
		rig.Eventually(t, rig.Watchdog, want, func() bool {
			for _, n := range p.Notifications() {
				if strings.Contains(n.Text, want) {
					return true
				}
			}
			return false
		})
	}
}

// SWITCHBOARD_TOOLS picks the tools; what needs none stays.
func TestToolChoice(t *testing.T) {
	t.Parallel()
	w := rig.NewWorld(t)
	p := start(t, w, rig.Options{Session: "p", Env: []string{"SWITCHBOARD_TOOLS=touchtone"}})
	p.Run("hello")
	tools := strings.Join(w.Model.Turns("p")[0].Tools, " ")
	if strings.Contains(tools, "telecom") || !strings.Contains(tools, "touchtone") {
		t.Errorf("tools on offer: %s", tools)
	}
}

// /telecom off takes a session out of its team, and on brings it back under its
// callsign. The choice goes before the setting, and survives a reload and a
// resume, on its branch of the conversation.
func TestOffAndOn(t *testing.T) {
	t.Parallel()
	w := rig.NewWorld(t)
	w.Write("a.txt", "one\n")
	extensions := []string{odd(t)}
	alpha := start(t, w, rig.Options{Session: "alpha"})
	bravo := start(t, w, rig.Options{Session: "bravo", ExtensionPaths: extensions})
	foot := func(p *rig.Pi, want string) {
		t.Helper()
		rig.Eventually(t, rig.Watchdog, want, func() bool { return footer(p) == want })
	}
	foot(alpha, "📡 alpha · 1 peer")
	bravo.Run("hello")

	bravo.Prompt("/telecom off")
	foot(bravo, "📡 off")
	foot(alpha, "📡 alpha")
	w.Model.Script("alpha", write("a.txt", "alpha\n"), telecom(map[string]any{"action": "board"}), ok)
	alpha.Run("write it")
	turns := w.Model.Turns("alpha")
	if got := turns[len(turns)-1].Last().Text; strings.Contains(got, "•") {
		t.Errorf("the board:\n%s", got)
	}
	w.Model.Script("bravo", write("a.txt", "bravo\n"), telecom(map[string]any{"action": "board"}), ok)
	bravo.Run("write over it")
	turns = w.Model.Turns("bravo")
	if got := fileText(t, inWorld(w, "a.txt")); got != "bravo\n" {
		t.Errorf("the file is %q", got)
	}
	if got := turns[len(turns)-1].Last().Text; !strings.Contains(got, "telecom is off in this session") {
		t.Errorf("telecom answered %q", got)
	}

	old := bravo.Sidecars()
	bravo.Prompt("/reload-now")
	rig.Eventually(t, rig.Watchdog, "the reload", func() bool {
		now := bravo.Sidecars()
		return len(now) == 1 && now[0] != old[0] && footer(bravo) == "📡 off"
	})
	file := bravo.SessionFile()
	bravo.Quit()
	bravo = w.StartPi(t, rig.Options{Session: "bravo", Args: []string{"--session", file}, ExtensionPaths: extensions})
	foot(bravo, "📡 off")

	bravo.Prompt("/telecom on")
	foot(bravo, "📡 bravo · 1 peer")
	foot(alpha, "📡 alpha · 1 peer")
	bravo.Run("go on") // an entry behind the choice
	bravo.Quit()
	foot(alpha, "📡 alpha")
	bravo = w.StartPi(t, rig.Options{Session: "bravo", Args: []string{"--session", file}, ExtensionPaths: extensions, Env: []string{"PI_TELECOM_DISABLE=1"}})
	foot(bravo, "📡 bravo · 1 peer")
	bravo.Prompt("/to-start")
	foot(bravo, "📡 off")
	foot(alpha, "📡 alpha")

	for command, want := range map[string]string{
		"/telecom off":   "This session is off already",
		"/telecom":       "telecom is off in this session. Usage: /telecom on | off",
		"/telecom fly a": "There is no /telecom fly a. Usage",
	} {
		bravo.Prompt(command)
		rig.Eventually(t, rig.Watchdog, want, func() bool {
			for _, n := range bravo.Notifications() {
				if strings.Contains(n.Text, want) {
					return true
				}
			}
			return false
		})
	}
}
