package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"switchboard/internal/delivery"
	"switchboard/internal/exchange"
	"switchboard/internal/exchange/dirstore"
	"switchboard/internal/proc"
	"switchboard/internal/repo"
	"switchboard/internal/team"
)

// world is a machine with a repository, a worktree of it and another
// repository, and sessions in them.
type world struct {
	t     *testing.T
	dir   string
	env   map[string]string
	store *dirstore.Store
}

func newWorld(t *testing.T) *world {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, dir: dir, env: map[string]string{"SWITCHBOARD_DIR": filepath.Join(dir, "root"), "HOME": dir, "USERPROFILE": dir, "TERM": "xterm", "NO_COLOR": "1"}}
	w.file("app/.git/HEAD", "ref: refs/heads/main\n")
	w.file("app/src/new/.keep", "")
	w.file("app/.git/worktrees/lane/HEAD", "ref: refs/heads/lane-b\n")
	w.file("app/.git/worktrees/lane/commondir", "../..\n")
	w.file("lane/.git", "gitdir: "+filepath.Join(dir, "app/.git/worktrees/lane")+"\n")
	w.file("other/.git/HEAD", "ref: refs/heads/trunk\n")
	t.Chdir(w.in("app"))
	return w
}

func (w *world) in(path string) string { return filepath.Join(w.dir, filepath.FromSlash(path)) }

