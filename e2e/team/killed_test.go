//go:build linux

package team

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"switchboard/e2e/rig"
	"switchboard/internal/team"
)

// large is what it takes Pi's write tool long enough to write to be met in the
// middle of it: the tool writes half a megabyte at a time.
var large = strings.Repeat("0123456789abcde\n", 4<<20/16)

const before = "one\n" // what a file holds before a large write

// caught makes a Pi write a large file and stops it (SIGSTOP) in the middle of
// that. Each attempt has a file of its own: prepare makes it ready.
func caught(t *testing.T, w *rig.World, p *rig.Pi, prepare func(file string)) (file string, size int64) {
	t.Helper()
	for i := range 20 {
		file = fmt.Sprintf("large-%d.txt", i)
		w.Write(file, before)
		prepare(file)
		w.Model.Script(p.Session, write(file, large))
		p.Prompt("write " + file)
		if partial(t, p, inWorld(w, file)) {
			p.Kill(syscall.SIGSTOP)
			rig.Eventually(t, rig.Watchdog, "Pi to be stopped", func() bool { return stopped(t, p.PID) })
			if size = sizeOf(inWorld(w, file)); size > int64(len(before)) && size < int64(len(large)) {
				t.Logf("stopped with attempt %d, %d of %d bytes written", i+1, size, len(large))
				return file, size
			}
			p.Kill(syscall.SIGCONT)
		}
		p.Settled()
	}
	t.Fatal("Pi was never met in the middle of a write")
	return "", 0
}

// partial waits until a file has begun to grow and is not whole, and reports
// false if it became whole unseen.
func partial(t *testing.T, p *rig.Pi, path string) bool {
	t.Helper()
	for deadline := time.Now().Add(rig.Watchdog); time.Now().Before(deadline); runtime.Gosched() {
		switch size := sizeOf(path); {
		case size == int64(len(large)):
			return false
		case size > int64(len(before)):
			return true
		}
	}
	t.Fatal("the file does not grow")
	return false
}

func sizeOf(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return -1
	}
	return info.Size()
}

// stopped reports whether all threads of a process are stopped.
func stopped(t *testing.T, pid int) bool {
	t.Helper()
	stats, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	if err != nil || len(stats) == 0 {
		t.Fatalf("threads of %d: %v, %v", pid, stats, err)
	}
	for _, stat := range stats {
		data, err := os.ReadFile(stat)
		if err != nil {
			continue // it has ended
		}
		if state := data[bytes.LastIndexByte(data, ')')+2]; state != 'T' {
			return false
		}
	}
	return true
}

// by picks the edits of one author.
func by(callsign string, all []team.Edit) (out []team.Edit) {
	for _, e := range all {
		if e.Callsign == callsign {
			out = append(out, e)
		}
	}
	return out
}

// Pi is killed in the middle of its write tool: what it wrote by half counts as
// a change that nobody vouches for, and a peer that had read the file may not
// write over it unread. Its helper writes that down, or, when that is killed
// too, a peer's.
func TestKilledInAWrite(t *testing.T) {
	t.Parallel()
	for _, helper := range []string{"lives", "dies too"} {
		t.Run("its helper "+helper, func(t *testing.T) {
			t.Parallel()
			w := rig.NewWorld(t)
			alpha, bravo := pair(t, w, rig.Options{}, rig.Options{})
			file, size := caught(t, w, alpha, func(file string) { work(t, w, bravo, "read it", read(file)) })
			m, _ := fold(t, w).ByCallsign("alpha")
			if open := fold(t, w).OpenEdits(m.Session); len(open) != 1 || open[0].Path.Rel != file {
				t.Errorf("in the middle of the write these edits are open: %+v", open)
			}
			if helper == "lives" {
				alpha.Kill(syscall.SIGKILL)
			} else {
				killAll(alpha)
			}
			foot(t, bravo, "📡 bravo")
			if got := sizeOf(inWorld(w, file)); got != size {
				t.Errorf("the file has %d bytes now, %d when Pi was stopped", got, size)
			}
			edits := by("alpha", editsOf(t, closed(t, w), w, file))
			t.Logf("the journal tells of %+v", edits)
			if len(edits) != 1 || edits[0].Hash == "" {
				t.Fatalf("the journal tells of these edits by alpha: %+v, want one that is done", edits)
			}
			if !edits[0].Uncertain {
				t.Errorf("the journal is certain of an edit whose author was killed in it: %+v", edits[0])
			}
			s := work(t, w, bravo, "write it", write(file, "bravo\n"), read(file), write(file, "bravo\n"))
			has(t, "the prompt", s.told(0), "alpha changed a file you work with", "• "+file+": ")
			has(t, "the stale write", s.answers()[0], "Not done: alpha changed "+file, "since you read it")
			has(t, "the write after reading", s.answers()[2], "Successfully wrote")
			lacks(t, "the write after reading", s.answers()[2], "⚠")
			if got := fileText(t, inWorld(w, file)); got != "bravo\n" {
				t.Errorf("the file is %.40q", got)
			}
		})
	}
}

