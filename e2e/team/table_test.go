//go:build linux

package team

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"switchboard/e2e/model"
	"switchboard/e2e/rig"
	"switchboard/internal/agent"
	"switchboard/internal/exchange"
	"switchboard/internal/repo"
	"switchboard/internal/team"
)

// The guard's table, each row in each mode (spec: telecom, The edit guard).
func TestGuardTable(t *testing.T) {
	t.Parallel()
	const pass, note, block = "pass", "note", "block"
	rows := []struct {
		name                  string
		alpha, bravo          []model.Step // bravo's last step is the one that is judged
		standard, strict, off string
	}{
		{
			"write over an unread change",
			[]model.Step{write("F", "alpha\n")},
			[]model.Step{write("F", "bravo\n")},
			block, block, pass,
		},
		{
			"edit over an unread change",
			[]model.Step{edit("F", "two", "TWO")},
			[]model.Step{edit("F", "one", "ONE")},
			note, block, pass,
		},
		{
			"write after an edit over an unread change",
			[]model.Step{edit("F", "two", "TWO")},
			[]model.Step{edit("F", "one", "ONE"), write("F", "bravo\n")},
			block, block, pass,
		},
		{
			"write after reading again",
			[]model.Step{write("F", "alpha\n")},
			[]model.Step{read("F"), write("F", "bravo\n")},
			pass, pass, pass,
		},
		{
			"the third attempt",
			[]model.Step{write("F", "alpha\n")},
			[]model.Step{write("F", "bravo\n"), write("F", "bravo\n"), write("F", "bravo\n")},
			note, note, pass,
		},
		{
			"the same bytes again",
			[]model.Step{write("F", "one\ntwo\nthree\n")},
			[]model.Step{write("F", "bravo\n")},
			pass, pass, pass,
		},
	}
	for _, mode := range []string{"standard", "strict", "off"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			w := rig.NewWorld(t)
			alpha := start(t, w, rig.Options{Session: "alpha"})
			bravo := start(t, w, rig.Options{Session: "bravo", Env: []string{"PI_TELECOM_GUARD=" + mode}})
			rig.Eventually(t, rig.Watchdog, "both", func() bool {
				return strings.Contains(footer(alpha), "1 peer") && strings.Contains(footer(bravo), "1 peer")
			})
			for i, row := range rows {
				file := fmt.Sprintf("row-%d.txt", i)
				w.Write(file, "one\ntwo\nthree\n")
				w.Model.Script("bravo", read(file), ok)
				bravo.Run("read it")
				w.Model.Script("alpha", append(append([]model.Step{read(file)}, on(file, row.alpha)...), ok)...)
				alpha.Run("change it")
				w.Model.Script("bravo", append(on(file, row.bravo), ok)...)
				bravo.Run("change it too")
				turns := w.Model.Turns("bravo")
				got := turns[len(turns)-1].Last().Text
				want := map[string]string{"standard": row.standard, "strict": row.strict, "off": row.off}[mode]
				is := pass
				switch {
				case strings.Contains(got, "⚠"):
					is = note
				case strings.Contains(got, "Not done: alpha changed "+file):
					is = block
				}
				if is != want {
					t.Errorf("%s: %s, want %s: %s", row.name, is, want, got)
				}
				text := fileText(t, inWorld(w, file))
				done := text == "bravo\n"
				if row.bravo[len(row.bravo)-1].Tools[0].Name == "edit" {
					done = strings.Contains(text, "ONE")
				}
				if done != (want != block) {
					t.Errorf("%s: the file is %q", row.name, text)
				}
			}
			closed(t, w)
		})
	}
}

// on puts a file's name into steps.
func on(file string, steps []model.Step) []model.Step {
	var out []model.Step
	for _, s := range steps {
		args := map[string]any{}
		for k, v := range s.Tools[0].Args.(map[string]any) {
			args[k] = v
		}
		args["path"] = file
		out = append(out, tool(s.Tools[0].Name, args))
	}
	return out
}

// fold reads the team's journal of the world's repository.
func fold(t *testing.T, w *rig.World) *team.Team {
	t.Helper()
	s := exchangeOf(t, w)
	c, err := repo.Find(w.Dir)
	if err != nil {
		t.Fatal(err)
	}
	entries, _, err := s.Read(exchange.TeamID(c.Key()), exchange.Cursor{})
	if err != nil {
		t.Fatal(err)
	}
	var f team.Team
	agent.Fold(&f, entries)
	return &f
}

// closed waits until no edit is open, and returns what the journal tells.
func closed(t *testing.T, w *rig.World) (f *team.Team) {
	t.Helper()
	rig.Eventually(t, rig.Watchdog, "all edits to be closed", func() bool {
		f = fold(t, w)
		for _, m := range f.Members() {
			if len(f.OpenEdits(m.Session)) > 0 {
				return false
			}
		}
		return true
	})
	return f
}

func editsOf(t *testing.T, f *team.Team, w *rig.World, file string) []team.Edit {
	t.Helper()
	return f.Edits(team.Path{File: filepath.Join(realPath(t, w.Dir), file), Root: realPath(t, w.Dir), Rel: file})
}

