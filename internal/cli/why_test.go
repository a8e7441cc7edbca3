package cli

import (
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"switchboard/internal/agent"
	"switchboard/internal/beacon"
	"switchboard/internal/exchange"
	"switchboard/internal/proc"
	"switchboard/internal/team"
)

func TestWhy(t *testing.T) {
	w := newWorld(t)
	w.refused(nobody, "switchboard: no live session matches \"bravo\"\nhint: switchboard board", "why", "bravo")
	w.session("id-alpha", "alpha", "app", func(r *exchange.Record) { r.Name = "two words" })
	bravo := w.session("id-bravo", "bravo", "lane", func(r *exchange.Record) {
		r.State, r.Since, r.Tool = "working", time.Now().Add(-14*time.Minute-time.Second), exchange.Tool{Name: "bash", Since: time.Now().Add(-12*time.Minute - time.Second)}
	})
	w.session("id-charlie", "charlie", "app", func(r *exchange.Record) { r.State, r.Callsign, r.Name = "compacting", "", "reviewer [idle]" })
	far := w.session("id-far", "bravo", "other", func(r *exchange.Record) { r.Since = time.Now().Add(-time.Hour - time.Second) })
	w.session("id-delta", "delta", "other", func(r *exchange.Record) { r.Wakes = false })

	w.want("alpha has been idle for 3m; nothing waits", "why", "alpha")
	w.want("alpha has been idle for 3m; nothing waits", "why", "two words")
	w.want("alpha has been idle for 3m; nothing waits", "why", " ALPHA")
	w.want("bravo has been busy for 14m, in bash for 12m; nothing waits", "why", "bravo")
	w.post(bravo, "one", time.Now(), 0)
	w.want("bravo has been busy for 14m, in bash for 12m; 1 message waits for the end of its turn", "why", "bravo")
	w.post(bravo, "two", time.Now(), 0)
	w.write(bravo, team.Tasked, team.Tasking{Text: `mend "the" cart`})
	w.want(`bravo has been busy for 14m on "mend \"the\" cart", in bash for 12m; 2 messages wait for the end of its turn`, "why", "id-bravo")
	w.want(`"reviewer [idle]" has been compacting for 3m; nothing waits`, "why", "id-charlie")

	// another team's callsign, where it is not one of ours
	w.want("delta has been idle for 3m; nothing waits", "why", "delta")
	w.want("bravo has been idle for 1h; nothing waits", "why", "id-far")
	t.Chdir(w.in("other"))
	w.want("bravo has been idle for 1h; nothing waits", "why", "bravo")
	t.Chdir(w.dir)
	out, errs, code := w.run("why", "bravo", "--json")
	if code != several || out != "" || !strings.Contains(errs, "that is 2 sessions, not one") || !strings.HasSuffix(errs, "hint: switchboard why id-bravo --json\n") {
		t.Errorf("two of one callsign: code %d, %q, %q", code, out, errs)
	}

	// idle, and yet not in
	w.post(far, "three", time.Now(), 0)
	w.want("bravo has been idle for 1h; 1 message starts a turn any moment", "why", "id-far")
	w.post(far, "four", time.Now().Add(-time.Minute), 0)
	w.post(far, "five", time.Now(), 41)
	w.want("bravo has been idle for 1h; 1 message starts a turn any moment; 1 message waits for its human's next prompt: the run was stopped; "+
		"1 message waits for its human's next prompt: agents woke each other 40 times", "why", "id-far")
	w.file("root/inboxes/id-far/01J00000000000000000000003.json", "{")
	if out, _, _ := w.run("why", "id-far"); !strings.HasSuffix(out, "; 1 message can't be read: see switchboard doctor\n") {
		t.Errorf("with a damaged message: %q", out)
	}

	var r reason
	w.read(&r, "why", "id-bravo", "--json")
	if r.ID != "id-bravo" || r.Callsign != "bravo" || r.State != "working" || r.Tool.Name != "bash" || r.Presence != exchange.Live || r.Task != `mend "the" cart` ||
		len(r.Messages) != 2 || r.Messages[0].Text != "one" || r.Messages[0].WaitsFor != agent.AwaitTurnEnd || !strings.HasPrefix(r.Text, "bravo has been busy for 14m on ") {
		t.Errorf("why --json: %+v", r)
	}

	w.refused(misused, "switchboard: why explains one agent, not 0\nhint: switchboard why --help", "why")
	w.refused(misused, "switchboard: no destination: give a locator\nhint: switchboard list", "why", " ")
	if out, _, _ := w.run("__complete", "why", "b"); strings.Count(out, "bravo\t") != 2 || !strings.Contains(out, "bravo\tbusy · bash 12m, ~/lane\n") || strings.Contains(out, "alpha") {
		t.Errorf("completion: %q", out)
	}
	if out, _, _ := w.run("__complete", "why", "bravo", ""); strings.Contains(out, "bravo") {
		t.Errorf("completion of a second: %q", out)
	}
}

