package agent_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"switchboard/internal/agent"
	"switchboard/internal/delivery"
	"switchboard/internal/exchange"
)

// cast calls touchtone broadcast; writes tells how each write goes.
func cast(t *testing.T, params string, writes map[string]agent.Posted, roster ...exchange.Session) (agent.ToolResult, []agent.Post) {
	t.Helper()
	a := owner(t)
	var posts []agent.Post
	effects := a.Handle(agent.ToolCalled{Req: 1, Tool: agent.Touchtone, Params: json.RawMessage(params), Roster: roster}, t0)
	for i := 0; i < len(effects); i++ {
		switch e := effects[i].(type) {
		case agent.Post:
			posts = append(posts, e)
			p := writes[e.To.ID]
			p.Req, p.To, p.ID = e.Req, e.To, fmt.Sprint("m-", e.To.ID)
			effects = append(effects, a.Handle(p, t0)...)
		case agent.Reply:
			return e.Value.(agent.ToolResult), posts
		}
	}
	t.Fatalf("%s: no answer", params)
	return agent.ToolResult{}, nil
}

func TestBroadcast(t *testing.T) {
	me := session("me", "planner", "/repo", 10)
	bob := session("bob-id", "bob", "/repo", 11)
	eve := session("eve-id", "eve", "/other", 12)
	eve.Values = exchange.Values{"ticket": {"E-123", "E-124"}}
	bob.Values = exchange.Values{"ticket": {"E-123"}}
	eve.State = "working"
	all := []exchange.Session{me, bob, eve}
	for _, c := range []struct {
		name, params string
		writes       map[string]agent.Posted
		posts        string
		want         []string
		bad          bool
	}{
		{
			"by a ticket", `{"action":"broadcast","selectors":["E-123"],"message":" hello "}`, nil, "bob-id eve-id",
			[]string{"in 2 of 2 inboxes", `"E-123" 2`, "bob (session bob-id): idle: starts a turn", "eve (session eve-id): read when their turn ends"},
			false,
		},
		{
			"overlapping selectors, self excluded", `{"action":"broadcast","to":"bob","selectors":["/repo","bob-id","bob"," "],"message":"hello"}`, nil, "bob-id",
			[]string{"in 1 of 1 inbox.", `"bob" 1, "/repo" 2, "bob-id" 1`, "This session matches too"},
			false,
		},
		{
			"one selector means nobody", `{"action":"broadcast","selectors":["bob","nope"],"message":"hello"}`, nil, "",
			[]string{`no live session matches "nope"`, "nothing was sent", `"bob" matches bob`},
			true,
		},
		{"only self", `{"action":"broadcast","selectors":["planner"],"message":"hello"}`, nil, "", []string{"only this session itself"}, true},
		{"no selector", `{"action":"broadcast","message":"hello"}`, nil, "", []string{"no destination"}, true},
		{"blank", `{"action":"broadcast","selectors":["bob"],"message":"\u200b "}`, nil, "", []string{"empty"}, true},
		{
			"failed and indeterminate", `{"action":"broadcast","selectors":["E-123"],"message":"hello"}`,
			map[string]agent.Posted{"bob-id": {Err: errors.New("no space left")}, "eve-id": {Err: fmt.Errorf("%w: input/output error", exchange.ErrIndeterminate)}},
			"bob-id eve-id",
			[]string{"in 0 of 2 inboxes", "NOT sent to bob (session bob-id): no space left", "perhaps sent to eve"},
			true,
		},
		{
			"one left meanwhile", `{"action":"broadcast","selectors":["E-123"],"message":"hello"}`,
			map[string]agent.Posted{"bob-id": {Gone: true}},
			"bob-id eve-id",
			[]string{"bob (session bob-id): left just now", "eve (session eve-id): read"},
			false,
		},
	} {
		got, posts := cast(t, c.params, c.writes, all...)
		var to []string
		for _, p := range posts {
			to = append(to, p.To.ID)
			if p.Message.Kind != delivery.PartyLine || p.Message.Text != "hello" || p.Message.From.Session != "me" || len(p.Message.Selectors) == 0 {
				t.Errorf("%s: posted %+v", c.name, p.Message)
			}
		}
		if strings.Join(to, " ") != c.posts {
			t.Errorf("%s: posted to %q, want %q", c.name, to, c.posts)
		}
		for _, want := range c.want {
			if !strings.Contains(got.Text, want) {
				t.Errorf("%s: the answer lacks %q:\n%s", c.name, want, got.Text)
			}
		}
		if got.IsError != c.bad {
			t.Errorf("%s: IsError = %v, want %v", c.name, got.IsError, c.bad)
		}
		if c.bad && len(posts) == 0 && !strings.Contains(got.Text, "\nExample of a call that works: touchtone {") {
			t.Errorf("%s: the error does not end in an example:\n%s", c.name, got.Text)
		}
	}
}

// What a session is sent to while it leaves is no success.
func TestSendToOneWhoLeaves(t *testing.T) {
	a := owner(t)
	effects := a.Handle(agent.ToolCalled{Req: 1, Tool: agent.Touchtone, Params: json.RawMessage(`{"action":"send","to":"bob","message":"x"}`), Roster: []exchange.Session{session("bob-id", "bob", "/repo", 11)}}, t0)
	post := effects[0].(agent.Post)
	answer := a.Handle(agent.Posted{Req: 1, To: post.To, ID: "m", Gone: true}, t0)[0].(agent.Reply).Value.(agent.ToolResult)
	if !answer.IsError || !strings.Contains(answer.Text, "left at this very moment") {
		t.Errorf("the answer = %+v", answer)
	}
}

// Handles and contributed values are shown, and dial.
func TestListShowsValues(t *testing.T) {
	eve := session("eve-id", "eve", "/other", 12)
	eve.Handles = exchange.Handles{TmuxPane: "%3", TTY: "/dev/pts/4"}
	eve.Values = exchange.Values{"ticket": {"E-123", "E-124"}, "tmuxPane": {"ignored"}}
	got, _ := dial(t, owner(t), `{"action":"list","selectors":["E-124","%3"]}`, nil, eve)
	for _, want := range []string{"1 live session of 1", "ticket E-123, E-124", "tmuxPane %3", `selectors ["eve-id","eve","/other","12","E-123","E-124","%3","/dev/pts/4"]`} {
		if !strings.Contains(got.Text, want) {
			t.Errorf("the list lacks %q:\n%s", want, got.Text)
		}
	}
}
