package agent_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"switchboard/internal/agent"
	"switchboard/internal/exchange"
	"switchboard/internal/team"
)

// member is one session with its team's journal.
type member struct {
	a       *agent.Agent
	journal []exchange.Entry
	told    []string
}

// write appends entries and lets the session read them, and what comes of that.
func (m *member) write(entries ...exchange.Entry) {
	for i := range entries {
		entries[i].Seq, entries[i].Wall = uint64(len(m.journal)+1), t0
		m.journal = append(m.journal, entries[i])
	}
	m.handle(agent.JournalRead{Entries: entries}, t0)
}

func (m *member) handle(ev agent.Event, now time.Time) {
	for _, effect := range m.a.Handle(ev, now) {
		switch e := effect.(type) {
		case agent.Append:
			m.write(e.Entries...)
		case agent.Tell:
			m.told = append(m.told, e.Text)
		case agent.Next:
			m.handle(e.Event, now)
		case agent.CatchUp:
			m.handle(agent.JournalRead{}, now)
		}
	}
}

func joined(id string) exchange.Entry {
	return exchange.Entry{Session: id, Incarnation: "i", Kind: string(team.Joined), Body: team.Encode(team.Joining{})}
}

func left(id string) exchange.Entry {
	return exchange.Entry{Session: id, Incarnation: "i", Kind: string(team.Left), Body: team.Encode(team.Leaving{Session: id, Incarnation: "i"})}
}

// The human reads who came and who went, once a second in one line; not who was
// there before, and not who came and went in between (spec: telecom, Team
// briefs).
func TestHumanHearsWhoJoinedAndLeft(t *testing.T) {
	m := &member{a: owner(t)}
	m.a.Handle(agent.Placed{Place: agent.Place{Team: "team", Checkout: agent.Checkout{Root: "/repo"}}}, t0)
	m.write(joined("a"), joined("b"))
	expect := func(want ...string) {
		t.Helper()
		m.told = nil
		m.handle(agent.Ticked{}, t0)
		if !slices.Equal(m.told, want) {
			t.Errorf("told %q, want %q", m.told, want)
		}
	}
	expect() // this is charlie, and finds alpha and bravo here
	m.write(joined("d"), left("b"), left("a"), joined("e"))
	expect("📡 alpha, bravo left; alpha, delta joined")
	expect()
	m.write(joined("f"), left("f"))
	expect()
	for i := range 10 {
		m.write(joined(fmt.Sprint("many", i)))
	}
	m.told = nil
	m.handle(agent.Ticked{}, t0)
	if len(m.told) != 1 || !strings.HasSuffix(m.told[0], "and 2 more joined") {
		t.Errorf("told %q", m.told)
	}
	off, on := true, false
	m.handle(agent.Chosen{Off: &off}, t0)
	m.write(left("d"))
	expect()
	m.handle(agent.Chosen{Off: &on}, t0)
	expect()
	m.write(left("e"))
	expect("📡 alpha left")
}
