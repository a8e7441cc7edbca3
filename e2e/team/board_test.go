//go:build linux

package team

import (
	"strings"
	"testing"

	"switchboard/e2e/rig"
)

// One team over worktrees; its board, tasks and log; the machine's board; a
// callsign that is free again, one that is kept over a resume, and a fixed one.
func TestBoard(t *testing.T) {
	t.Parallel()
	w := rig.NewWorld(t)
	git(t, w.Dir, "worktree", "add", "-q", "-b", "lane-b", inWorld(w, "../lane"))
	alpha := start(t, w, rig.Options{Session: "alpha"})
	bravo := start(t, w, rig.Options{Session: "bravo", Cwd: inWorld(w, "../lane")})
	elsewhere := start(t, w, rig.Options{Session: "elsewhere", Cwd: w.Repo("other")})
	if got := callsign(alpha) + " " + callsign(bravo) + " " + callsign(elsewhere); got != "alpha bravo alpha" {
		t.Fatalf("callsigns %s", got)
	}

	w.Model.Script("bravo", telecom(map[string]any{"action": "status", "message": "write the session migration"}), write("new.txt", "x\n"), ok)
	bravo.Run("please go ahead with whatever is next on our list today") // 10 words: replaces what was set
	w.Model.Script("alpha", telecom(map[string]any{"action": "board"}), telecom(map[string]any{"action": "log"}), telecom(map[string]any{"action": "board", "scope": "machine"}), ok)
	alpha.Run("look around")
	turns := w.Model.Turns("alpha")
	board, log, machine := turns[1].Last().Text, turns[2].Last().Text, turns[3].Last().Text
	t.Logf("%s\n\n%s\n\n%s", board, log, machine)
	for _, want := range []string{"You are alpha on main.", "• bravo [idle] on lane-b  in " + realPath(t, inWorld(w, "../lane")), "task: write the session migration (", "recently changed: new.txt ("} {
		if !strings.Contains(board, want) {
			t.Errorf("the board lacks %q:\n%s", want, board)
		}
	}
	if strings.Count(board, "•") != 1 {
		t.Errorf("the board lists others than the team:\n%s", board)
	}
	for _, want := range []string{"alpha joined", "bravo joined", "bravo works on: please go ahead", "bravo works on: write the session migration"} {
		if !strings.Contains(log, want) {
			t.Errorf("the log lacks %q:\n%s", want, log)
		}
	}
	if strings.Count(machine, "•") != 2 || !strings.Contains(machine, "other") {
		t.Errorf("the machine's board:\n%s", machine)
	}

	// alpha leaves; its word is free; it keeps another after that.
	file := alpha.SessionFile()
	alpha.Quit()
	rig.Eventually(t, rig.Watchdog, "bravo to be alone", func() bool { return footer(bravo) == "📡 bravo" })
	third := start(t, w, rig.Options{Session: "third"})
	if got := callsign(third); got != "alpha" {
		t.Errorf("the third is %s, want alpha", got)
	}
	again := start(t, w, rig.Options{Session: "alpha", Args: []string{"--session", file}})
	if got := callsign(again); got != "charlie" {
		t.Errorf("resumed while another is alpha: %s, want charlie", got)
	}
	ops := start(t, w, rig.Options{Session: "ops", Env: []string{"PI_TELECOM_CALLSIGN=ops"}})
	taken := start(t, w, rig.Options{Session: "taken", Env: []string{"PI_TELECOM_CALLSIGN=ops"}})
	if callsign(ops) != "ops" || callsign(taken) != "delta" {
		t.Errorf("callsigns %s and %s", callsign(ops), callsign(taken))
	}
	rig.Eventually(t, rig.Watchdog, "its human to be told", func() bool {
		for _, n := range taken.Notifications() {
			if strings.Contains(n.Text, "callsign ops is taken, so this session is delta") {
				return true
			}
		}
		return false
	})
	third.Quit()
	bravoFile := bravo.SessionFile()
	bravo.Quit()
	rig.Eventually(t, rig.Watchdog, "both to be gone", func() bool { return strings.Contains(footer(ops), "2 peers") })
	if got := callsign(start(t, w, rig.Options{Session: "bravo", Cwd: inWorld(w, "../lane"), Args: []string{"--session", bravoFile}})); got != "bravo" {
		t.Errorf("resumed with alpha free: %s, want bravo", got)
	}
}

// A session that dies together with its helper is missed, and gone.
func TestDeath(t *testing.T) {
	t.Parallel()
	w := rig.NewWorld(t)
	alpha := start(t, w, rig.Options{Session: "alpha"})
	bravo := start(t, w, rig.Options{Session: "bravo"})
	rig.Eventually(t, rig.Watchdog, "alpha to see bravo", func() bool { return footer(alpha) == "📡 alpha · 1 peer" })
	killAll(bravo)
	rig.Eventually(t, rig.Watchdog, "alpha to be alone", func() bool { return footer(alpha) == "📡 alpha" })
}

// Where an agent works is where its edits land, not where it was started (spec:
// telecom, Worktrees).
func TestWorksInAWorktree(t *testing.T) {
	t.Parallel()
	w := rig.NewWorld(t)
	lane := inWorld(w, "../lane")
	git(t, w.Dir, "worktree", "add", "-q", "-b", "lane-b", lane)
	alpha := start(t, w, rig.Options{Session: "alpha"})
	bravo := start(t, w, rig.Options{Session: "bravo"})
	rig.Eventually(t, rig.Watchdog, "both", func() bool { return strings.Contains(footer(alpha), "1 peer") })
	board := func() string {
		w.Model.Script("alpha", telecom(map[string]any{"action": "board"}), ok)
		alpha.Run("look around")
		turns := w.Model.Turns("alpha")
		return turns[len(turns)-1].Last().Text
	}
	if got := board(); !strings.Contains(got, "] on main  id") {
		t.Errorf("before its first edit:\n%s", got)
	}
	w.Model.Script("bravo", write(realPath(t, lane)+"/new.txt", "x\n"), ok)
	bravo.Run("write in the lane")
	if got := board(); !strings.Contains(got, "] on lane-b  in "+realPath(t, lane)+"  id") {
		t.Errorf("after an edit in the lane:\n%s", got)
	}
	turns := w.Model.Turns("alpha")
	if got := turns[len(turns)-1].Transcript(); !strings.Contains(got, "bravo is now in "+realPath(t, lane)+", on lane-b") {
		t.Errorf("alpha was told:\n%s", got)
	}
	for _, name := range []string{"a.txt", "b.txt"} { // relative: in the main checkout
		w.Model.Script("bravo", write(name, "x\n"), ok)
		bravo.Run("write here")
	}
	if got := board(); !strings.Contains(got, "] on main  id") {
		t.Errorf("after two edits in the main checkout:\n%s", got)
	}
}