// Reads, edits and errors in one message; another extension that blocks before
// the tool, or sends it to another file: the journal is right afterwards.
func TestOddCalls(t *testing.T) {
	t.Parallel()
	w := rig.NewWorld(t)
	alpha := start(t, w, rig.Options{Session: "alpha", ExtensionPaths: []string{odd(t)}})
	bravo := start(t, w, rig.Options{Session: "bravo"})
	rig.Eventually(t, rig.Watchdog, "both", func() bool { return strings.Contains(footer(alpha), "1 peer") })
	for _, f := range []string{"blocked.txt", "moved.txt", "arrived.txt", "many.txt"} {
		w.Write(f, "one\ntwo\nthree\n")
	}
	w.Model.Script("bravo", read("arrived.txt"), ok)
	bravo.Run("read it")
	many := model.Step{}
	for _, s := range []model.Step{
		read("many.txt"), edit("many.txt", "one", "ONE"), edit("many.txt", "no such text", "x"), edit("many.txt", "two", "TWO"),
		write("blocked.txt", "x\n"), write("moved.txt", "sent elsewhere\n"), write("new/folder/file.txt", "x\n"), read("no-such-file.txt"),
		edit("./many.txt", "three", "THREE"),
	} {
		many.Tools = append(many.Tools, s.Tools...)
	}
	w.Model.Script("alpha", many, ok)
	alpha.Run("do it all")
	f := closed(t, w)
	for file, want := range map[string]int{"many.txt": 1, "blocked.txt": 0, "moved.txt": 0, "arrived.txt": 1, "new/folder/file.txt": 1} {
		if got := editsOf(t, f, w, file); len(got) != want {
			t.Errorf("%s has %d edits, want %d", file, len(got), want)
		}
	}
	if e := editsOf(t, f, w, "new/folder/file.txt"); len(e) == 1 && !e[0].Created {
		t.Errorf("%+v", e[0])
	}
	w.Model.Script("bravo", write("arrived.txt", "bravo\n"), ok)
	bravo.Run("write it")
	turns := w.Model.Turns("bravo")
	if got := turns[len(turns)-1].Last().Text; !strings.Contains(got, "alpha changed arrived.txt") {
		t.Errorf("bravo's write was answered %q", got)
	}
}