func TestDoing(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		state  string
		detail beacon.Detail
		want   string
	}{
		{"working", beacon.Detail{}, "has been busy for 2m"},
		{"working", beacon.Detail{WaitingForUser: true}, "has been busy for 2m, and waits for its human to answer"},
		{"retrying", beacon.Detail{}, "has been retrying for 2m"},
		{"retrying", beacon.Detail{Attempt: 2, MaxAttempts: 3, Error: "429 slow\ndown"}, "has been retrying for 2m, attempt 2/3: 429 slow down"},
		{"idle", beacon.Detail{}, "has been idle for 2m"},
		{"dancing", beacon.Detail{}, "has been dancing for 2m"},
	} {
		s := exchange.Session{Record: exchange.Record{State: tt.state, Since: now.Add(-2 * time.Minute)}}
		got := doing(s, reason{State: tt.state}, beacon.Document{State: "retrying", Detail: tt.detail}, now)
		if got != tt.want {
			t.Errorf("doing(%s) = %q, want %q", tt.state, got, tt.want)
		}
	}
	if got := doing(exchange.Session{}, reason{State: "idle"}, beacon.Document{}, now); got != "is idle" {
		t.Errorf("since is unknown: %q", got)
	}
}

func TestSilence(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	s := exchange.Session{Record: exchange.Record{Agent: proc.Self(), Owner: proc.ID{PID: 7}}}
	if got := silence(s, now); got != "its sidecar (7) gives no sign of life" {
		t.Error(got)
	}
	s.LastBeat = now.Add(-50 * time.Second)
	if got := silence(s, now); got != "its sidecar (7) gave its last sign of life 50s ago" {
		t.Error(got)
	}
}

// An agent that shows a beacon tells more than its record does.
func TestWhy_Beacon(t *testing.T) {
	w := newWorld(t)
	w.session("id-alpha", "alpha", "app", func(r *exchange.Record) { r.State = "working" })
	w.env["PI_CODING_AGENT_DIR"] = w.in("pi")
	doc := document("id-alpha", "alpha", "working")
	doc.Detail.WaitingForUser = true
	p, err := beacon.Open(beacon.Config{Dir: filepath.Join(w.in("pi"), "beacon"), PID: doc.PID, Log: slog.New(slog.DiscardHandler)}, doc)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close(true)
	w.want("alpha has been busy for 3m, and waits for its human to answer; nothing waits", "why", "alpha")
	var r reason
	if w.read(&r, "why", "--json", "alpha"); r.Detail == nil || !r.Detail.WaitingForUser {
		t.Errorf("why --json: %+v", r)
	}
	// one that says something else is out of date
	doc.State, doc.Detail = "idle", beacon.Detail{}
	p.Update(doc)
	w.want("alpha has been busy for 3m; nothing waits", "why", "alpha")
}