// A call that its human stops before the tool ran, while another extension
// holds it or asks, changes nothing: no edit stays open, and the peer is neither
// held up nor told of a change.
func TestStoppedBeforeAWrite(t *testing.T) {
	t.Parallel()
	w := rig.NewWorld(t)
	alpha, bravo := pair(t, w, rig.Options{ExtensionPaths: []string{testdata(t, "hold.ts")}}, rig.Options{})
	work(t, w, bravo, "say hello")
	for _, how := range []string{"held", "forbidden", "dialog"} {
		file := how + ".txt"
		w.Write(file, before)
		work(t, w, alpha, "read it", read(file))
		work(t, w, bravo, "continue", read(file))
		w.Model.Script("alpha", write(file, "alpha\n"))
		alpha.Prompt("work on") // a task, once
		var id string
		rig.Eventually(t, rig.Watchdog, "the edit to be open", func() bool {
			f := fold(t, w)
			m, _ := f.ByCallsign("alpha")
			open := f.OpenEdits(m.Session)
			if len(open) != 1 || open[0].Path.Rel != file || (how == "dialog" && !open[0].Parked) {
				return false
			}
			id = open[0].ID
			return true
		})
		alpha.Abort()
		alpha.Settled()
		f := closed(t, w)
		if edits := editsOf(t, f, w, file); len(edits) != 0 {
			t.Errorf("%s: the journal tells of %s: %+v", how, id, edits)
		}
		s := work(t, w, bravo, "continue", write(file, "bravo\n"))
		lacks(t, how+": bravo's prompt", s.told(0), "changed a file")
		has(t, how+": bravo's write", s.answers()[0], "Successfully wrote")
		lacks(t, how+": bravo's write", s.answers()[0], "⚠")
		// alpha's mark is as old as its read: it hears of bravo's change.
		s = work(t, w, alpha, "continue", write(file, "alpha\n"))
		has(t, how+": alpha's next prompt", s.told(0), "• "+file+": ")
		has(t, how+": alpha's next write", s.answers()[len(s.answers())-1], "Not done: bravo changed "+file)
	}
}

// A write that its human stops while the tool runs is written to its end all
// the same, though the tool says that it failed. The journal tells of it, and
// the peer is held back until it reads.
func TestStoppedInAWrite(t *testing.T) {
	t.Parallel()
	w := rig.NewWorld(t)
	alpha, bravo := pair(t, w, rig.Options{}, rig.Options{})
	file, _ := caught(t, w, alpha, func(file string) { work(t, w, bravo, "read it", read(file)) })
	id := alpha.Send(map[string]any{"type": "abort"})
	alpha.Kill(syscall.SIGCONT)
	alpha.Wait(func(e rig.Event) bool { return e.Type == "response" && e.Str("id") == id }, rig.Watchdog)
	end := alpha.Wait(rig.OfType("tool_execution_end"), rig.Watchdog)
	alpha.Settled()
	if end.Get("isError") != true {
		t.Fatalf("the write was over before it was stopped: %s", end)
	}
	if got := sizeOf(inWorld(w, file)); got != int64(len(large)) {
		t.Errorf("the tool wrote %d of %d bytes", got, len(large))
	}
	edits := by("alpha", editsOf(t, closed(t, w), w, file))
	if len(edits) != 1 || edits[0].Hash == "" {
		t.Errorf("the journal tells of these edits by alpha: %+v, want one that is done", edits)
	}
	s := work(t, w, bravo, "write it", write(file, "bravo\n"), read(file), write(file, "bravo\n"))
	has(t, "bravo's prompt", s.told(0), "alpha changed a file you work with", "• "+file+": ")
	has(t, "the stale write", s.answers()[0], "Not done: alpha changed "+file, "since you read it")
	has(t, "the write after reading", s.answers()[2], "Successfully wrote")
	lacks(t, "the write after reading", s.answers()[2], "⚠")
	// The stopped one knows what it wrote, and not what bravo wrote since.
	answers := work(t, w, alpha, "write it again", write(file, "alpha\n")).answers()
	has(t, "alpha's next write", answers[len(answers)-1], "Not done: bravo changed "+file)
}

