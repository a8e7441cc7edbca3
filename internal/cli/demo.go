package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"switchboard/internal/delivery"
	"switchboard/internal/exchange"
	"switchboard/internal/exchange/dirstore"
	"switchboard/internal/proc"
)

func (a *app) demoCommand() *cobra.Command {
	var fast, standIn bool
	c := &cobra.Command{
		Use:     "demo [--fast]",
		Short:   "Watch sessions talk and not overwrite each other; needs no Pi, leaves nothing behind.",
		Example: "switchboard demo",
		GroupID: peopleGroup,
		RunE: func(c *cobra.Command, _ []string) error {
			if standIn {
				return a.standIn(c.Context())
			}
			return a.demo(c.Context(), fast)
		},
	}
	c.Flags().BoolVar(&fast, "fast", false, "without pauses for reading")
	c.Flags().BoolVar(&standIn, "stand-in", false, "be the process of one of the demo's sessions")
	_ = c.Flags().MarkHidden("stand-in") // it is there
	return c
}

// standIn is what a session of the demo has for a Pi process: something with a
// process id of its own that lives until its standard input ends.
func (a *app) standIn(ctx context.Context) error {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = io.Copy(io.Discard, a.stdin)
	}()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// demo is one run of the story. After the first thing that goes wrong nothing
// more is done or told: err says what it was.
type demo struct {
	ctx     context.Context
	tell    *account
	fast    bool
	program string   // this one
	install string   // the command that puts it into Pi
	env     []string // of its children, which take part in no team
	teamEnv []string // of those that do
	dir     string   // holds all that the demo writes
	repo    string
	store   *dirstore.Store
	players []*player
	bells   map[string]bool // sockets that may lie outside dir
	began   time.Time
	calls   int
	err     error

	planner, builder, tester *player
}

func (a *app) demo(ctx context.Context, fast bool) (err error) {
	// A closed pipe and a closed terminal must not keep us from cleaning up.
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	pipe := make(chan os.Signal, 1) // with that, a write to a closed one is an error and no end
	signal.Notify(pipe, syscall.SIGPIPE)
	defer signal.Stop(pipe)
	d := &demo{ctx: ctx, tell: a.newAccount(), fast: fast, install: a.installHint(), bells: make(map[string]bool), began: time.Now()}
	defer func() { err = errors.Join(err, d.cleanUp()) }()
	if err := d.prepare(); err != nil {
		return err
	}
	return d.play()
}

// prepare makes the folders that the story happens in.
func (d *demo) prepare() (err error) {
	if d.program, err = os.Executable(); err != nil {
		return err
	}
	if d.dir, err = os.MkdirTemp("", "sb-"); err != nil {
		return err
	}
	real, err := filepath.EvalSymlinks(d.dir) // the spelling that everybody uses
	if err != nil {
		return err
	}
	d.dir, d.repo = real, filepath.Join(real, "shop")
	if err := makeRepository(d.repo, "api", "test"); err != nil {
		return err
	}
	root := filepath.Join(d.dir, "x")
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "SWITCHBOARD_") && !strings.HasPrefix(v, "PI_") {
			d.env = append(d.env, v)
		}
	}
	d.teamEnv = append(d.env, "SWITCHBOARD_DIR="+root, "PI_CODING_AGENT_DIR="+filepath.Join(d.dir, "pi"))
	d.env = append(slices.Clone(d.teamEnv), "PI_TELECOM_DISABLE=1")
	d.store, err = dirstore.Open(root, Version)
	return err
}

// makeRepository writes an empty git repository by hand, with some folders in
// it: the machine may have no git.
func makeRepository(root string, folders ...string) error {
	git := filepath.Join(root, ".git")
	for _, sub := range []string{"objects/info", "objects/pack", "refs/heads", "refs/tags"} {
		if err := os.MkdirAll(filepath.Join(git, filepath.FromSlash(sub)), 0o755); err != nil {
			return err
		}
	}
	for _, sub := range folders {
		if err := os.MkdirAll(filepath.Join(root, sub), 0o755); err != nil {
			return err
		}
	}
	head := os.WriteFile(filepath.Join(git, "HEAD"), []byte("ref: refs/heads/main\n"), 0o644)
	config := os.WriteFile(filepath.Join(git, "config"), []byte("[core]\n\trepositoryformatversion = 0\n\tbare = false\n"), 0o644)
	return errors.Join(head, config)
}