func (w *world) file(path, text string) {
	w.t.Helper()
	if err := os.MkdirAll(filepath.Dir(w.in(path)), 0o700); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(w.in(path), []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// open makes the exchange: until then nobody was ever here.
func (w *world) open() *dirstore.Store {
	w.t.Helper()
	if w.store == nil {
		var err error
		if w.store, err = dirstore.Open(w.env["SWITCHBOARD_DIR"], "test"); err != nil {
			w.t.Fatal(err)
		}
	}
	return w.store
}

// session puts a session on the roster: the checkout at cwd is its place.
func (w *world) session(id, callsign, cwd string, change ...func(*exchange.Record)) exchange.Record {
	w.t.Helper()
	c, err := repo.Find(w.in(cwd))
	if err != nil {
		w.t.Fatal(err)
	}
	now := time.Now().UTC()
	r := exchange.Record{
		Key: exchange.SessionKey{Host: exchange.PiHost, ID: id}, Incarnation: "stay-" + id, Cwd: w.in(cwd), State: "idle", Since: now.Add(-200 * time.Second),
		Agent: proc.Self(), Joined: now, Wakes: true, Team: exchange.TeamID(c.Key()), Callsign: callsign, Root: c.Root, Branch: c.Branch,
	}
	for _, f := range change {
		f(&r)
	}
	lease, err := w.open().Own(r.Key)
	if err == nil {
		err = lease.Publish(r)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = lease.Release(false) })
	if r.Team != "" {
		w.write(r, team.Joined, team.Joining{Callsign: callsign})
	}
	return r
}

// write adds a line to the journal of a session's team.
func (w *world) write(r exchange.Record, kind team.Kind, body any) {
	w.t.Helper()
	e := exchange.Entry{Session: r.Key.ID, Incarnation: r.Incarnation, Kind: string(kind), Body: team.Encode(body)}
	if _, err := w.open().Append(r.Team, e); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) edit(r exchange.Record, rel string) {
	w.t.Helper()
	w.write(r, team.EditDone, team.Done{ID: rel, Path: team.Path{File: filepath.Join(r.Root, filepath.FromSlash(rel)), Root: r.Root, Rel: rel}, Hash: "h"})
}

func (w *world) post(r exchange.Record, text string, sent time.Time, hops int) {
	w.t.Helper()
	m := delivery.Message{ID: exchange.NewID(sent), Kind: delivery.Call, From: delivery.Sender{Human: true}, Text: text, Sent: sent, Hops: hops}
	if err := w.open().Post(r.Key, m); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) run(args ...string) (stdout, stderr string, code int) {
	w.t.Helper()
	var out, errs bytes.Buffer
	code = Main(args, strings.NewReader(""), &out, &errs, func(name string) string { return w.env[name] })
	return out.String(), errs.String(), code
}

// want runs a command that must succeed, and compares what it says: the parts
// of the wanted text between … have any text between them.
func (w *world) want(text string, args ...string) {
	w.t.Helper()
	out, errs, code := w.run(args...)
	parts := strings.Split(strings.ReplaceAll(text, "DIR", w.dir), "…")
	for i, p := range parts {
		parts[i] = regexp.QuoteMeta(p)
	}
	if !regexp.MustCompile(`^`+strings.Join(parts, `[^\n]*`)+`\n$`).MatchString(out) || errs != "" || code != done {
		w.t.Errorf("switchboard %q: code %d, stderr %q, stdout:\n%s\nwant:\n%s", args, code, errs, out, text)
	}
}

// refused runs a command that must fail in a certain way.
func (w *world) refused(code int, text string, args ...string) {
	w.t.Helper()
	out, errs, got := w.run(args...)
	if text = strings.ReplaceAll(text, "DIR", w.dir); got != code || out != "" || errs != text+"\n" {
		w.t.Errorf("switchboard %q: code %d, stdout %q, stderr:\n%s\nwant code %d and:\n%s", args, got, out, errs, code, text)
	}
}

// read runs a command that must succeed, and reads its JSON.
func (w *world) read(to any, args ...string) string {
	w.t.Helper()
	out, errs, code := w.run(args...)
	if err := json.Unmarshal([]byte(out), to); err != nil || code != done {
		w.t.Fatalf("switchboard %q: code %d, %v, stderr %q, stdout:\n%s", args, code, err, errs, out)
	}
	return out
}

func TestBoard_Nobody(t *testing.T) {
	w := newWorld(t)
	none := "No agent session is live on this machine."
	w.refused(done, none, "board")
	w.refused(done, none, "board", "--all")
	if out, _, code := w.run("board", "--json"); out != "[]\n" || code != done {
		t.Errorf("code %d, %q; want an empty array", code, out)
	}
	if _, err := os.Stat(w.env["SWITCHBOARD_DIR"]); err == nil {
		t.Error("asking made the folder")
	}
	w.session("id-far", "alpha", "other")
	w.refused(done, "No agent works in this repository; 1 elsewhere on this machine: switchboard board --all", "board")
	w.refused(misused, "switchboard: switchboard board takes no arguments, not \"x\"\nhint: switchboard board --help", "board", "x")
}

func TestBoard(t *testing.T) {
	w := newWorld(t)
	bravo := w.session("01a2b3c4-0000-7000-8000-0123456789ab", "bravo", "lane", func(r *exchange.Record) {
		r.State, r.Since, r.Tool = "working", time.Now().Add(-14*time.Minute), exchange.Tool{Name: "bash", Since: time.Now().Add(-12 * time.Minute)}
	})
	alpha := w.session("id-alpha", "alpha", "app")
	w.session("id-far", "alpha", "other", func(r *exchange.Record) { r.State = "compacting" })
	w.session("id-off", "", "app", func(r *exchange.Record) { r.Team, r.Name = "", "no-team" })
	w.write(bravo, team.Tasked, team.Tasking{Text: "write the session\nmigration"})
	w.edit(bravo, "src/a.go")
	w.edit(bravo, "src/b.go")

	ours := `• bravo [busy · bash 12m] on lane-b  in DIR/lane  id 456789ab
    task: write the session migration (…s ago)
    recently changed: src/b.go (…s ago), src/a.go (…s ago)`
	// The checkout where one is goes without saying.
	w.want("📡 2 agents work in this repository:\n• alpha [idle 3m] on main  id id-alpha\n"+ours, "board")
	t.Chdir(w.in("lane"))
	w.want("📡 2 agents work in this repository:\n• alpha [idle 3m] on main  in DIR/app  id id-alpha\n"+strings.Replace(ours, "  in DIR/lane", "", 1), "board")
	t.Chdir(w.in("app/src"))

	// in an agent's own shell
	w.env["PI_SESSION_ID"] = alpha.Key.ID
	w.want("📡 You are alpha on main. 1 other agent works in this repository:\n"+ours, "board")
	w.env["PI_SESSION_ID"] = bravo.Key.ID
	w.want(`📡 You are bravo on lane-b. 1 other agent works in this repository:
• alpha [idle 3m] on main  in DIR/app  id id-alpha
Your task: write the session migration (…s ago)`, "board")
	w.env["PI_SESSION_ID"] = ""

	// the whole machine: each team's journal tells of its own
	w.want("📡 4 agents work on this machine:\n• no-team [idle 3m] on main  in DIR/app  id id-off\n• alpha [idle 3m] on main  in DIR/app  id id-alpha\n"+
		"• alpha [busy · compacting] on trunk  in DIR/other  id id-far\n"+ours, "board", "--all")

	var rows []boardRow
	out := w.read(&rows, "board", "--json")
	if len(rows) != 2 || rows[0].Callsign != "alpha" || rows[0].Tool != nil || rows[0].Self || rows[0].Task != "" || !strings.Contains(out, `"changed": []`) {
		t.Errorf("board --json: %s", out)
	}
	b := rows[1]
	if b.ID != bravo.Key.ID || b.Callsign != "bravo" || b.State != "working" || b.Presence != exchange.Live || b.Tool.Name != "bash" || b.PID != os.Getpid() ||
		b.Team != bravo.Team || b.Root != w.in("lane") || b.Branch != "lane-b" || b.Task != "write the session migration" || b.TaskSince.IsZero() {
		t.Errorf("board --json: %+v", b)
	}
	if len(b.Changed) != 2 || b.Changed[0].Rel != "src/b.go" || b.Changed[0].File != w.in("lane/src/b.go") || b.Changed[0].At.IsZero() {
		t.Errorf("changed: %+v", b.Changed)
	}
	w.env["PI_SESSION_ID"] = alpha.Key.ID
	if w.read(&rows, "board", "--all", "--json"); len(rows) != 4 || !rows[1].Self || rows[2].Self {
		t.Errorf("board --all --json: %+v", rows)
	}
}

// A journal that can't be read costs tasks and changes, not the board.
func TestBoard_Damaged(t *testing.T) {
	w := newWorld(t)
	alpha := w.session("id-alpha", "alpha", "app")
	journal := filepath.Join(w.env["SWITCHBOARD_DIR"], "journals", string(alpha.Team)+".jsonl")
	if err := os.Remove(journal); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(journal, 0o700); err != nil {
		t.Fatal(err)
	}
	out, errs, code := w.run("board")
	if !strings.Contains(out, "• alpha [idle 3m]") || code != done || !strings.HasPrefix(errs, "read the team's journal: ") {
		t.Errorf("code %d, stderr %q, stdout:\n%s", code, errs, out)
	}
	if _, errs, code := w.run("log"); code != failed || !strings.HasPrefix(errs, "switchboard: read the team's journal: ") {
		t.Errorf("log: code %d, %q", code, errs)
	}
	// nor does a .git that leads nowhere
	w.file("broken/.git", "nonsense")
	t.Chdir(w.in("broken"))
	if _, errs, code := w.run("board"); code != done || !strings.Contains(errs, "broken/.git is malformed") || !strings.HasSuffix(errs, "--all\n") {
		t.Errorf("in a broken checkout: code %d, %q", code, errs)
	}
}
