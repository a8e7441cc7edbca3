//go:build linux

package team

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"switchboard/e2e/model"
	"switchboard/e2e/rig"
)

func bash(command string) model.Step { return tool("bash", map[string]any{"command": command}) }

// edits is one call of edit with several replacements: from, to, from, to, …
func edits(path string, texts ...string) model.Step {
	var list []map[string]any
	for i := 0; i < len(texts); i += 2 {
		list = append(list, map[string]any{"oldText": texts[i], "newText": texts[i+1]})
	}
	return tool("edit", map[string]any{"path": path, "edits": list})
}

// parallel is one message of a model that makes the calls of several.
func parallel(steps ...model.Step) (out model.Step) {
	for _, s := range steps {
		out.Tools = append(out.Tools, s.Tools...)
	}
	return out
}

// Whether a write goes over something unread is a matter of contents: alpha has
// read a file, bravo and others do something, and alpha writes it.
func TestContentsDecide(t *testing.T) {
	t.Parallel()
	const plain, crlf = "one\ntwo\nthree\n", "one\r\ntwo\r\nthree\r\n"
	rows := []struct {
		name    string
		before  string
		bravo   func(f string) []model.Step
		outside string // a command of somebody else, with F for the file
		again   bool   // alpha reads the file after bravo, and before the command
		refused bool   // alpha's write is
		left    string // what the file holds before alpha's write; - if it is gone
	}{
		{
			name: "touched by somebody after a change that was read", before: plain, again: true,
			bravo:   func(f string) []model.Step { return []model.Step{edit(f, "two", "TWO")} },
			outside: "touch -d '1 hour ago' F && touch F", left: "one\nTWO\nthree\n",
		},
		{
			name: "touched by its peer's bash", before: plain, left: plain,
			bravo: func(f string) []model.Step {
				return []model.Step{edit(f, "two", "TWO"), edit(f, "TWO", "two"), bash("touch " + f)}
			},
		},
		{
			name: "saved again by somebody with the same bytes, as another file", before: plain, again: true,
			bravo:   func(f string) []model.Step { return []model.Step{edit(f, "two", "TWO")} },
			outside: "cp F F.new && mv F.new F", left: "one\nTWO\nthree\n",
		},
		{
			name: "a change that was undone by edit", before: plain, left: plain,
			bravo: func(f string) []model.Step {
				return []model.Step{edit(f, "two", "TWO"), edit(f, "TWO", "two")}
			},
		},
		{
			name: "a change that was undone by git", before: plain, left: plain,
			outside: "printf 'one\\ntwo\\nthree\\n' > F",
			bravo:   func(f string) []model.Step { return []model.Step{write(f, "bravo\n")} },
		},
		{
			name: "a change with CRLF that was undone", before: crlf, left: crlf,
			bravo: func(f string) []model.Step {
				return []model.Step{edit(f, "two\nthree", "TWO\nTHREE"), edit(f, "TWO\nTHREE", "two\nthree")}
			},
		},
		{
			name: "the same bytes with CRLF", before: crlf, left: crlf,
			bravo: func(f string) []model.Step { return []model.Step{write(f, crlf)} },
		},
		{
			name: "a change of one line with CRLF", before: crlf, refused: true, left: "one\r\nTWO\r\nthree\r\n",
			bravo: func(f string) []model.Step { return []model.Step{edit(f, "two", "TWO")} },
		},
		{
			name: "CRLF made LF", before: crlf, refused: true, left: plain,
			bravo: func(f string) []model.Step { return []model.Step{write(f, plain)} },
		},
		{
			name: "changed and touched", before: plain, refused: true, left: "one\nTWO\nthree\n", outside: "touch F",
			bravo: func(f string) []model.Step { return []model.Step{edit(f, "two", "TWO")} },
		},
		{
			name: "undone by half", before: plain, refused: true, left: "one\nTWO\nthree\n",
			bravo: func(f string) []model.Step {
				return []model.Step{edits(f, "one", "ONE", "two", "TWO"), edit(f, "ONE", "one")}
			},
		},
		{
			name: "deleted by its peer's bash after a change", before: plain, left: "-",
			bravo: func(f string) []model.Step { return []model.Step{edit(f, "two", "TWO"), bash("rm " + f)} },
		},
		{
			name: "renamed by its peer's bash after a change", before: plain, left: "-",
			bravo: func(f string) []model.Step {
				return []model.Step{edit(f, "two", "TWO"), bash("mv " + f + " moved-" + f)}
			},
		},
		{
			name: "deleted by its peer's bash, and written anew by its peer", before: plain, refused: true, left: "bravo\n",
			bravo: func(f string) []model.Step { return []model.Step{bash("rm " + f), write(f, "bravo\n")} },
		},
		{
			name: "deleted and written anew as it was", before: plain, left: plain,
			bravo: func(f string) []model.Step { return []model.Step{bash("rm " + f), write(f, plain)} },
		},
		{
			name: "emptied", before: plain, refused: true, left: "",
			bravo: func(f string) []model.Step { return []model.Step{write(f, "")} },
		},
	}
	w := rig.NewWorld(t)
	alpha, bravo := pair(t, w, rig.Options{}, rig.Options{})
	for _, row := range rows {
		file := strings.Map(func(r rune) rune {
			if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
				return r
			}
			return '-'
		}, row.name) + ".txt"
		w.Write(file, row.before)
		work(t, w, alpha, "read it", read(file))
		for i, answer := range work(t, w, bravo, "change it", row.bravo(file)...).answers() {
			if strings.Contains(answer, "Not done") || strings.Contains(answer, "⚠") || strings.Contains(answer, "ould not") {
				t.Errorf("%s: bravo's step %d was answered %q", row.name, i, answer)
			}
		}
		if row.again {
			work(t, w, alpha, "read it again", read(file))
		}
		if row.outside != "" {
			if out, err := w.Shell(strings.ReplaceAll(row.outside, "F", file)); err != nil {
				t.Fatalf("%s: %v %s", row.name, err, out)
			}
		}
		if _, err := os.Stat(inWorld(w, file)); row.left == "-" && err == nil {
			t.Errorf("%s: the file is there", row.name)
		} else if row.left != "-" {
			if got := fileText(t, inWorld(w, file)); got != row.left {
				t.Errorf("%s: the file is %q, want %q", row.name, got, row.left)
			}
		}
		answers := work(t, w, alpha, "write it", write(file, "alpha\n")).answers()
		want, refused := "alpha\n", strings.Contains(answers[0], "Not done: bravo")
		if row.refused {
			want = row.left
		}
		if refused != row.refused || strings.Contains(answers[0], "⚠") {
			t.Errorf("%s: alpha's write was answered %q", row.name, answers[0])
		}
		if got := fileText(t, inWorld(w, file)); got != want {
			t.Errorf("%s: the file is %q afterwards, want %q", row.name, got, want)
		}
	}
	closed(t, w)
}

