//go:build unix

package dirstore

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"switchboard/internal/delivery"
	"switchboard/internal/exchange"
)

// plant is something that lies where it should not. {id} in a name is a fresh
// message id; what holds {id} gets the same.
type plant struct {
	name string // below the folder
	make func(path string) error
	what string // what Problems says of it
}

func holding(text string) func(path string) error {
	return func(path string) error {
		id, _ := strings.CutSuffix(filepath.Base(path), ".json")
		return os.WriteFile(path, []byte(strings.ReplaceAll(text, "{id}", id)), 0o600)
	}
}

func pipe(path string) error   { return syscall.Mkfifo(path, 0o600) }
func folder(path string) error { return os.Mkdir(path, 0o700) }
func link(path string) error   { return os.Symlink("/etc/passwd", path) }
func socket(path string) error { return syscall.Mknod(path, syscall.S_IFSOCK|0o600, 0) }

const goodMail = `{"v":1,"id":"{id}","kind":"call","from":{},"text":"t","sent":"2026-07-01T12:00:00Z"}`

// In an inbox. A name can't hold a slash, so "../x.json" comes as it might be
// written down.
var mailPlants = []plant{
	{"..%2fx.json", holding(goodMail), "not a message of ours"},
	{"..\\x.json", holding(goodMail), "not a message of ours"},
	{"...json", holding(goodMail), "not a message of ours"},
	{".json", holding(goodMail), "not a message of ours"},
	{"x.json", holding(goodMail), "not a message of ours"},
	{"a\nb\x1b[2J.json", holding(goodMail), "not a message of ours"},
	{"\xff\xfe.json", holding(goodMail), "not a message of ours"},
	{strings.Repeat("n", 250) + ".json", holding(goodMail), "not a message of ours"},
	{"README", holding("x"), "not a message of ours"},
	{"{id}", holding(goodMail), "not a message of ours"},
	{"{id}.json.bak", holding(goodMail), "not a message of ours"},
	{"{id}x.json", holding(goodMail), "not a message of ours"},
	{"{lower}.json", holding(goodMail), "not a message of ours"},
	{"{id}.json", pipe, "not a message of ours"},
	{"{id}.json", folder, "not a message of ours"},
	{"{id}.json", link, "not a message of ours"},
	{"{id}.json", socket, "not a message of ours"},
	{"{id}.json", holding(""), "damaged"},
	{"{id}.json", holding(`{"v":1,"id":"{id}","kind":"ca`), "damaged"},
	{"{id}.json", holding("\xff\xfe\x00"), "damaged"},
	{"{id}.json", holding("null"), "damaged"},
	{"{id}.json", holding(`[` + goodMail + `]`), "damaged"},
	{"{id}.json", holding(goodMail + goodMail), "damaged"},
	{"{id}.json", holding(strings.Repeat("[", 20000)), "damaged"},
	{"{id}.json", holding(strings.Repeat(`{"from":`, 4000)), "damaged"},
	{"{id}.json", holding(strings.Replace(goodMail, "{id}", "01M8QAEAH1JYNV0R2YKPJRS3D5", 1)), "damaged"}, // another id
	{"{id}.json", holding(strings.Replace(goodMail, `"v":1`, `"v":0`, 1)), "damaged"},
	{"{id}.json", holding(strings.Replace(goodMail, `"v":1`, `"v":2`, 1)), "newer Switchboard (format 2"},
	{"{id}.json", holding(strings.Replace(goodMail, `"text":"t"`, `"text":5`, 1)), "damaged"},
	{"{id}.json", holding(strings.Replace(goodMail, `"text":"t"`, `"text":"`+strings.Repeat("t", delivery.MaxText+1)+`"`, 1)), "damaged"},
	{"{id}.json", holding(strings.Repeat(" ", 1<<20) + goodMail), "message over 64 KB"},
	{"{old}.json", holding(`{"half`), "damaged"},
	{"{old}.json", pipe, "not a message of ours"},
	{"{old}.json", holding(strings.Replace(goodMail, `"v":1`, `"v":2`, 1)), "newer Switchboard"},
}

const goodRecord = `{"v":1,"session":{"host":"pi","id":"{id}"},"generation":"g","cwd":"/","state":"idle","agent":{"host":"elsewhere","pid":1}}`

