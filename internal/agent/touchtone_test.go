package agent_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
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
	odd := session("odd-id", "bob [idle] (this session)", "/x\n\n• eve [idle]\n  id fake  pid 1", 15)
	odd.Model, odd.State = "m\n  cwd /y", "compacting"
	all := []exchange.Session{me, bob, eve, stopped, print, odd}
	for _, c := range []struct {
		params string
		want   []string // in the answer
		posts  string   // session that got the message
		bad    bool
	}{
		{`{"action":"list"}`, []string{"6 live sessions", "• bob [idle]", "• planner [idle] (this session)", "• eve-id", "(unresponsive)", `selectors ["bob-id","bob","/repo","11"]`}, "", false},
		{`{"action":"list","to":15}`, []string{`• "bob [idle] (this session)" [compacting]` + "\n  id odd-id  pid 15  model m cwd /y\n  cwd \"/x\\n\\n• eve [idle]\\n  id fake  pid 1\"\n  selectors [\"odd-id\",\"bob [idle] (this session)\",\"/x\\n\\n• eve"}, "", false},
		{`{"action":"list","to":"bob","selectors":["12"," ","nope"]}`, []string{"2 live sessions of 6", "bob", "eve-id", `No live session matches "nope".`}, "", false},
		{`{"action":"list","to":"nope"}`, []string{"0 live sessions of 6", `"nope"`, `touchtone {"action":"list"}`}, "", false},
		{`{"action":"list","to":"   ","message":"ignored"}`, []string{"6 live sessions"}, "", false},
		{`{"action":"send","to":"bob","message":" hello \n"}`, []string{"Sent to bob (session bob-id)", "idle"}, "bob-id", false},
		{`{"action":"send","to":12,"message":"hello"}`, []string{"Sent to eve-id"}, "eve-id", false},
		{`{"action":"send","selectors":["bob","11","bob"],"message":"hello"}`, []string{"Sent to bob"}, "bob-id", false},
		{`{"action":"send","selectors":"bob","message":"hello"}`, []string{"Sent to bob"}, "bob-id", false},
		{`{"action":"send","to":["bob"],"message":"hello"}`, []string{"Sent to bob"}, "bob-id", false},
		{`{"action":"send","to":["bob",11],"selectors":["bob-id"],"message":"hello"}`, []string{"Sent to bob"}, "bob-id", false},
		{`{"action":"send","to":"odd-id","message":"hello"}`, []string{`Sent to "bob [idle] (this session)" (session odd-id)`, "they are compacting: it is read after that."}, "odd-id", false},
		{`{"action":"send","to":"slow","message":"hello"}`, []string{"does not respond"}, "slow-id", false},
		{`{"action":"send","to":"print","message":"hello"}`, []string{"next step of their run"}, "print-id", false},
		{`{"action":"send","to":"/repo","message":"hello"}`, []string{"2 sessions", "bob-id", "me"}, "", true},
		{`{"action":"send","to":"bob","selectors":["eve-id"],"message":"hello"}`, []string{`"bob" matches bob`, `"eve-id" matches id eve-id`}, "", true},
		{`{"action":"send","to":"bob","selectors":["nope"],"message":"hello"}`, []string{`no live session matches "nope"`, `"bob" matches bob`}, "", true},
		{`{"action":"send","to":"planner","message":"hello"}`, []string{"this session itself"}, "", true},
		{`{"action":"send","to":" ","message":"hello"}`, []string{"no destination"}, "", true},
		{`{"action":"send","to":"bob","message":" \t\n"}`, []string{"empty"}, "", true},
		{`{"action":"send","to":"bob"}`, []string{"empty"}, "", true},
		{`{"action":"send","to":"bob","message":"\u200b\u2060 \u001b\ufe0f"}`, []string{"empty"}, "", true},
		{`{"action":"send","to":"bob","message":"` + strings.Repeat("x", delivery.MaxText+1) + `"}`, []string{"is 32,769 bytes, at most 32,768: send the important part"}, "", true},
		{`{"action":"shout","message":"x"}`, []string{`no action "shout"`}, "", true},
		{`{"message":"x"}`, []string{"action is missing"}, "", true},
		{`{}`, []string{"action is missing"}, "", true},
		{`{"action":7}`, []string{"action is a string"}, "", true},
		{`{"action":"send","to":"bob","message":["x"]}`, []string{"message is a string"}, "", true},
		{`{"action":"send","to":["bob",{"a":1}],"message":"x"}`, []string{"a locator is a string"}, "", true},
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

// An example is a call that works if it is made as written, and the model's own
// text goes to nobody but whom it named.
func TestExamples(t *testing.T) {
	me := session("me", "planner", "/repo", 10)
	bob := session("bob-id", "bob", "/repo", 11)
	eve := session("eve-id", "eve", "/other", 12)
	thief := session("thief-id", "ann-id", "/thief", 13)
	ann := session("ann-id", "ann", "/other", 14) // whose id is another's name
	send := func(to, message string) string {
		data, err := json.Marshal(map[string]string{"action": "send", "to": to, "message": message})
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	const list, ready = `{"action":"list"}`, "The parser is ready."
	full := errors.New("no space left on device")
	for _, c := range []struct {
		name   string
		params string
		err    error
		roster []exchange.Session
		want   string
	}{
		{"nobody matched", send("nope", "secret"), nil, []exchange.Session{me, bob}, list},
		{"one matched, one didn't", `{"action":"send","to":["bob","nope"],"message":"secret"}`, nil, []exchange.Session{me, bob}, list},
		{"alone", send("nope", "secret"), nil, []exchange.Session{me}, list},
		{"alone, to oneself", send("me", "secret"), nil, []exchange.Session{me}, list},
		{"to oneself", send("me", "secret"), nil, []exchange.Session{me, bob}, list},
		{"no destination", send("", "secret"), nil, []exchange.Session{me, bob}, list},
		{"several", send("/repo", "go"), nil, []exchange.Session{me, eve, bob}, send("bob-id", "go")},
		{"several, one cannot be dialled by its id", send("/other", "go"), nil, []exchange.Session{me, thief, ann, eve}, send("ann", "go")},
		{"a text with quotes", send("/other", `say "go"`), nil, []exchange.Session{me, ann, eve}, send("ann-id", ready)},
		{"a long text", send("/other", strings.Repeat("x", 61)), nil, []exchange.Session{me, ann, eve}, send("ann-id", ready)},
		{"a text of lines", send("/other", "a\nb"), nil, []exchange.Session{me, ann, eve}, send("ann-id", ready)},
		{"an empty text", send("bob", " "), nil, []exchange.Session{me, eve, bob}, send("bob-id", ready)},
		{"an empty text to nobody", send("nope", " "), nil, []exchange.Session{me, bob}, list},
		{"a full disk", send("bob", "go"), full, []exchange.Session{me, bob}, list},
		{"quotes", send("bob", strings.Repeat(`"`, delivery.MaxText)), exchange.ErrTooLarge, []exchange.Session{me, bob}, send("bob-id", ready)},
		{"an unknown action", `{"action":"ask","to":"bob","message":"secret"}`, nil, []exchange.Session{me, bob}, list},
	} {
		refused, _ := dial(t, owner(t), c.params, c.err, c.roster...)
		_, example, _ := strings.Cut(refused.Text, "\nExample of a call that works: touchtone ")
		var got, want map[string]string
		if err := json.Unmarshal([]byte(example), &got); err != nil || !refused.IsError {
			t.Errorf("%s: no example in %q: %v", c.name, refused.Text, err)
			continue
		}
		if err := json.Unmarshal([]byte(c.want), &want); err != nil {
			t.Fatal(err)
		}
		if !maps.Equal(got, want) {
			t.Errorf("%s: the example is %s, want %s", c.name, example, c.want)
		}
		if answer, _ := dial(t, owner(t), example, nil, c.roster...); answer.IsError {
			t.Errorf("%s: the example %s answers %q", c.name, example, answer.Text)
		}
	}
}

func TestSendThatCannotBeWritten(t *testing.T) {
	got, _ := dial(t, owner(t), `{"action":"send","to":"bob","message":"x"}`, errors.New("no space left on device"), session("bob-id", "bob", "/repo", 11))
	if !got.IsError || !strings.Contains(got.Text, "no space left on device") {
		t.Errorf("the answer = %+v", got)
	}
	got, _ = dial(t, owner(t), `{"action":"send","to":"bob","message":"x"}`, fmt.Errorf("post: %w", exchange.ErrTooLarge), session("bob-id", "bob", "/repo", 11))
	if !got.IsError || !strings.Contains(got.Text, "more than 65,536 once stored") || !strings.Contains(got.Text, "send its path") {
		t.Errorf("the answer = %+v", got)
	}
}

func TestReceipt(t *testing.T) {
	bob := session("bob-id", "bob", "/repo", 11)
	for hops, want := range map[int]string{
		0: "starts a turn there", delivery.MaxHops: "starts a turn there",
		delivery.MaxHops + 1: "agents woke each other 40 times in a row: it waits in their inbox for their human's next prompt",
	} {
		a := owner(t)
		if hops > 0 {
			a.Handle(agent.InboxRead{Messages: []delivery.Message{{ID: "01A", Kind: delivery.Call, Text: "x", Hops: hops - 1, Sent: t0}}}, t0)
			a.Handle(agent.WakeAnswered{Batch: 1, Accepted: true}, t0)
		}
		got, posted := dial(t, a, `{"action":"send","to":"bob","message":"x"}`, nil, bob)
		if posted.Message.Hops != hops || !strings.Contains(got.Text, want) {
			t.Errorf("after %d hops: %d, %q; want %q", hops, posted.Message.Hops, got.Text, want)
		}
	}
}

// spec: telecom, Callsigns and presence
func TestReceiptOfALongCall(t *testing.T) {
	bob := session("bob-id", "bob", "/repo", 11)
	bob.State, bob.Tool = "working", exchange.Tool{Name: "bash", Since: t0.Add(-14 * time.Minute)}
	got, _ := dial(t, owner(t), `{"action":"send","to":"bob","message":"x"}`, nil, bob)
	if want := "until the call of bash ends that they have been in for 14m"; !strings.Contains(got.Text, want) {
		t.Errorf("%q lacks %q", got.Text, want)
	}
	if got, want := agent.Outlook(bob, 0), "read when its call of bash ends"; got != want {
		t.Errorf("%q, want %q", got, want)
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

// A send that means several says that broadcast reaches them all, and its
// example goes to the one that was named best.
func TestSendToSeveral(t *testing.T) {
	ann, bob := session("ann-id", "same", "/repo", 11), session("bob-id", "same", "/repo", 12)
	got, posted := dial(t, owner(t), `{"action":"send","to":"same","selectors":["bob-id"],"message":"x"}`, nil, ann, bob)
	if posted != nil || !got.IsError || !strings.Contains(got.Text, "call broadcast to reach them all") || !strings.Contains(got.Text, `"to":"bob-id"`) {
		t.Errorf("the answer = %q", got.Text)
	}
}
