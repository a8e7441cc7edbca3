package agent

import (
	"encoding/json"
	"time"

	"switchboard/internal/delivery"
	"switchboard/internal/exchange"
	"switchboard/internal/guard"
	"switchboard/internal/lifecycle"
	"switchboard/internal/team"
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
	// Chosen: what its human chose for this session, against or with the
	// setting: to take part in the team or not. Nil is no choice.
	Chosen struct{ Off *bool }
	// Commanded: the human typed a command of ours, with these arguments. The
	// answer is a CommandResult.
	Commanded struct {
		Req  Request
		Args string
	}
	// Rewound: the conversation goes on from another place. Calls are the calls
	// of tools that work on files which it holds now.
	Rewound struct{ Calls []string }
	// Placed: where the session works. The team is the first one told.
	Placed struct{ Place Place }
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
		Asked   time.Time // by the host's clock; zero is now
		ByHuman bool      // the run that starts was asked for by a human
		Prompt  string    // what that human wrote
		Open    bool      // the run goes on by itself after this boundary
		Closed  bool      // the turn failed or was stopped: nothing may be handed over
		Tokens  int       // context in use; 0 when unknown
		Window  int       // size of the context; 0 when unknown
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
	// ToolAbout: the host is about to run a tool. Reply: Verdict. File is what is
	// there before it is read.
	ToolAbout struct {
		Req          Request
		CallID, Tool string
		Op           Op
		Path         team.Path
		Hash         string
	}
	// ToolDone: a tool ended, whatever it says of itself. Reply: Note.
	ToolDone struct {
		Req    Request
		CallID string
		Op     Op
		Path   team.Path
		Failed bool
		File   File
	}
	// JournalRead: entries of the team's journal that were not read before. The
	// first one comes when the journal has been read to its end once.
	JournalRead struct{ Entries []exchange.Entry }
	// AppendFailed: an Append wrote nothing of its entries.
	AppendFailed struct {
		Err     error
		Entries []exchange.Entry
	}
	// Checked: what a Check found.
	Checked struct{ CallID, Hash string }
	// Inspected: what an Inspect found.
	Inspected struct {
		CallID, Session string
		Path            team.Path
		File            File
	}
	// PeerSeen: what is known of another member of the team now.
	PeerSeen struct {
		Session string
		Gone    bool
		Record  exchange.Session
	}
	// Leaving: the session is about to leave the roster.
	Leaving struct{}
	// Left: what had to be done before a session leaves its team is done. The
	// agent asks for it with Next.
	Left struct{}
	// Ticked: time passed.
	Ticked struct{}
)

func (Described) isEvent()       {}
func (Rewound) isEvent()         {}
func (Placed) isEvent()          {}
func (Chosen) isEvent()          {}
func (Commanded) isEvent()       {}
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
func (ToolDone) isEvent()        {}
func (JournalRead) isEvent()     {}
func (AppendFailed) isEvent()    {}
func (Checked) isEvent()         {}
func (Inspected) isEvent()       {}
func (PeerSeen) isEvent()        {}
func (Leaving) isEvent()         {}
func (Left) isEvent()            {}
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

	Callsign string // a fixed one, by its human's setting
	Guard    guard.Mode
	NoTeam   bool // it starts in no team, by its human's setting; see Chosen
}

// Place is where a session works.
type Place struct {
	Team     exchange.TeamID // of its repository; empty while it is in none
	Checkout                 // that it was started in
	Below    string          // the folder in there, from Root, with slashes; empty at Root
	Linked   bool            // that folder was reached over a symbolic link
	Work     Checkout        // that it works in, if that is another; see Agent.WorksIn
}

// Checkout is one checkout of a repository.
type Checkout struct {
	Root   string
	Branch string // checked out there; empty when unknown
}

// Op is what a tool does to a file.
type Op string

// The operations; a tool that does anything else has none.
const (
	Reads  Op = "read"
	Edits  Op = "edit"  // changes parts of it
	Writes Op = "write" // replaces it
)

// File is what is on disk when a tool has ended.
type File struct {
	Hash    string       // empty if there is no file
	Change  guard.Change // if what was there before is known
	Created bool         // there was none before
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
		Value any // *Handover, ToolResult, Verdict, Note or CommandResult
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
	// Append writes to the team's journal and reads it: JournalRead or
	// AppendFailed follow. Quiet means that nobody else need hear of it now.
	Append struct {
		Entries []exchange.Entry
		Quiet   bool
	}
	// LookUp looks another member up; PeerSeen follows.
	LookUp struct{ Session string }
	// Ring has other sessions of the team look at once.
	Ring struct{ Sessions []string }
	// Check looks at a file before it is changed; Checked follows at once.
	Check struct {
		CallID string
		Path   team.Path
	}
	// Inspect looks at a file whose edit ended unheard; Inspected follows.
	Inspect struct {
		CallID, Session string
		Path            team.Path
	}
	// Hold says that a verdict takes up to Max, since a peer is at the file.
	Hold struct {
		CallID string
		Max    time.Duration
	}
	// Alarm asks for a Ticked after a while.
	Alarm struct{ After time.Duration }
	// Next feeds an event, after those that the effects before it bring.
	Next struct{ Event Event }
	// CatchUp reads the journal: JournalRead follows, though nothing be new.
	CatchUp struct{}
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
func (Append) isEffect()   {}
func (Ring) isEffect()     {}
func (LookUp) isEffect()   {}
func (Check) isEffect()    {}
func (Inspect) isEffect()  {}
func (Hold) isEffect()     {}
func (Alarm) isEffect()    {}
func (Next) isEffect()     {}
func (CatchUp) isEffect()  {}

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

// CommandResult is what a command of ours answers.
type CommandResult struct {
	Text string `json:"text"`
	Bad  bool   `json:"bad,omitempty"` // the command could not be done
	// Keep is a choice to keep with the conversation, for Chosen; nil if there
	// is nothing to keep.
	Keep *Choice `json:"keep,omitempty"`
}

// Choice is what a human chose for one session.
type Choice struct {
	Off bool `json:"off"` // it takes no part in the team
}

// Verdict says whether a tool call may run.
type Verdict struct {
	Block  bool   `json:"block,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// Note is what the model must know of a tool's result.
type Note struct {
	Text string `json:"text,omitempty"`
}
