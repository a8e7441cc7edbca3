package agent_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"switchboard/internal/agent"
	"switchboard/internal/delivery"
	"switchboard/internal/exchange"
	"switchboard/internal/lifecycle"
	"switchboard/internal/proc"
)

var t0 = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func session(id, name, cwd string, pid int) exchange.Session {
	return exchange.Session{Presence: exchange.Live, Record: exchange.Record{
		Key: exchange.SessionKey{Host: "pi", ID: id}, Name: name, Cwd: cwd, State: "idle", Wakes: true, Agent: proc.ID{PID: pid},
	}}
}

func owner(t *testing.T) *agent.Agent {
	t.Helper()
	a := agent.New()
	a.Handle(agent.Described{Session: agent.Session{Key: exchange.SessionKey{Host: "pi", ID: "me"}, Name: "planner", Cwd: "/repo", PID: 10, Wakes: true}}, t0)
	a.Handle(agent.Owned{Incarnation: "i"}, t0)
	return a
}

// dial calls the tool and returns its answer, with what was posted on the way.
func dial(t *testing.T, a *agent.Agent, params string, postErr error, roster ...exchange.Session) (agent.ToolResult, *agent.Post) {
	t.Helper()
	var posted *agent.Post
	effects := a.Handle(agent.ToolCalled{Req: 1, Tool: agent.Touchtone, Params: json.RawMessage(params), Roster: roster}, t0)
	for i := 0; i < len(effects); i++ {
		switch e := effects[i].(type) {
		case agent.Post:
			posted = &e
			effects = append(effects, a.Handle(agent.Posted{Req: e.Req, ID: "01J", Err: postErr}, t0)...)
		case agent.Reply:
			return e.Value.(agent.ToolResult), posted
		}
	}
	t.Fatalf("%s: no answer", params)
	return agent.ToolResult{}, nil
}

func TestTouchtone(t *testing.T) {
	me := session("me", "planner", "/repo", 10)
	bob := session("bob-id", "bob", "/repo", 11)
	eve := session("eve-id", "", "/other", 12)
	stopped := session("slow-id", "slow", "/slow", 13)
	stopped.Presence = exchange.Unresponsive
	print := session("print-id", "print", "/print", 14)
	print.Wakes, print.State = false, "working"
	all := []exchange.Session{me, bob, eve, stopped, print}
	for _, c := range []struct {
		params string
		want   []string // in the answer
		posts  string   // session that got the message
		bad    bool
	}{
		{`{"action":"list"}`, []string{"5 live sessions", "• bob [idle]", "• planner [idle] (this session)", "• eve-id", "(unresponsive)", `selectors ["bob-id","bob","/repo","11"]`}, "", false},
		{`{"action":"list","to":"bob","selectors":["12"," ","nope"]}`, []string{"2 live sessions of 5", "bob", "eve-id", `No live session matches "nope".`}, "", false},
		{`{"action":"list","to":"nope"}`, []string{"0 live sessions of 5", `"nope"`, `touchtone {"action":"list"}`}, "", false},
		{`{"action":"list","to":"   ","message":"ignored"}`, []string{"5 live sessions"}, "", false},
		{`{"action":"send","to":"bob","message":" hello \n"}`, []string{"Sent to bob (session bob-id)", "idle"}, "bob-id", false},
		{`{"action":"send","to":12,"message":"hello"}`, []string{"Sent to eve-id"}, "eve-id", false},
		{`{"action":"send","selectors":["bob","11","bob"],"message":"hello"}`, []string{"Sent to bob"}, "bob-id", false},
		{`{"action":"send","selectors":"bob","message":"hello"}`, []string{"Sent to bob"}, "bob-id", false},
		{`{"action":"send","to":"slow","message":"hello"}`, []string{"does not respond"}, "slow-id", false},
		{`{"action":"send","to":"print","message":"hello"}`, []string{"next step of their run"}, "print-id", false},
		{`{"action":"send","to":"/repo","message":"hello"}`, []string{"2 sessions", "bob-id", "me"}, "", true},
		{`{"action":"send","to":"bob","selectors":["eve-id"],"message":"hello"}`, []string{`"bob" matches bob`, `"eve-id" matches id eve-id`}, "", true},
		{`{"action":"send","to":"bob","selectors":["nope"],"message":"hello"}`, []string{`no live session matches "nope"`, `"bob" matches bob`}, "", true},
		{`{"action":"send","to":"planner","message":"hello"}`, []string{"this session itself"}, "", true},
		{`{"action":"send","to":" ","message":"hello"}`, []string{"no destination"}, "", true},
		{`{"action":"send","to":"bob","message":" \t\n"}`, []string{"empty"}, "", true},
		{`{"action":"send","to":"bob"}`, []string{"empty"}, "", true},
		{`{"action":"send","to":"bob","message":"` + strings.Repeat("x", delivery.MaxText+1) + `"}`, []string{"more than 32 KB"}, "", true},
		{`{"action":"shout","message":"x"}`, []string{`no action "shout"`}, "", true},
		{`{"message":"x"}`, []string{"action is missing"}, "", true},
		{`{"action":"send","to":{"a":1},"message":"x"}`, []string{"a locator is a string"}, "", true},
		{`[]`, []string{"can't be read"}, "", true},
	} {
		name := c.params[:min(len(c.params), 80)]
		got, posted := dial(t, owner(t), c.params, nil, all...)
		for _, want := range c.want {
			if !strings.Contains(got.Text, want) {
				t.Errorf("%s: the answer lacks %q:\n%s", name, want, got.Text)
			}
		}
		if got.IsError != c.bad {
			t.Errorf("%s: IsError = %v, want %v", name, got.IsError, c.bad)
		}
		if c.bad && !strings.Contains(got.Text, "\nExample of a call that works: touchtone {\"action\":") {
			t.Errorf("%s: the error does not end in an example:\n%s", name, got.Text)
		}
		switch {
		case posted == nil && c.posts != "", posted != nil && posted.To.ID != c.posts:
			t.Errorf("%s: posted %+v, want to %q", name, posted, c.posts)
		case posted != nil && (posted.Message.From != delivery.Sender{Session: "me", Name: "planner", PID: 10, Cwd: "/repo"}):
			t.Errorf("%s: sent by %+v", name, posted.Message.From)
		case posted != nil && strings.TrimSpace(posted.Message.Text) != posted.Message.Text:
			t.Errorf("%s: the text was not trimmed: %q", name, posted.Message.Text)
		}
	}
}