func odd(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs("testdata/odd.ts")
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// An edit that waits for its human binds nobody. Pi is killed in it: what is on
// disk decides whether it was done.
func TestKilledInAnEdit(t *testing.T) {
	t.Parallel()
	for _, changed := range []bool{false, true} {
		t.Run(fmt.Sprintf("changed %v", changed), func(t *testing.T) {
			t.Parallel()
			w := rig.NewWorld(t)
			w.Write("asked.txt", "one\n")
			alpha := start(t, w, rig.Options{Session: "alpha", ExtensionPaths: []string{odd(t)}})
			bravo := start(t, w, rig.Options{Session: "bravo"})
			rig.Eventually(t, rig.Watchdog, "both", func() bool { return strings.Contains(footer(alpha), "1 peer") })
			w.Model.Script("bravo", read("asked.txt"), ok)
			bravo.Run("read it")
			w.Model.Script("alpha", write("asked.txt", "two\n"), ok)
			alpha.Prompt("write it")
			alpha.Wait(func(e rig.Event) bool { return e.Type == "extension_ui_request" && e.Str("method") == "confirm" }, rig.Watchdog)
			rig.Eventually(t, rig.Watchdog, "the edit to be parked", func() bool {
				f := fold(t, w)
				m, _ := f.ByCallsign("alpha")
				open := f.OpenEdits(m.Session)
				return len(open) == 1 && open[0].Parked
			})
			began := time.Now()
			w.Model.Script("bravo", edit("asked.txt", "one", "uno"), ok)
			bravo.Run("edit it meanwhile")
			if took := time.Since(began); took > 1900*time.Millisecond {
				t.Errorf("bravo waited %v for an edit that waits for its human", took)
			}
			if changed {
				w.Write("asked.txt", "tw") // half of it
			}
			if alpha.Kill(syscall.SIGKILL); changed {
				killAll(alpha)
			}
			rig.Eventually(t, rig.Watchdog, "alpha to be gone", func() bool { return footer(bravo) == "📡 bravo" })
			f := closed(t, w)
			// Closed by its own helper, or by bravo's if that died too. bravo's edit
			// changed the bytes as well: then too alpha's may have.
			var edits []team.Edit
			for _, e := range editsOf(t, f, w, "asked.txt") {
				if e.Callsign == "alpha" {
					edits = append(edits, e)
				}
			}
			t.Logf("alpha's edits: %+v", edits)
			if changed && len(edits) != 1 {
				t.Errorf("%d edits of alpha's, want 1", len(edits))
			}
			if changed {
				w.Model.Script("bravo", write("asked.txt", "three\n"), ok)
				bravo.Run("write it")
				turns := w.Model.Turns("bravo")
				if got := turns[len(turns)-1].Last().Text; !strings.Contains(got, "alpha changed asked.txt") {
					t.Errorf("bravo's write was answered %q", got)
				}
			}
		})
	}
}

// Nothing that is told of the team changes what was sent before: each request
// begins with the bytes of the one before it.
func TestPrefix(t *testing.T) {
	t.Parallel()
	w := rig.NewWorld(t)
	w.Write("shared.txt", "one\n")
	alpha := start(t, w, rig.Options{Session: "alpha"})
	var peers []*rig.Pi
	for i := range 7 {
		w.Model.Script("alpha", read("shared.txt"), telecom(map[string]any{"action": "status", "message": fmt.Sprint("step ", i)}), ok)
		alpha.Run(fmt.Sprintf("now go on with part %d of the work", i))
		switch i {
		case 1, 3:
			peers = append(peers, start(t, w, rig.Options{Session: fmt.Sprint("peer", i)}))
		case 2:
			w.Model.Script("peer1", write("shared.txt", "two\n"), telecom(map[string]any{"action": "status", "message": "something else"}), ok)
			peers[0].Run("change the file that alpha reads")
		case 5:
			peers[0].Quit()
			rig.Eventually(t, rig.Watchdog, "it to be gone", func() bool { return strings.Contains(footer(alpha), "1 peer") })
		}
	}
	turns := w.Model.Turns("alpha")
	if len(turns) < 20 {
		t.Fatalf("%d requests", len(turns))
	}
	told := turns[len(turns)-1].Transcript()
	for _, want := range []string{"you are alpha", "changed a file you work with", "joined", "left"} {
		if !strings.Contains(told, want) {
			t.Errorf("alpha was never told %q:\n%s", want, told)
		}
	}
	for i := 1; i < len(turns); i++ {
		before, now := messages(t, turns[i-1]), messages(t, turns[i])
		if !bytes.Equal(turns[i-1].ToolsJSON, turns[i].ToolsJSON) {
			t.Errorf("request %d offers other tools", i)
		}
		for n, m := range before {
			if n >= len(now) || !bytes.Equal(m, now[n]) {
				t.Fatalf("message %d of request %d is another than before:\n%s\n%s", n, i, m, now[min(n, len(now)-1)])
			}
		}
	}
}

func messages(t *testing.T, r model.Request) []json.RawMessage {
	t.Helper()
	var body struct{ Messages []json.RawMessage }
	if err := json.Unmarshal(r.Raw, &body); err != nil {
		t.Fatal(err)
	}
	return body.Messages
}

// Two checkouts of one repository: an edit of the other's copy is told and
// noted, and blocks nobody; one that reaches into the other's files does.
func TestWorktrees(t *testing.T) {
	t.Parallel()
	w := rig.NewWorld(t)
	lane := inWorld(w, "../lane")
	git(t, w.Dir, "worktree", "add", "-q", "-b", "lane-b", lane)
	alpha := start(t, w, rig.Options{Session: "alpha"})
	bravo := start(t, w, rig.Options{Session: "bravo", Cwd: lane})
	rig.Eventually(t, rig.Watchdog, "both", func() bool { return strings.Contains(footer(alpha), "1 peer") })
	say := func(session string) string {
		turns := w.Model.Turns(session)
		return turns[len(turns)-1].Last().Text
	}
	w.Model.Script("alpha", read("a.txt"), edit("a.txt", "one", "ONE"), ok)
	alpha.Run("change a")
	w.Model.Script("bravo", read("a.txt"), write("a.txt", "bravo\n"), ok)
	bravo.Run("change a as well")
	if got := say("bravo"); !strings.Contains(got, "⚠ alpha changed its copy of a.txt") {
		t.Errorf("bravo's write was answered %q", got)
	}
	w.Model.Script("bravo", write("a.txt", "bravo again\n"), ok)
	bravo.Run("once more")
	if got := say("bravo"); strings.Contains(got, "⚠") {
		t.Errorf("noted twice: %q", got)
	}
	w.Model.Script("alpha", ok)
	alpha.Run("and now")
	turns := w.Model.Turns("alpha")
	if got := turns[len(turns)-1].Transcript(); !strings.Contains(got, "you changed your copy") || !strings.Contains(got, realPath(t, lane)+"/a.txt") {
		t.Errorf("alpha was told:\n%s", got)
	}
	// bravo reaches into alpha's checkout.
	w.Model.Script("bravo", write(filepath.Join(realPath(t, w.Dir), "b.txt"), "bravo\n"), ok)
	bravo.Run("reach over")
	w.Model.Script("alpha", write("b.txt", "alpha\n"), ok)
	alpha.Run("write b")
	if got := say("alpha"); !strings.Contains(got, "bravo changed b.txt") {
		t.Errorf("alpha's write was answered %q", got)
	}
	if data, err := os.ReadFile(inWorld(w, "b.txt")); err != nil || string(data) != "bravo\n" {
		t.Errorf("b.txt is %q, %v", data, err)
	}
}