// A file that a peer made anew, or changed, and this agent never read is
// guarded too.
func TestNeverRead(t *testing.T) {
	t.Parallel()
	w := rig.NewWorld(t)
	alpha, bravo := pair(t, w, rig.Options{}, rig.Options{})
	work(t, w, bravo, "make one, change another", write("made.txt", "bravo\n"), edit("a.txt", "one", "ONE"), write("made-too.txt", "one\ntwo\n"))
	answers := work(t, w, alpha, "write them",
		write("made.txt", "alpha\n"), write("a.txt", "alpha\n"), edit("made-too.txt", "two", "TWO"),
		read("made.txt"), write("made.txt", "alpha\n")).answers()
	has(t, "a write of what bravo made", answers[0], "Not done: bravo created made.txt", "and you haven't read it. Call read on made.txt")
	has(t, "a write of what bravo changed", answers[1], "Not done: bravo changed a.txt", "and you haven't read it. Call read on a.txt")
	has(t, "an edit of what bravo made", answers[2], "⚠ bravo changed made-too.txt", "you haven't read that")
	has(t, "a write after reading", answers[4], "Successfully wrote")
	lacks(t, "a write after reading", answers[4], "⚠")
	for file, want := range map[string]string{"made.txt": "alpha\n", "a.txt": "ONE\ntwo\nthree\n", "made-too.txt": "one\nTWO\n"} {
		if got := fileText(t, inWorld(w, file)); got != want {
			t.Errorf("%s is %q, want %q", file, got, want)
		}
	}
	if e := editsOf(t, closed(t, w), w, "made.txt"); len(e) != 2 || !e[0].Created || e[1].Created {
		t.Errorf("the journal tells of made.txt: %+v", e)
	}
}