// An example must be a call that works if it is made as written.
func TestExampleWorks(t *testing.T) {
	bob := session("bob-id", "bob", "/repo", 11)
	refused, _ := dial(t, owner(t), `{"action":"send","to":"nope","message":"say \"<b>\" & go\nnow"}`, nil, bob)
	_, example, ok := strings.Cut(refused.Text, "touchtone {")
	if !ok {
		t.Fatalf("no example in %q", refused.Text)
	}
	if got, posted := dial(t, owner(t), "{"+example, nil, bob); got.IsError || posted.To.ID != "bob-id" {
		t.Errorf("the example {%s answers %q", example, got.Text)
	}
}

func TestSendThatCannotBeWritten(t *testing.T) {
	got, _ := dial(t, owner(t), `{"action":"send","to":"bob","message":"x"}`, errors.New("no space left on device"), session("bob-id", "bob", "/repo", 11))
	if !got.IsError || !strings.Contains(got.Text, "no space left on device") {
		t.Errorf("the answer = %+v", got)
	}
}

func TestToolWithoutSession(t *testing.T) {
	for _, c := range []struct {
		event agent.Event
		want  string
	}{
		{agent.Described{}, "still connecting"},
		{agent.Unavailable{Why: "no root"}, "switchboard is off: no root"},
		{agent.OwnedElsewhere{By: exchange.Record{Agent: proc.ID{PID: 77}}}, "also open in process 77"},
	} {
		a := agent.New()
		a.Handle(c.event, t0)
		got, posted := dial(t, a, `{"action":"send","to":"bob","message":"x"}`, nil, session("bob-id", "bob", "/repo", 11))
		if !got.IsError || posted != nil || !strings.Contains(got.Text, c.want) {
			t.Errorf("%T: the answer = %q", c.event, got.Text)
		}
	}
}

// A message carries one hop more than the call that woke its sender, and none
// once a human has spoken.
func TestHops(t *testing.T) {
	bob := session("bob-id", "bob", "/repo", 11)
	hops := func(a *agent.Agent) int {
		_, posted := dial(t, a, `{"action":"send","to":"bob","message":"x"}`, nil, bob)
		return posted.Message.Hops
	}
	a := owner(t)
	if got := hops(a); got != 0 {
		t.Errorf("hops without a call = %d", got)
	}
	in := []delivery.Message{{ID: "01A", Kind: delivery.Call, Text: "x", Hops: 4, Sent: t0}}
	a.Handle(agent.InboxRead{Messages: in}, t0) // wakes
	a.Handle(agent.WakeAnswered{Batch: 1, Accepted: true}, t0)
	if got := hops(a); got != 5 {
		t.Errorf("hops after a call with 4 = %d, want 5", got)
	}
	a.Handle(agent.Lived{Fact: lifecycle.Settled{Idle: true}}, t0)
	a.Handle(agent.BoundaryReached{Req: 2, At: agent.BeforeRun, ByHuman: true}, t0)
	if got := hops(a); got != 0 {
		t.Errorf("hops after a human's prompt = %d", got)
	}
}