// cleanUp ends what still runs and removes what was written. It may be called
// again.
func (d *demo) cleanUp() error {
	for _, p := range d.players {
		p.abandon()
	}
	for path := range d.bells {
		_ = os.Remove(path) // a killed sidecar left it, maybe outside dir
	}
	if d.dir == "" {
		return nil
	}
	return os.RemoveAll(d.dir)
}

func (d *demo) play() error {
	d.tell.opening()
	for i, step := range []struct {
		title string
		play  func()
	}{
		{"Three sessions come up", d.meet},
		{"planner calls builder, who is idle", d.callIdle},
		{"builder is busy, so two calls wait", d.callBusy},
		{"A crash loses nothing", d.crash},
		{"Nobody overwrites what they have not read", d.edits},
		{"A wrong call gets an answer that helps", d.wrongCall},
		{"You can call, too", d.humanCalls},
		{"A clean end", d.end},
	} {
		d.pause(300 * time.Millisecond)
		if d.err == nil {
			d.tell.title(i+1, step.title)
			step.play()
		}
		if err := d.tell.failed(); err != nil {
			return err
		}
		switch {
		case d.ctx.Err() != nil:
			return d.ctx.Err()
		case d.err != nil:
			return fmt.Errorf("demo: step %d (%s): %w", i+1, step.title, d.err)
		}
	}
	return nil
}

func (d *demo) meet() {
	d.planner = d.join("planner", "6f1c02aa", d.repo)
	d.builder = d.join("builder", "b83e51d9", filepath.Join(d.repo, "api"))
	d.tester = d.join("tester", "d07a94c4", filepath.Join(d.repo, "test"))
	d.planner.begin("Who else is working here?")
	d.planner.dials(dialed{Action: "list"}, false)
}

func (d *demo) callIdle() {
	call := d.planner.dials(dialed{Action: "send", To: "builder", Message: "Please add the cart API."}, false)
	d.planner.finish()
	h := d.builder.woken()
	d.say("A turn of builder's starts by itself, and its model reads:")
	d.reads(h.Message.Content)
	d.expect(slices.Equal(h.Message.Details.IDs, []string{call}), "the turn began with %v, not with the call %s", h.Message.Details.IDs, call)
	d.builder.begins(h)
	d.builder.startTool("bash", "go test ./...")
	d.settled(d.builder, call)
}

func (d *demo) callBusy() {
	d.say("Its tool runs (%s). tester dials its id, planner its pid:", d.builder.tool)
	d.tester.begin("Check the carts, please.")
	first := d.tester.dials(dialed{Action: "send", To: d.builder.id, Message: "An unknown cart must be a 404."}, false)
	d.tester.finish()
	d.planner.begin("What does tester say?")
	second := d.planner.dials(dialed{Action: "send", To: fmt.Sprint(d.builder.pi.pid()), Message: "Do as tester says."}, false)
	d.planner.finish()
	d.waits(d.builder, "its tool still runs", first, second)
	h := d.builder.endTool()
	d.say("The tool is done, so is the turn. builder's model reads both at once:")
	d.reads(h.Message.Content)
	d.expect(same(h.Message.Details.IDs, first, second), "handed over were %v, not %s and %s", h.Message.Details.IDs, first, second)
	d.expect(!h.Continue, "a run that goes on anyway was asked for one more turn")
	d.builder.startTurn()
	d.settled(d.builder, first, second)
}

func (d *demo) crash() {
	before := d.tester.owner()
	d.tester.killSidecar()
	d.say("kill -9 of tester's sidecar (%d). Meanwhile builder calls tester:", before)
	call := d.builder.dials(dialed{Action: "send", To: "tester", Message: "It is a 404 now."}, false)
	d.builder.finish()
	d.waits(d.tester, "it has no sidecar", call)
	d.tester.startSidecar()
	h := d.tester.woken()
	d.say("A new sidecar (%d) takes over, and tester's model reads:", d.tester.owner())
	d.reads(h.Message.Content)
	d.expect(slices.Equal(h.Message.Details.IDs, []string{call}), "the turn began with %v, not with the call %s", h.Message.Details.IDs, call)
	d.tester.begins(h)
	d.tester.finish()
	d.settled(d.tester, call)
}

