//go:build linux

package team

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"switchboard/e2e/model"
	"switchboard/e2e/rig"
)

// spelling is another way to name a file; <f> stands for the file's name.
type spelling struct{ plain, odd string }

// spellings are all that Pi's tools take for one file, beside the plain one:
// below the repository, in its folders, and outside of it. Left out is what they
// don't take: ~user, file:// with another host than this, and %2F in one.
func spellings(w *rig.World) []spelling {
	return []spelling{
		{"<f>", "./<f>"},
		{"<f>", ".//<f>"},
		{"<f>", "src/../<f>"},
		{"<f>", "no-such-folder/../<f>"},
		{"<f>", "../work/<f>"},
		{"<f>", w.Dir + "/<f>"},
		{"<f>", w.Dir + "/src/.././/<f>"},
		{"<f>", "@<f>"},
		{"<f>", "@./<f>"},
		{"<f>", "@" + w.Dir + "/<f>"},
		{"<f>", "~/../work/<f>"},
		{"<f>", "@~/../work/<f>"},
		{"<f>", "file://" + w.Dir + "/<f>"},
		{"<f>", "@file://" + w.Dir + "/<f>"},
		{"<f>", "file://localhost" + w.Dir + "/<f>"},
		{"<f>", "file://" + w.Dir + "/src/%2e%2e/<f>"},
		{"with a blank <f>", "with\u00a0a\u202fblank\u3000<f>"}, // which Pi makes plain
		{"with a blank <f>", "file://" + w.Dir + "/with%20a%20blank%20<f>"},
		{"src/<f>", "linked-folder/<f>"},
		{"src/<f>", "linked-folder/../linked-folder/<f>"},
		{"src/<f>", w.Home + "/linked-repo/src/<f>"},
		{"src/<f>", "~/linked-repo/linked-folder/<f>"},
		{"<f>", "linked-folder/../<f>"}, // Pi cleans a path before it follows a link
		{"<f>", "linked-to-<f>"},
		{"<f>", "linked-twice-to-<f>"},
		{"src/<f>", "absolutely-linked-to-<f>"},
		{w.Home + "/notes/<f>", "~/notes/<f>"},
		{w.Home + "/notes/<f>", "@~/notes/<f>"},
		{w.Home + "/notes/<f>", "../home/notes/<f>"},
		{w.Home + "/notes/<f>", "file://" + w.Home + "/notes/<f>"},
		{w.Home + "/notes/<f>", "linked-notes/<f>"},
	}
}

// places makes the folders and links that spellings go by.
func places(t *testing.T, w *rig.World) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.Mkdir(filepath.Join(w.Home, "notes"), 0o700))
	must(os.Symlink("src", inWorld(w, "linked-folder")))
	must(os.Symlink(w.Dir, filepath.Join(w.Home, "linked-repo")))
	must(os.Symlink("../home/notes", inWorld(w, "linked-notes")))
	if filepath.Base(w.Dir) != "work" || filepath.Join(w.Home, "..", "work") != w.Dir {
		t.Fatalf("the world is elsewhere: %s, %s", w.Home, w.Dir)
	}
}

// named puts a file's name into a spelling, and makes the links to it.
func (s spelling) named(t *testing.T, w *rig.World, file string) (plain, odd string) {
	t.Helper()
	link := func(to, name string) {
		t.Helper()
		if err := os.Symlink(to, inWorld(w, name)); err != nil {
			t.Fatal(err)
		}
	}
	switch s.odd {
	case "linked-to-<f>":
		link(file, "linked-to-"+file)
	case "linked-twice-to-<f>":
		link(file, "second-"+file)
		link("src/../second-"+file, "linked-twice-to-"+file)
	case "absolutely-linked-to-<f>":
		link(inWorld(w, "src/"+file), "absolutely-linked-to-"+file)
	}
	return strings.Replace(s.plain, "<f>", file, 1), strings.Replace(s.odd, "<f>", file, 1)
}

// onDisk is where a plain spelling leads.
func onDisk(w *rig.World, plain string) string {
	if filepath.IsAbs(plain) {
		return plain
	}
	return inWorld(w, plain)
}

// The guard knows one file under every spelling that Pi's tools take: the one
// reads it by the plain one, the other changes it by another one, and the stale
// write is refused; and the other way round. What the refusal says to call
// works.
func TestSpellings(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name           string
		alphas, bravos func(plain, odd string) string
		file           string
	}{
		{"the peer's is odd", func(plain, _ string) string { return plain }, func(_, odd string) string { return odd }, "f%02d.txt"},
		{"one's own is odd", func(_, odd string) string { return odd }, func(plain, _ string) string { return plain }, "g%02d.txt"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := rig.NewWorld(t)
			places(t, w)
			alpha, bravo := pair(t, w, rig.Options{}, rig.Options{})
			var plains, alphas []string
			var reads, changes, writes, rereads []model.Step
			for i, s := range spellings(w) {
				plain, odd := s.named(t, w, fmt.Sprintf(c.file, i))
				if err := os.WriteFile(onDisk(w, plain), []byte("one\n"), 0o600); err != nil {
					t.Fatal(err)
				}
				a, b := c.alphas(plain, odd), c.bravos(plain, odd)
				plains, alphas = append(plains, plain), append(alphas, a)
				reads, changes, writes = append(reads, read(a)), append(changes, write(b, "bravo\n")), append(writes, write(a, "alpha\n"))
			}
			for i, answer := range work(t, w, alpha, "read them", reads...).answers() {
				if answer != "one\n" {
					t.Errorf("read on %s: %q", alphas[i], answer)
				}
			}
			for i, answer := range work(t, w, bravo, "change them", changes...).answers() {
				if got := fileText(t, onDisk(w, plains[i])); got != "bravo\n" {
					t.Errorf("after %v %s is %q: %s", changes[i].Tools[0].Args, plains[i], got, answer)
				}
			}
			for i, answer := range work(t, w, alpha, "write them", writes...).answers() {
				what := fmt.Sprintf("a write of %s, which was changed by %v", alphas[i], changes[i].Tools[0].Args)
				has(t, what, answer, "Not done: bravo changed ", "since you read it")
				if got := fileText(t, onDisk(w, plains[i])); got != "bravo\n" {
					t.Errorf("%s: the file is %q", what, got)
				}
				path := "none"
				if call := callRead.FindStringSubmatch(answer); call != nil {
					path = call[1]
				}
				rereads = append(rereads, read(path), writes[i])
			}
			for i, answer := range work(t, w, alpha, "as told", rereads...).answers() {
				if i%2 == 0 && answer != "bravo\n" {
					t.Errorf("%v, as the refusal says, was answered %q", rereads[i].Tools[0].Args, answer)
				}
				if i%2 == 1 && (!strings.HasPrefix(answer, "Successfully wrote") || strings.Contains(answer, "⚠")) {
					t.Errorf("%v after that was answered %q", rereads[i].Tools[0].Args, answer)
				}
			}
			closed(t, w)
		})
	}
}

