package agent_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"switchboard/internal/agent"
	"switchboard/internal/delivery"
	"switchboard/internal/exchange"
	"switchboard/internal/lifecycle"
)

// host is a small model of Pi with a sidecar: an inbox, a conversation in
// memory, a session file, and the agent under test. Each part can die.
type host struct {
	t   *rapid.T
	now time.Time

	brain  *agent.Agent
	memory []byte // what the agent remembered
	req    agent.Request

	inbox  []delivery.Message
	memo   []string // ids in the conversation
	file   []string // ids in the session file
	saved  int      // how much of memo is in the file
	posted []string
	wakes  []agent.Handover // asked for, not yet answered
	run    bool
	turns  int // model requests, to see that wakes end
}

func newHost(t *rapid.T) *host {
	h := &host{t: t, now: time.Unix(1_000_000, 0)}
	h.startSidecar(nil, true)
	return h
}

// startSidecar starts a new agent, as after a crash of the old one.
func (h *host) startSidecar(memory []byte, continues bool) {
	h.brain, h.wakes = agent.New(), nil
	h.handle(agent.Described{Session: agent.Session{Key: exchange.SessionKey{Host: "pi", ID: "s"}, Wakes: true, PID: 1}})
	h.handle(agent.InConversation{IDs: slices.Clone(h.memo)})
	h.handle(agent.Lived{Fact: lifecycle.Looked{Idle: !h.run}})
	h.handle(agent.Owned{Memory: memory, Continues: continues, Incarnation: "i"})
	h.handle(agent.InTranscript{IDs: slices.Clone(h.file)})
	h.handle(agent.InboxRead{Messages: slices.Clone(h.inbox)})
}

func (h *host) handle(ev agent.Event) (reply any) {
	for _, effect := range h.brain.Handle(ev, h.now) {
		switch e := effect.(type) {
		case agent.Wake:
			h.wakes = append(h.wakes, e.Handover)
		case agent.Settle:
			for _, id := range e.IDs {
				if !slices.Contains(h.file, id) {
					h.t.Fatalf("settled %s, which is not in the session file", id)
				}
			}
			h.inbox = slices.DeleteFunc(h.inbox, func(m delivery.Message) bool { return slices.Contains(e.IDs, m.ID) })
		case agent.Remember:
			h.memory = e.Memory
		case agent.Reply:
			reply = e.Value
		}
	}
	return reply
}

// take puts a handover into the conversation.
func (h *host) take(o agent.Handover) {
	for _, id := range o.Details.IDs {
		if slices.Contains(h.memo, id) {
			h.t.Fatalf("%s was handed over twice", id)
		}
		h.memo = append(h.memo, id)
	}
}

func (h *host) save() {
	h.file = append(h.file, h.memo[h.saved:]...)
	h.saved = len(h.memo)
	h.handle(agent.InTranscript{IDs: slices.Clone(h.file)})
}

func (h *host) boundary(ev agent.BoundaryReached) (more bool) {
	h.req++
	ev.Req = h.req
	if o, _ := h.handle(ev).(*agent.Handover); o != nil {
		h.take(*o)
		return o.Continue
	}
	return false
}

func (h *host) beginRun(byHuman bool) {
	h.run = true
	h.turns++
	h.boundary(agent.BoundaryReached{At: agent.BeforeRun, ByHuman: byHuman})
}

func (h *host) endTurn(open bool) {
	if h.boundary(agent.BoundaryReached{At: agent.TurnEnd, Open: open}) || open {
		h.turns++
		return
	}
	h.settle(false)
}

func (h *host) settle(aborted bool) {
	h.run = false
	h.handle(agent.InConversation{IDs: slices.Clone(h.memo)})
	h.handle(agent.Lived{Fact: lifecycle.Settled{Aborted: aborted, Idle: true}})
}

func (h *host) answerWake() {
	o := h.wakes[0]
	h.wakes = h.wakes[1:]
	if h.run {
		h.handle(agent.WakeAnswered{Batch: o.Batch, Accepted: false, Idle: false})
		return
	}
	h.take(o)
	h.run = true
	h.handle(agent.WakeAnswered{Batch: o.Batch, Accepted: true})
	h.beginRun(false)
}

// Whatever happens in whatever order, each message reaches the session file
// once, and nothing is handed over twice.
func TestNothingLostNothingTwice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := newHost(t)
		post := func(hops int) {
			id := fmt.Sprintf("m%04d", len(h.posted))
			h.posted = append(h.posted, id)
			h.inbox = append(h.inbox, delivery.Message{ID: id, Kind: delivery.Call, Text: id, Sent: h.now, Hops: hops})
			h.handle(agent.InboxRead{Messages: slices.Clone(h.inbox)})
		}
		t.Repeat(map[string]func(*rapid.T){
			"post":  func(t *rapid.T) { post(rapid.IntRange(0, delivery.MaxHops+2).Draw(t, "hops")) },
			"clock": func(t *rapid.T) { h.now = h.now.Add(time.Duration(rapid.IntRange(1, 120).Draw(t, "s")) * time.Second) },
			"tick":  func(*rapid.T) { h.handle(agent.Ticked{}) },
			"save":  func(*rapid.T) { h.save() },
			"prompt": func(t *rapid.T) {
				if h.run {
					t.Skip("busy")
				}
				h.beginRun(true)
			},
			"turn ends": func(t *rapid.T) {
				if !h.run {
					t.Skip("idle")
				}
				h.endTurn(rapid.Bool().Draw(t, "open"))
			},
			"abort": func(t *rapid.T) {
				if !h.run {
					t.Skip("idle")
				}
				h.settle(true)
			},
			"wake": func(t *rapid.T) {
				if len(h.wakes) == 0 {
					t.Skip("nobody asked")
				}
				h.answerWake()
			},
			"sidecar dies": func(*rapid.T) { h.startSidecar(h.memory, true) },
			"host dies": func(*rapid.T) { // what was only in memory is gone with it
				h.memo = slices.Clone(h.file)
				h.saved, h.run = len(h.file), false
				h.startSidecar(h.memory, false)
			},
			"": func(t *rapid.T) {
				for i, id := range h.file {
					if slices.Contains(h.file[:i], id) {
						t.Fatalf("the file holds %s twice", id)
					}
				}
				for _, id := range h.posted {
					in := slices.ContainsFunc(h.inbox, func(m delivery.Message) bool { return m.ID == id })
					if !in && !slices.Contains(h.file, id) {
						t.Fatalf("%s is lost", id)
					}
				}
				if len(h.wakes) > 1 {
					t.Fatalf("%d wakes at once", len(h.wakes))
				}
			},
		})
		// Left alone with a human who prompts now and then, all arrives.
		for range 3 {
			h.now = h.now.Add(time.Hour)
			h.handle(agent.Ticked{})
			for range 10 {
				if len(h.wakes) > 0 {
					h.answerWake()
				}
				if h.run {
					h.endTurn(false)
				}
				h.save()
			}
			if !h.run {
				h.beginRun(true)
			}
		}
		if len(h.inbox) > 0 || len(h.file) != len(h.posted) {
			t.Fatalf("%d of %d messages arrived, %d wait", len(h.file), len(h.posted), len(h.inbox))
		}
	})
}