// edits is the story of a stale write: what bravo read is no longer there.
func (d *demo) edits() {
	const (
		before = "export function login(user) {\n  return check(user);\n}\n"
		after  = "export async function login(user) {\n  return check(user);\n}\n"
		wanted = "export async function login(user) {\n  audit(user);\n  return check(user);\n}\n"
	)
	file := filepath.Join(d.repo, "login.ts")
	d.check("write login.ts", os.WriteFile(file, []byte(before), 0o644))
	alpha := d.joinTeam("alpha", "1e6bd3a7")
	bravo := d.joinTeam("bravo", "97c0f4e2")
	d.say("Sessions of one repository are a team, with callsigns. With bravo's first prompt comes:")
	d.reads(bravo.prompted("Have login write to the audit log.").Message.Content)
	bravo.uses("read", file, nil)
	bravo.finish()

	d.say("bravo has read login.ts. Then alpha makes login async, and bravo's next prompt comes with:")
	alpha.prompted("Make login async.")
	alpha.uses("read", file, nil)
	alpha.uses("edit", file, func() error { return os.WriteFile(file, []byte(after), 0o644) })
	alpha.finish()
	h := bravo.prompted("Go on.")
	d.reads(h.Message.Content)
	d.expect(strings.Contains(h.Message.Content, "+export async"), "bravo was not told of the change")

	d.say("It goes on all the same, from what it had read before:")
	stale := func() error { return os.WriteFile(file, []byte(strings.Replace(wanted, "async ", "", 1)), 0o644) }
	refused := bravo.uses("write", file, stale)
	d.reads(refused)
	d.expect(strings.HasPrefix(refused, "Not done: "), "a write over an unread change was let through")
	d.say("So it reads the file again, and now its write goes through, with both changes.")
	bravo.uses("read", file, nil)
	said := bravo.uses("write", file, func() error { return os.WriteFile(file, []byte(wanted), 0o644) })
	d.expect(said == "", "a write after reading was answered: %s", said)
	bravo.finish()
	data, err := os.ReadFile(file)
	d.check("read login.ts", err)
	d.expect(string(data) == wanted, "login.ts holds %q", data)
}

// joinTeam brings a session up that takes part in its team, and waits until it
// has its callsign.
func (d *demo) joinTeam(callsign, id string) *player {
	p := d.joinWith(callsign, id, d.repo, d.teamEnv)
	d.until(callsign+" has its callsign", func() bool {
		return slices.ContainsFunc(d.roster(), func(s exchange.Session) bool { return s.Key == p.key() && s.Callsign == callsign })
	})
	return p
}

func (d *demo) wrongCall() {
	d.planner.begin("Ship it.")
	d.planner.dials(dialed{Action: "send", To: "deployer", Message: "Please deploy."}, true)
	d.planner.finish()
}

func (d *demo) humanCalls() {
	const text = "Well done. Nobody deploys on a Friday."
	d.say("$ switchboard send planner %q", text)
	d.say("%s", d.runs("send", "planner", text))
	h := d.planner.woken()
	d.calls++
	d.say("A turn of planner's starts, and its model reads:")
	d.reads(h.Message.Content)
	from := "From a human"
	if !proc.HasTerminal() {
		from = `From "a program in `
		d.say("This demo runs without a terminal: at one, the call would be marked as a human's.")
	}
	d.expect(strings.Contains(h.Message.Content, from) && strings.Contains(h.Message.Content, "> "+text), "the call is not marked %s…", from)
	d.planner.begins(h)
	d.planner.finish()
	d.settled(d.planner, h.Message.Details.IDs...)
}

func (d *demo) end() {
	sidecars := 0
	for _, p := range d.players {
		p.quit()
		sidecars += p.sidecars
	}
	roster := d.roster()
	d.expect(len(roster) == 0, "%d sessions are still on the roster", len(roster))
	waiting := 0
	for _, p := range d.players {
		waiting += len(d.waiting(p))
	}
	d.expect(waiting == 0, "%d messages still wait", waiting)
	d.say("All quit. On the roster: %d sessions. In the inboxes: %d messages.", len(roster), waiting)
	if d.err == nil {
		d.err = d.cleanUp()
	}
	_, err := os.Stat(d.dir)
	d.expect(errors.Is(err, os.ErrNotExist), "%s is still there", d.dir)
	for path := range d.bells {
		_, err := os.Stat(path)
		d.expect(errors.Is(err, os.ErrNotExist), "%s is still there", path)
	}
	d.say("All processes have ended, and %s is removed.", d.dir)
	if d.err == nil {
		d.tell.closing(sidecars, d.calls, time.Since(d.began), d.install)
	}
}