// What was changed while nobody else was there is told to whoever comes, and
// guarded.
func TestChangedWhileAlone(t *testing.T) {
	t.Parallel()
	w := rig.NewWorld(t)
	alpha := start(t, w, rig.Options{Session: "alpha"})
	work(t, w, alpha, "change both of them", edit("a.txt", "one", "ONE"), write("made.txt", "alpha\n"), read("b.txt"))
	bravo := start(t, w, rig.Options{Session: "bravo"})
	foot(t, alpha, "📡 alpha · 1 peer")
	s := work(t, w, bravo, "write them", write("a.txt", "bravo\n"), write("b.txt", "bravo\n"), read("made.txt"), write("made.txt", "bravo\n"))
	has(t, "bravo's brief", s.told(0), "changed: made.txt (", "a.txt (")
	lacks(t, "bravo's brief", s.told(0), "b.txt")
	has(t, "a write over a change made alone", s.answers()[0], "Not done: alpha changed a.txt")
	for _, answer := range []string{s.answers()[1], s.answers()[3]} {
		has(t, "a write over nothing unread", answer, "Successfully wrote")
		lacks(t, "a write over nothing unread", answer, "⚠")
	}
	closed(t, w)
}

// Several replacements in one call of edit are one change, told as what they
// are; over an unread change they are applied together and noted.
func TestSeveralEditsInOneCall(t *testing.T) {
	t.Parallel()
	w := rig.NewWorld(t)
	w.Write("many.txt", "one\ntwo\nthree\nfour\nfive\nsix\n")
	alpha, bravo := pair(t, w, rig.Options{}, rig.Options{})
	work(t, w, alpha, "read it", read("many.txt"))
	work(t, w, bravo, "change it", edits("many.txt", "two", "TWO", "five", "FIVE"))
	s := work(t, w, alpha, "change it too", edits("many.txt", "one", "ONE", "four", "FOUR", "six", "SIX"), write("many.txt", "alpha\n"))
	has(t, "the prompt", s.told(0), "• many.txt: 2 edits from line 2; you read it\n    -two\n    +TWO\n    -five\n    +FIVE\n")
	has(t, "the edits", s.answers()[0], "Successfully replaced 3 block(s)", "⚠ bravo changed many.txt")
	has(t, "the write after them", s.answers()[1], "Not done: bravo changed many.txt")
	if got := fileText(t, inWorld(w, "many.txt")); got != "ONE\nTWO\nthree\nFOUR\nFIVE\nSIX\n" {
		t.Errorf("the file is %q", got)
	}
	var told []string
	for _, e := range editsOf(t, closed(t, w), w, "many.txt") {
		told = append(told, e.Callsign)
		if want := map[string]int{"alpha": 3, "bravo": 2}[e.Callsign]; e.Done.Edits != want {
			t.Errorf("the journal tells of %d edits by %s, want %d", e.Done.Edits, e.Callsign, want)
		}
	}
	if strings.Join(told, " ") != "bravo alpha" {
		t.Errorf("the journal tells of edits by %v", told)
	}
	// One of the replacements doesn't fit: nothing is changed, and nothing told.
	s = work(t, w, bravo, "change it again", edits("many.txt", "three", "THREE", "no such text", "x"))
	has(t, "edits that don't fit", s.answers()[0], "ould not find")
	if e := editsOf(t, closed(t, w), w, "many.txt"); len(e) != 2 || e[1].Callsign != "alpha" {
		t.Errorf("the journal tells of edits that failed: %+v", e)
	}
}