// A name in composed and in decomposed letters is two files, and so are upper
// and lower case, where the disk tells them apart. What is read through the
// tool's own search for a decomposed name is guarded too.
func TestNamesAlike(t *testing.T) {
	t.Parallel()
	const composed, decomposed = "caf\u00e9.txt", "cafe\u0301.txt"
	w := rig.NewWorld(t)
	alpha, bravo := pair(t, w, rig.Options{}, rig.Options{})
	for _, names := range [][2]string{{composed, decomposed}, {"readme.txt", "README.txt"}, {"docs/x.txt", "Docs/x.txt"}} {
		for _, name := range names {
			if err := os.MkdirAll(filepath.Dir(inWorld(w, name)), 0o700); err != nil {
				t.Fatal(err)
			}
			w.Write(name, name+"\n")
		}
		if fileText(t, inWorld(w, names[0])) != names[0]+"\n" {
			t.Skipf("%q and %q are one file on this disk", names[0], names[1])
		}
		work(t, w, alpha, "read both", read(names[0]), read(names[1]))
		work(t, w, bravo, "change one", write("./"+names[1], "bravo\n"))
		s := work(t, w, alpha, "write both", write(names[0], "alpha\n"), write(names[1], "alpha\n"))
		has(t, "the prompt", s.told(0), "• "+names[1]+": ")
		lacks(t, "the prompt", s.told(0), "• "+names[0]+": ")
		has(t, "the write of the file that nobody changed", s.answers()[0], "Successfully wrote to "+names[0])
		lacks(t, "the write of the file that nobody changed", s.answers()[0], "⚠")
		has(t, "the write of the changed file", s.answers()[1], "Not done: bravo changed "+names[1])
		if got := fileText(t, inWorld(w, names[0])) + fileText(t, inWorld(w, names[1])); got != "alpha\nbravo\n" {
			t.Errorf("the files are %q", got)
		}
	}

	// Only the decomposed name exists: Pi's read finds it under the other.
	alone, searched := "e\u0301tude.txt", "\u00e9tude.txt"
	w.Write(alone, "one\n")
	if got := work(t, w, alpha, "read it", read(searched)).answers()[0]; got != "one\n" {
		t.Fatalf("read on the composed name: %q", got)
	}
	work(t, w, bravo, "change it", write(alone, "bravo\n"))
	answers := work(t, w, alpha, "write it", write(alone, "alpha\n")).answers()
	has(t, "the stale write", answers[0], "Not done: bravo changed "+alone)
	asTold(t, w, alpha, answers[0], "bravo\n", write(alone, "alpha\n"))
}

// A file in a folder that does not exist yet is the same file under every
// spelling, too.
func TestFolderThatDoesNotExistYet(t *testing.T) {
	t.Parallel()
	w := rig.NewWorld(t)
	places(t, w)
	alpha, bravo := pair(t, w, rig.Options{}, rig.Options{})
	// Left out is a link that leads nowhere yet: write makes no folder there.
	for i, s := range []spelling{
		{"new-0/deep/f.txt", "./new-0//deep/f.txt"},
		{"new-1/deep/f.txt", "new-1/other/../deep/f.txt"},
		{"src/new-2/deep/f.txt", "linked-folder/new-2/deep/f.txt"},
		{"new-3/deep/f.txt", "~/../work/new-3/deep/f.txt"},
		{"new-4/deep/f.txt", "file://" + w.Dir + "/new-4/deep/f.txt"},
		{w.Home + "/notes/new-5/deep/f.txt", "linked-notes/new-5/deep/f.txt"},
	} {
		first, second := s.odd, s.plain
		if i%2 == 1 {
			first, second = s.plain, s.odd
		}
		made := work(t, w, bravo, "make it", write(first, "bravo\n")).answers()[0]
		has(t, "bravo's write", made, "Successfully wrote")
		answers := work(t, w, alpha, "write it", write(second, "alpha\n"), read(second), write(second, "alpha\n")).answers()
		has(t, "a write of "+second+", which was made as "+first, answers[0], "Not done: bravo created ", "and you haven't read it")
		has(t, "the read of "+second, answers[1], "bravo\n")
		has(t, "the write of "+second+" after reading", answers[2], "Successfully wrote")
		lacks(t, "the write of "+second+" after reading", answers[2], "⚠")
		if got := fileText(t, onDisk(w, s.plain)); got != "alpha\n" {
			t.Errorf("%s is %q", s.plain, got)
		}
	}
	closed(t, w)
}