// settled waits until calls have left a session's inbox, which they do when
// its session file holds them, and checks that it holds each once.
func (d *demo) settled(p *player, ids ...string) {
	d.until(p.name+"'s inbox is empty", func() bool { return len(d.waiting(p)) == 0 })
	p.quiet()
	for _, id := range ids {
		n := p.inFile(id)
		d.expect(n == 1, "%s's session file holds the call %s %d times", p.name, id, n)
	}
	what := "it is in %s's session file, once"
	if len(ids) > 1 {
		what = "both are in %s's session file, once each"
	}
	d.say("Settled: "+what+"; its inbox is empty.", p.name)
}

// waits checks that exactly these calls wait for a session, and that nobody
// bothers it with them.
func (d *demo) waits(p *player, why string, ids ...string) {
	p.quiet()
	var have, from []string
	for _, m := range d.waiting(p) {
		have = append(have, m.ID)
		from = append(from, m.From.Label())
	}
	d.expect(same(have, ids...), "in %s's inbox wait %v, not %v", p.name, have, ids)
	what := "1 call waits"
	if len(have) != 1 {
		what = fmt.Sprintf("%d calls wait", len(have))
	}
	d.say("%s for %s (from %s): %s.", what, p.name, strings.Join(from, " and "), why)
}

// same compares without regard to order: two senders' clocks may show the same
// millisecond.
func same(have []string, want ...string) bool {
	slices.Sort(want)
	return slices.Equal(slices.Sorted(slices.Values(have)), want)
}

func (d *demo) waiting(p *player) []delivery.Message {
	if d.err != nil {
		return nil
	}
	ms, err := d.store.Waiting(p.key())
	d.check("read "+p.name+"'s inbox", err)
	return ms
}

func (d *demo) roster() []exchange.Session {
	if d.err != nil {
		return nil
	}
	sessions, err := d.store.Sessions()
	d.check("read the roster", err)
	for _, s := range sessions {
		if s.Bell != "" {
			d.bells[s.Bell] = true
		}
	}
	return sessions
}

// runs runs this program like a person at a shell, and returns what it says.
func (d *demo) runs(args ...string) string {
	if d.err != nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(d.ctx, patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, d.program, args...)
	cmd.Dir, cmd.Env = d.repo, d.env
	out, err := cmd.CombinedOutput()
	text := strings.TrimSpace(string(out))
	if err != nil {
		err = fmt.Errorf("%w: %s", err, text)
	}
	d.check("switchboard "+args[0], err)
	return text
}

// patience is how long anything may take before the demo has failed. Nothing
// here takes long, except on a machine that is out of breath.
const patience = 10 * time.Second

func (d *demo) say(format string, args ...any) {
	if d.err == nil {
		d.tell.line(fmt.Sprintf(format, args...))
	}
}

func (d *demo) shows(p *player, call dialed) {
	if d.err == nil {
		d.tell.call(p.name, "touchtone "+call.String())
	}
}

func (d *demo) reads(text string) {
	if d.err == nil {
		d.tell.quote(text)
		d.pause(150 * time.Millisecond)
	}
}

func (d *demo) check(what string, err error) {
	if d.err == nil && err != nil {
		d.err = fmt.Errorf("%s: %w", what, err)
	}
}

func (d *demo) expect(ok bool, format string, args ...any) {
	if d.err == nil && !ok {
		d.err = fmt.Errorf(format, args...)
	}
}

// until waits for something that others bring about.
func (d *demo) until(what string, ok func() bool) {
	deadline := time.Now().Add(patience)
	for d.err == nil && !ok() {
		if time.Now().After(deadline) {
			d.err = fmt.Errorf("waited %s in vain until %s", patience, what)
		}
		d.sleep(2 * time.Millisecond)
	}
}

// pause leaves time for reading.
func (d *demo) pause(t time.Duration) {
	if !d.fast {
		d.sleep(t)
	}
}

func (d *demo) sleep(t time.Duration) {
	if d.err != nil {
		return
	}
	select {
	case <-time.After(t):
	case <-d.ctx.Done():
		d.err = d.ctx.Err()
	}
}