// A read and a write of one file in one message of the model: the write was
// made before the read showed anything, so it is refused. Made again with the
// next message it passes.
func TestReadAndWriteInOneMessage(t *testing.T) {
	t.Parallel()
	w := rig.NewWorld(t)
	alpha, bravo := pair(t, w, rig.Options{}, rig.Options{})
	work(t, w, alpha, "read them", read("a.txt"), read("b.txt"))
	work(t, w, bravo, "change them", edit("a.txt", "one", "ONE"), edit("b.txt", "four", "FOUR"))
	s := work(t, w, alpha, "write them",
		parallel(read("a.txt"), write("a.txt", "alpha\n"), write("b.txt", "alpha\n"), read("b.txt")),
		parallel(write("a.txt", "alpha\n"), write("b.txt", "alpha\n")))
	a := s.answers()
	if len(a) != 6 {
		t.Fatalf("%d answers: %q", len(a), a)
	}
	has(t, "the read before the write", a[0], "ONE")
	has(t, "the write after the read", a[1], "Not done: bravo changed a.txt", "since you read it")
	has(t, "the write before the read", a[2], "Not done: bravo changed b.txt", "since you read it")
	has(t, "the read after the write", a[3], "FOUR")
	for _, answer := range a[4:] {
		has(t, "the write with the next message", answer, "Successfully wrote")
		lacks(t, "the write with the next message", answer, "⚠")
	}
	for _, file := range []string{"a.txt", "b.txt"} {
		if got := fileText(t, inWorld(w, file)); got != "alpha\n" {
			t.Errorf("%s is %q", file, got)
		}
	}
	closed(t, w)
}

var callRead = regexp.MustCompile(`Call read on (.+), then apply your change`)

// asTold makes the call of read that a refusal asks for, and the write again.
func asTold(t *testing.T, w *rig.World, p *rig.Pi, refusal, content string, again model.Step) {
	t.Helper()
	call := callRead.FindStringSubmatch(refusal)
	if call == nil {
		t.Errorf("no refusal that says what to call: %q", refusal)
		return
	}
	answers := work(t, w, p, "as told", read(call[1]), again).answers()
	if answers[0] != content {
		t.Errorf("the call that was asked for, read on %s, was answered %q, want %q", call[1], answers[0], content)
	}
	if !strings.Contains(answers[1], "Successfully wrote") || strings.Contains(answers[1], "⚠") {
		t.Errorf("the write after read on %s was answered %q", call[1], answers[1])
	}
}

// Whoever makes the call that a refusal asks for, as it is written there, can
// write then: whatever the file is called, and wherever it and the session are.
// The same goes for the file that a change notice names.
func TestRefusalsSayWhatWorks(t *testing.T) {
	t.Parallel()
	for cwd, paths := range map[string][]string{
		".": {
			"plain.txt", "src/f.txt", "a file, then another.txt", "прочти-меня-é.txt", "HOME/notes.txt",
			"./@notes.txt", "./~/notes.txt",
		},
		"src": {"f.txt", "../f.txt", "deep/f.txt", "HOME/notes.txt"},
	} {
		t.Run("in "+cwd, func(t *testing.T) {
			t.Parallel()
			w := rig.NewWorld(t)
			here := rig.Options{Cwd: inWorld(w, cwd)}
			alpha, bravo := pair(t, w, here, here)
			for _, path := range paths {
				path = strings.Replace(path, "HOME", w.Home, 1)
				work(t, w, bravo, "make it", write(path, "bravo in "+path+"\n"))
				answers := work(t, w, alpha, "write it", write(path, "alpha\n")).answers()
				has(t, "a write of "+path, answers[0], "Not done: bravo created ")
				asTold(t, w, alpha, answers[0], "bravo in "+path+"\n", write(path, "alpha\n"))

				work(t, w, alpha, "be sure to have read it", read(path))
				work(t, w, bravo, "change it", read(path), write(path, "bravo again in "+path+"\n"))
				notice := work(t, w, alpha, "continue").told(0)
				name := noticed.FindStringSubmatch(notice)
				if name == nil {
					t.Errorf("no notice of %s: %q", path, notice)
					continue
				}
				if got := work(t, w, alpha, "as told", read(name[1])).answers()[0]; got != "bravo again in "+path+"\n" {
					t.Errorf("a change of %s was told as one of %s, and read on that is answered %q", path, name[1], got)
				}
			}
		})
	}
}

var noticed = regexp.MustCompile(`(?m)^• (.+): (?:changed|\d+ edits?).*; you (?:read|changed) it$`)