// Among the records.
var recordPlants = []plant{
	{"another.json", holding(strings.Replace(goodRecord, "{id}", "somebody", 1)), "another program's record"},
	{"..%2f..%2fx.json", holding(goodRecord), "another program's record"},
	{"\xff.json", holding(goodRecord), "another program's record"},
	{"newer.json", holding(strings.Replace(goodRecord, `"v":1`, `"v":2`, 1)), "newer Switchboard (format 2"},
	{"versionless.json", holding(strings.Replace(goodRecord, `"v":1,`, ``, 1)), "another program's record"},
	{"touchtone.json", holding(`{"sessionId":"touchtone","name":"original","pid":1}`), "another program's record"},
	{"no-generation.json", holding(strings.Replace(goodRecord, `"g"`, `""`, 1)), "another program's record"},
	{"empty.json", holding(""), "cannot be read as JSON"},
	{"half.json", holding(`{"v":1,"ses`), "cannot be read as JSON"},
	{"bytes.json", holding("\xff\xfe\x00"), "cannot be read as JSON"},
	{"deep.json", holding(strings.Repeat("[", 20000)), "cannot be read as JSON"},
	{"big.json", holding(strings.Repeat(" ", 1<<20) + goodRecord), "cannot be read as JSON"},
	{"pipe.json", pipe, "not a session record"},
	{"folder.json", folder, "not a session record"},
	{"link.json", link, "not a session record"},
	{"socket.json", socket, "not a session record"},
	{"notes.txt", holding("x"), "not a session record"},
}

// put makes all plants in a folder and returns their paths.
func put(t *testing.T, dir string, plants []plant) []string {
	t.Helper()
	var paths []string
	for _, p := range plants {
		id := exchange.NewID(time.Now())
		name := strings.NewReplacer("{id}", id, "{lower}", strings.ToLower(id), "{old}", oldID(id)).Replace(p.name)
		path := filepath.Join(dir, name)
		if err := p.make(path); err != nil {
			t.Fatalf("%q: %v", name, err)
		}
		paths = append(paths, path)
	}
	return paths
}

// oldID makes of an id one of a time long ago.
func oldID(id string) string { return "01J0000000" + id[10:] }

// look takes down all that can be seen of files.
func look(t *testing.T, paths []string) []string {
	t.Helper()
	var out []string
	for _, path := range paths {
		info, err := os.Lstat(path)
		if err != nil {
			out = append(out, err.Error())
			continue
		}
		state := fmt.Sprint(info.Mode(), info.ModTime())
		if info.Mode().IsRegular() {
			state += readFile(t, path)
		}
		out = append(out, state)
	}
	return out
}

