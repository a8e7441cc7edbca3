package dirstore

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"switchboard/internal/bell"
	"switchboard/internal/exchange"
)

// tree takes down what lies below a folder.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := make(map[string]string)
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		out[path] = info.Mode().String() + info.ModTime().String()
		if info.Mode().IsRegular() {
			out[path] += readFile(t, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Looking at a root that isn't there makes nothing.
func TestInspectNothing(t *testing.T) {
	dir := t.TempDir()
	root := filepath.Join(dir, "a", "b")
	r, err := Inspect(root)
	if err != nil || r.Root != root || r.Exists || r.Store != nil {
		t.Errorf("Inspect = %+v, %v", r, err)
	}
	if all := tree(t, dir); len(all) != 1 {
		t.Errorf("it made %v", all)
	}
}

// Looking at all that is there changes nothing.
func TestLookingChangesNothing(t *testing.T) {
	s := newStore(t)
	live := publish(t, s, record("live"))
	publish(t, s, record("dead")).die()
	age(t, s, "dead", time.Hour)
	first, second := sentAgo(t, s, "dead", time.Hour), sentAgo(t, s, "dead", time.Minute)
	post(t, s, "live", "x")
	writeFile(t, s.path(inboxesDir, "dead", first.ID+".txt"), "no message")
	own(t, s, "silent") // an inbox and no record
	for _, name := range []string{metadataDir, memoryDir, journalsDir} {
		if err := os.Remove(s.path(name)); err != nil {
			t.Fatal(err)
		}
	}
	writeFile(t, s.path("stranger"), "x")
	before := tree(t, s.root)

	r, err := Inspect(s.root)
	if err != nil || !r.Exists || r.Open || r.Store == nil {
		t.Fatalf("Inspect = %+v, %v", r, err)
	}
	all, err := r.Store.Folders()
	if err != nil || len(all) != len(folders) {
		t.Errorf("Folders = %v, %v", all, err)
	}
	for _, f := range all {
		if missing := !exists(s.path(f.Name)); f.Missing != missing || f.Loose {
			t.Errorf("Folders has %+v; missing is %v", f, missing)
		}
	}
	sessions, err := r.Store.Census()
	if err != nil || len(sessions) != 2 || sessions[0].Key != key("live") || sessions[0].Presence != exchange.Live ||
		sessions[1].Key != key("dead") || sessions[1].Presence != exchange.Gone {
		t.Errorf("Census = %+v, %v", sessions, err)
	}
	boxes, err := r.Store.Mailboxes()
	if err != nil || len(boxes) != 3 {
		t.Fatalf("Mailboxes = %+v, %v; want three", boxes, err)
	}
	for _, box := range boxes {
		want := map[string]Mailbox{
			"dead":   {Slug: "dead", Messages: 2, Oldest: sentAt(first.ID)},
			"live":   {Slug: "live", Messages: 1, Oldest: box.Oldest, Live: true},
			"silent": {Slug: "silent"},
		}[box.Slug]
		if box != want {
			t.Errorf("Mailboxes has %+v, want %+v", box, want)
		}
	}
	if !sentAt(first.ID).Before(sentAt(second.ID)) {
		t.Error("the first message is not the older one")
	}
	problems, err := r.Store.Problems()
	if err != nil || len(problems) != 2 || problems[0].Path != filepath.Join(inboxesDir, "dead", first.ID+".txt") || problems[1].Path != "stranger" {
		t.Errorf("Problems = %v, %v; want two", problems, err)
	}
	if after := tree(t, s.root); !maps.Equal(before, after) {
		t.Errorf("there was %v\nthere is %v", before, after)
	}

	// Whereas the roster is made by cleaning up.
	if roster, err := s.Sessions(); err != nil || len(roster) != 1 || exists(s.recordPath("dead")) || !live.Published() {
		t.Errorf("Sessions = %+v, %v; want the live one, and the record of the dead one removed", roster, err)
	}
}

func TestLongestBell(t *testing.T) {
	s := newStore(t)
	own(t, s, "a")
	r, err := Inspect(s.root)
	if err != nil {
		t.Fatal(err)
	}
	path, place, err := r.LongestBell()
	if err != nil || filepath.Dir(path) != s.path(bellsDir) {
		t.Errorf("LongestBell = %q, %q, %v", path, place, err)
	}
	real, err := s.bellPath(exchange.NewID(time.Now()))
	if err != nil || len(real) != len(place) || filepath.Dir(real) != filepath.Dir(place) {
		t.Errorf("LongestBell is put at %q, a bell at %q, %v", place, real, err)
	}
	long := Report{Root: filepath.Join(s.root, strings.Repeat("long", 30))}
	path, place, err = long.LongestBell()
	if err != nil || len(path) < bell.MaxPath || (len(place) < bell.MaxPath) != bell.Sockets {
		t.Errorf("LongestBell of a long root = %q, %q, %v", path, place, err)
	}
}
