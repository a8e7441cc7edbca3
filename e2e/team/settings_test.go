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