// Whatever lies in the exchange that isn't ours stays as it is, blocks
// nothing, and is named by Problems.
func TestStrangersAreLeftAlone(t *testing.T) {
	s := newStore(t)
	here := publish(t, s, record("here"))
	var waiting []delivery.Message
	waiting = append(waiting, post(t, s, "here", "before"))
	away := post(t, s, "away", "before")

	type group struct {
		dir    string
		plants []plant
	}
	groups := []group{
		{filepath.Join(inboxesDir, "here"), mailPlants},
		{filepath.Join(inboxesDir, "away"), mailPlants}, // an absent session's
		{sessionsDir, recordPlants},
		{inboxesDir, []plant{{"stray.txt", holding("x"), "not an inbox"}, {"stray", link, "not an inbox"}, {"stray pipe", pipe, "not an inbox"}}},
		{journalsDir, []plant{
			{"notes.txt", holding("x"), "not a team's journal"},
			{"a b.jsonl", holding("x"), "not a team's journal"},
			{"x.jsonl", pipe, "not a team's journal"},
			{"x.lock", folder, "not a team's journal"},
		}},
		{ownersDir, []plant{
			{"notes.txt", holding("x"), "not an owner's"},
			{".lock", holding(""), "not an owner's"},
			{"x y.beat", holding("x"), "not an owner's"},
			{"x.lock", link, "not an owner's"},
			{"x.beat", folder, "not an owner's"},
		}},
		{memoryDir, []plant{{"notes.txt", holding("x"), "not a session's memory"}, {"x.json", link, "not a session's memory"}, {"\xff.json", holding("x"), "not a session's memory"}}},
		{bellsDir, []plant{
			{"{lower}.sock", holding("x"), "not a bell"}, {"x.sock", socket, "not a bell"}, {"{lower}", socket, "not a bell"}, {"{id}.sock", socket, "not a bell"},
		}},
		{"", []plant{{"notes.txt", holding("x"), "not Switchboard's"}, {"stranger", folder, "not Switchboard's"}, {"root pipe", pipe, "not Switchboard's"}}},
	}
	var paths []string
	want := make(map[string]string)
	for _, g := range groups {
		for i, path := range put(t, s.path(g.dir), g.plants) {
			paths = append(paths, path)
			rel, err := filepath.Rel(s.root, path)
			if err != nil {
				t.Fatal(err)
			}
			want[rel] = g.plants[i].what
		}
	}
	before := look(t, paths)

	begin := time.Now()
	waiting = append(waiting, post(t, s, "here", "after"))
	if !here.Changed() {
		t.Error("Changed = false after a message")
	}
	got, err := s.Waiting(key("here"))
	if err != nil || len(got) != 2 || got[0].ID != waiting[0].ID || got[1].ID != waiting[1].ID {
		t.Errorf("Waiting = %v, %v; want the two that were sent", got, err)
	}
	if got, err := s.Waiting(key("away")); err != nil || len(got) != 1 || got[0].ID != away.ID {
		t.Errorf("Waiting of the absent = %v, %v", got, err)
	}
	if all, err := s.Sessions(); err != nil || len(all) != 1 || all[0].Key != key("here") {
		t.Errorf("Sessions = %v, %v; want one", all, err)
	}
	for _, id := range []string{"another", "newer", "empty", "big", "deep"} {
		if x, err := s.Session(key(id)); err == nil {
			t.Errorf("Session(%s) = %+v", id, x)
		}
		s.Ring(key(id))
	}
	if err := here.Settle(append([]string{"../../notes", "x", ".."}, waiting[0].ID)...); err != nil {
		t.Errorf("Settle: %v", err)
	}
	if err := s.Sweep(); err != nil {
		t.Errorf("Sweep: %v", err)
	}
	problems, err := s.Problems()
	if err != nil {
		t.Fatal(err)
	}
	if took := time.Since(begin); took > deadline/2 {
		t.Errorf("all this took %s", took)
	}

	for i, state := range look(t, paths) {
		if state != before[i] {
			t.Errorf("%q was %.100q, is %.100q", paths[i], before[i], state)
		}
	}
	for _, p := range problems {
		if what, ok := want[p.Path]; !ok || !strings.Contains(p.What, what) {
			t.Errorf("Problems: %q: %s; want %q", p.Path, p.What, what)
		}
		delete(want, p.Path)
	}
	for path, what := range want {
		t.Errorf("Problems does not list %q (%s)", path, what)
	}
	// The next owner gets along with them too.
	if err := here.Release(false); err != nil {
		t.Errorf("Release: %v", err)
	}
	own(t, s, "here")
	if got, err := s.Waiting(key("here")); err != nil || len(got) != 1 {
		t.Errorf("Waiting of the next owner = %v, %v", got, err)
	}
}

// A journal that is something else is refused, at once, and is no hindrance to
// other teams.
func TestStrangeJournals(t *testing.T) {
	s := newStore(t)
	for name, make := range map[string]func(path string) error{"pipe": pipe, "folder": folder, "link": link, "socket": socket} {
		id := exchange.TeamID(name)
		path := s.journalPath(id)
		if err := make(path); err != nil {
			t.Fatal(err)
		}
		before := look(t, []string{path})
		if _, err := s.Append(id, note("x")); err == nil {
			t.Errorf("Append to a %s: no error", name)
		}
		if _, _, err := s.Read(id, exchange.Cursor{}); err == nil {
			t.Errorf("Read of a %s: no error", name)
		}
		if err := s.Rewrite(id, func(es []exchange.Entry) []exchange.Entry { return es }); err == nil {
			t.Errorf("Rewrite of a %s: no error", name)
		}
		if after := look(t, []string{path}); after[0] != before[0] {
			t.Errorf("the %s was %s, is %s", name, before[0], after[0])
		}
	}
	appendNotes(t, s, "a")
	wantJournal(t, s, "1a")
}

