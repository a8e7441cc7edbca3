package agent

import (
	"encoding/json"
	"time"

	"switchboard/internal/delivery"
	"switchboard/internal/exchange"
	"switchboard/internal/lifecycle"
)

// Request names something that waits for a Reply. The caller makes it up.
type Request uint64

// Event is a fact that the agent is told. Events speak no host's language.
type Event interface{ isEvent() }

// The events.
type (
	// Described: what the session is called and where it is, now. It is the
	// first event, and comes again when something changed.
	Described struct{ Session Session }
	// Owned: this process owns the session from now on. Memory is what the
	// owner before it remembered, Continues that the session never left the
	// roster since; otherwise it joins as a new Incarnation.
	Owned struct {
		Memory      []byte
		Continues   bool
		Incarnation string // an id to use if it is a new one
	}
	// OwnedElsewhere: another process has the session. Until Owned comes the
	// agent neither sends nor receives.
	OwnedElsewhere struct {
		By    exchange.Record
		Stuck bool // its agent is gone: only its sidecar holds on
	}
	// Unavailable: there is no exchange to take part in, and why.
	Unavailable struct{ Why string }
	// Lived: something happened in the host, at a time by its clock; zero means
	// just now.
	Lived struct {
		Fact lifecycle.Event
		At   time.Time
	}
	// InboxRead: what waits now.
	InboxRead struct{ Messages []delivery.Message }
	// InTranscript: messages that the session's file holds.
	InTranscript struct{ IDs []string }
	// InConversation: messages that the host's conversation holds in memory.
	InConversation struct{ IDs []string }
	// BoundaryReached: the host can take messages now. Reply: *Handover.
	BoundaryReached struct {
		Req     Request
		At      Boundary
		ByHuman bool // the run that starts was asked for by a human
		Open    bool // the run goes on by itself after this boundary
		Closed  bool // the turn failed or was stopped: nothing may be handed over
		Tokens  int  // context in use; 0 when unknown
		Window  int  // size of the context; 0 when unknown
	}
	// WakeAnswered: what the host did with a Wake. Idle is whether it is idle
	// after that.
	WakeAnswered struct {
		Batch          int
		Accepted, Idle bool
	}
	// Declined: the host did not use a handover.
	Declined struct{ Batch int }
	// ToolCalled: the model calls one of our tools. Reply: ToolResult.
	ToolCalled struct {
		Req    Request
		Tool   string
		Params json.RawMessage
		Roster []exchange.Session
	}
	// Posted: how a Post went.
	Posted struct {
		Req  Request
		To   exchange.SessionKey
		ID   string // the message's
		Err  error
		Gone bool // the session left before it could hear of it
	}
	// ToolAbout: the host is about to run a tool. Reply: Verdict.
	ToolAbout struct {
		Req          Request
		CallID, Tool string
	}
	// Ticked: time passed.
	Ticked struct{}
)

func (Described) isEvent()       {}
func (Owned) isEvent()           {}
func (OwnedElsewhere) isEvent()  {}
func (Unavailable) isEvent()     {}
func (Lived) isEvent()           {}
func (InboxRead) isEvent()       {}
func (InTranscript) isEvent()    {}
func (InConversation) isEvent()  {}
func (BoundaryReached) isEvent() {}
func (WakeAnswered) isEvent()    {}
func (Declined) isEvent()        {}
func (ToolCalled) isEvent()      {}
func (Posted) isEvent()          {}
func (ToolAbout) isEvent()       {}
func (Ticked) isEvent()          {}

// Session is what the host says about itself and its conversation.
type Session struct {
	Key   exchange.SessionKey
	Name  string
	Cwd   string
	Model string
	Mode  string
	File  string
	PID   int
	Wakes bool // the host lets a message start a turn

	Handles exchange.Handles
}

// Boundary is a moment at which the host takes messages.
type Boundary string

// The boundaries.
const (
	BeforeRun    Boundary = "before-run"    // a run starts; what is handed over joins its first request
	TurnEnd      Boundary = "turn-end"      // one model response with its tool calls is done
	BeforeSettle Boundary = "before-settle" // the run is over unless something continues it
)

// Effect is something to be done.
type Effect interface{ isEffect() }

// The effects.
type (
	// Reply answers a request.
	Reply struct {
		Req   Request
		Value any // *Handover, ToolResult or Verdict
	}
	// Post puts a message into another session's inbox; Posted tells how it went.
	Post struct {
		Req     Request
		To      exchange.SessionKey
		Message delivery.Message // ID is the store's to give
	}
	// Wake asks the host to start a turn with a handover; WakeAnswered follows.
	Wake struct{ Handover Handover }
	// Settle removes messages from the inbox: they are in the transcript.
	Settle struct{ IDs []string }
	// Publish replaces the session's record.
	Publish struct{ Record exchange.Record }
	// Remember keeps the agent's memory for its successor.
	Remember struct{ Memory []byte }
	// Tell shows the human one line.
	Tell struct {
		Text string
		Bad  bool // something is wrong
	}
	// Status sets the line at the foot of the host's screen.
	Status struct{ Text string }
	// Show publishes what the session is doing, for any program to see. It
	// comes from the same state as Publish, so that the two can't disagree.
	Show struct{ View View }
)

// View is what a session shows of itself.
type View struct {
	State   lifecycle.State
	Since   time.Time
	Detail  lifecycle.Detail
	Waiting int // messages that the model has not got yet

	Joined time.Time // zero while it is not on the roster
}

func (Reply) isEffect()    {}
func (Post) isEffect()     {}
func (Wake) isEffect()     {}
func (Settle) isEffect()   {}
func (Publish) isEffect()  {}
func (Remember) isEffect() {}
func (Tell) isEffect()     {}
func (Status) isEffect()   {}
func (Show) isEffect()     {}

// Handover is a batch of messages in the form that the host stores.
type Handover struct {
	Batch    int
	Text     string
	Details  delivery.Details
	Continue bool // ask for one more turn if the run would end here
}

// ToolResult is what a tool of ours answers.
type ToolResult struct {
	Text    string `json:"text"`
	Details any    `json:"details"`
	IsError bool   `json:"isError,omitempty"`
}

// Verdict says whether a tool call may run.
type Verdict struct {
	Block  bool   `json:"block,omitempty"`
	Reason string `json:"reason,omitempty"`
}