// A dialog over an edit stays open for long: nobody waits for it. When the
// human says yes the write is made and written down; the peer's changes that it
// went over are noted to its author, and the peer is told.
func TestLongDialogSoak(t *testing.T) {
	t.Parallel()
	long := 3 * time.Second
	if os.Getenv("SOAK") != "" {
		long = time.Minute
	}
	w := rig.NewWorld(t)
	w.Write("dialog.txt", "one\ntwo\n")
	alpha, bravo := pair(t, w, rig.Options{ExtensionPaths: []string{testdata(t, "hold.ts")}}, rig.Options{})
	work(t, w, alpha, "read it", read("dialog.txt"))
	work(t, w, bravo, "read it", read("dialog.txt"))
	w.Model.Script("alpha", write("dialog.txt", "alpha\n"))
	alpha.Prompt("write it")
	dialog := alpha.Wait(func(e rig.Event) bool { return e.Type == "extension_ui_request" && e.Str("method") == "confirm" }, rig.Watchdog)
	parked := func() bool {
		f := fold(t, w)
		m, _ := f.ByCallsign("alpha")
		open := f.OpenEdits(m.Session)
		return len(open) == 1 && open[0].Parked
	}
	rig.Eventually(t, rig.Watchdog, "the edit to be parked", parked)
	// One that were waited for would end in a refusal or a note.
	n := 0
	for began := time.Now(); time.Since(began) < long || n == 0; n++ {
		s := work(t, w, bravo, "continue", edit("dialog.txt", "two", "two\ntwo"), write("dialog.txt", fmt.Sprintf("bravo %d\ntwo\n", n)))
		for _, answer := range s.answers() {
			has(t, "bravo's change while alpha's human thinks", answer, "Successfully")
			lacks(t, "bravo's change while alpha's human thinks", answer, "⚠")
		}
		if t.Failed() {
			t.FailNow()
		}
	}
	t.Logf("%d rounds of bravo's meanwhile", n)
	if !parked() {
		t.Error("the edit is not parked any more")
	}

	s := begin(w, alpha)
	alpha.Send(map[string]any{"type": "extension_ui_response", "id": dialog.Str("id"), "confirmed": true})
	alpha.Settled()
	s.end(w, alpha)
	if got := fileText(t, inWorld(w, "dialog.txt")); got != "alpha\n" {
		t.Fatalf("the file is %q: what the human said yes to was not done", got)
	}
	edits := editsOf(t, closed(t, w), w, "dialog.txt")
	if last := edits[len(edits)-1]; last.Callsign != "alpha" || last.Uncertain || len(edits) != 2 {
		t.Errorf("the journal tells of %+v, want alpha's edit last", edits)
	}
	has(t, "alpha's write", s.answers()[0], "Successfully wrote", "⚠ bravo changed dialog.txt while this write was under way")
	s = work(t, w, bravo, "continue", write("dialog.txt", "bravo\n"))
	has(t, "bravo's prompt", s.told(0), "alpha changed a file you work with", "• dialog.txt: ")
	has(t, "bravo's stale write", s.answers()[0], "Not done: alpha changed dialog.txt")
}