// A session whose files are something else has trouble; nobody else does.
func TestStrangeOwnerFiles(t *testing.T) {
	s := newStore(t)
	good := publish(t, s, record("good"))
	for name, make := range map[string]func(path string) error{"pipe": pipe, "folder": folder, "link": link} {
		for what, path := range map[string]string{
			"lock": s.lockPath(name + "-lock"), "memory": s.memoryPath(name + "-memory"), "inbox": s.inboxPath(name + "-inbox"), "record": s.recordPath(name + "-record"),
		} {
			if what == "inbox" && name == "folder" {
				continue
			}
			if err := make(path); err != nil {
				t.Fatal(err)
			}
			id := name + "-" + what
			l, err := s.Own(key(id))
			if err == nil {
				_, recallErr := l.Recall()
				if what == "memory" && recallErr == nil {
					t.Errorf("%s as memory: Recall without an error", name)
				}
				if what == "record" && name == "folder" && l.Publish(record(id)) == nil {
					t.Errorf("%s as record: Publish without an error", name)
				}
				if err := l.Release(false); err != nil {
					t.Errorf("%s as %s: Release: %v", name, what, err)
				}
			} else if what != "lock" && what != "inbox" {
				t.Errorf("%s as %s: Own: %v", name, what, err)
			}
			if err := s.Post(key(id), newMessage("x")); err == nil && what == "inbox" && name == "pipe" {
				t.Errorf("%s as inbox: Post without an error", name)
			}
		}
	}
	if all, err := s.Sessions(); len(all) != 1 || err != nil || !good.Published() {
		t.Errorf("Sessions = %v, %v; want the good one", all, err)
	}
	if text, err := os.ReadFile("/etc/passwd"); err != nil || len(text) == 0 {
		t.Errorf("what the links lead to: %d bytes, %v", len(text), err)
	}
}

func TestSweepLeavesStrangersInOwnFolders(t *testing.T) {
	s := newStore(t)
	old := time.Now().Add(-30 * 24 * time.Hour)
	strangers := []plant{{"notes.txt", holding("x"), ""}, {"x.sock", holding("no socket"), ""}, {"folder.json", folder, ""}, {"pipe.json", pipe, ""}, {"a", holding("x"), ""}}
	var paths []string
	for _, dir := range []string{memoryDir, bellsDir, ownersDir, journalsDir, metadataDir, sessionsDir} {
		paths = append(paths, put(t, s.path(dir), strangers)...)
	}
	link := s.path(memoryDir, "link.json")
	if err := os.Symlink("/etc/passwd", link); err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		if err := os.Chtimes(path, old, old); err != nil {
			t.Fatal(err)
		}
	}
	paths = append(paths, link)
	before := look(t, paths)
	if err := s.Sweep(); err != nil {
		t.Fatal(err)
	}
	for i, state := range look(t, paths) {
		if state != before[i] {
			t.Errorf("%s was %q, is %q", paths[i], before[i], state)
		}
	}
}

// A socket nobody listens at any more goes, one that somebody does stays.
func TestSweepBells(t *testing.T) {
	s := newStore(t)
	live := publish(t, s, record("live"))
	if live.bellPath == "" || filepath.Dir(live.bellPath) != s.path(bellsDir) {
		t.Fatalf("the bell is at %q", live.bellPath)
	}
	dead := s.path(bellsDir, "dead.sock")
	if err := socket(dead); err != nil {
		t.Fatal(err)
	}
	fresh := s.path(bellsDir, "fresh.sock") // bound, and about to listen
	if err := socket(fresh); err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-time.Hour)
	for _, path := range []string{live.bellPath, dead} {
		if err := os.Chtimes(path, old, old); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Sweep(); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{live.bellPath: true, dead: false, fresh: true} {
		if got := exist(path); got != want {
			t.Errorf("%s exists: %v, want %v", path, got, want)
		}
	}
	s.Ring(key("live"))
	select {
	case <-live.Rings():
	case <-time.After(deadline):
		t.Error("the live bell is dead")
	}
}
