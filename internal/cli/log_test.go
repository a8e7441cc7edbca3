package cli

import (
	"os"
	"strings"
	"testing"

	"switchboard/internal/team"
)

func TestLog(t *testing.T) {
	w := newWorld(t)
	w.refused(done, "Nothing in the log of this repository.", "log")
	w.refused(done, "Nothing in the log of this repository about this path.", "log", "src")
	if out, _, code := w.run("log", "--json"); out != "[]\n" || code != done {
		t.Errorf("code %d, %q; want an empty array", code, out)
	}
	if _, err := os.Stat(w.env["SWITCHBOARD_DIR"]); err == nil {
		t.Error("asking made the folder")
	}

	alpha := w.session("id-alpha", "alpha", "app")
	bravo := w.session("id-bravo", "bravo", "lane")
	far := w.session("id-far", "alpha", "other")
	w.write(alpha, team.Tasked, team.Tasking{Text: "mend\x1b[31m the cart"})
	w.write(bravo, team.Renamed, team.Renaming{Callsign: "ops"})
	w.edit(alpha, "src/a.go")
	w.edit(bravo, "src/a.go")
	w.edit(bravo, "src/new/deep/b.go")
	w.edit(alpha, "srcs.go")
	w.edit(far, "src/a.go")
	w.write(alpha, team.EditDone, team.Done{ID: "tmp", Path: team.Path{File: w.in("notes.txt")}, Hash: "h", Created: true})
	w.write(bravo, team.Left, team.Leaving{Session: bravo.Key.ID, Incarnation: bravo.Incarnation})

	w.want("…s ago  alpha joined\n…s ago  bravo joined\n…s ago  alpha works on: mend the cart\n…s ago  bravo is now called ops\n…s ago  ops left", "log")

	// a file: also its copies in other worktrees, but not in other repositories
	a := "…s ago  alpha changed src/a.go\n…s ago  ops changed DIR/lane/src/a.go"
	b := "\n…s ago  ops changed DIR/lane/src/new/deep/b.go"
	w.want(a, "log", "src/a.go")
	w.want(a, "log", "@./src/../src/a.go", w.in("lane/src/a.go"))
	// folders, also one that is not there, in each checkout's words
	w.want(a+b, "log", "src/")
	w.want(strings.TrimPrefix(b, "\n"), "log", "src/new/deep")
	w.want(a+b+"\n…s ago  alpha changed srcs.go", "log", ".")
	w.want(a+b+"\n…s ago  alpha changed srcs.go", "log", w.in("lane"))
	t.Chdir(w.in("app/src"))
	w.want(a, "log", "a.go")
	w.want("…s ago  alpha changed DIR/notes.txt", "log", "../../notes.txt")
	t.Chdir(w.in("lane"))
	w.want("…s ago  alpha changed DIR/app/src/a.go\n…s ago  ops changed src/a.go", "log", "src/a.go")

	w.refused(done, "Nothing in the log of this repository about these paths.", "log", "sr", w.in("other/src/a.go"))
	w.refused(misused, "switchboard: path \"\": is empty\nhint: switchboard log --help", "log", "")

	var lines []logLine
	w.read(&lines, "log", "--json")
	if len(lines) != 5 || lines[0].What != team.HasJoined || lines[0].Callsign != "alpha" || lines[0].Session != "id-alpha" || lines[0].At.IsZero() ||
		lines[2].Text != "mend the cart" || lines[3].What != team.WasRenamed || lines[3].Text != "bravo" || lines[4].What != team.HasLeft {
		t.Errorf("log --json: %+v", lines)
	}
	if out, _, _ := w.run("log", "--json"); strings.Contains(out, `"file"`) {
		t.Errorf("files without changes: %s", out)
	}
	lines = nil
	w.read(&lines, "log", "--json", w.in("notes.txt"), "src/new")
	if len(lines) != 2 || lines[0].What != "changed" || lines[0].Callsign != "ops" || lines[0].Rel != "src/new/deep/b.go" || lines[0].Root != w.in("lane") || lines[0].Created ||
		lines[1].File != w.in("notes.txt") || lines[1].Rel != "" || !lines[1].Created {
		t.Errorf("log --json with paths: %+v", lines)
	}
}
