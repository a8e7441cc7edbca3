// Package pihost is Switchboard's side of Pi: it translates between the
// extension's JSON-RPC and the agent's events, reads Pi's session file, and
// installs the extension. docs/protocol.md describes the conversation.
package pihost

import (
	"encoding/json"

	"switchboard/internal/agent"
	"switchboard/internal/delivery"
)

// Protocol is the version of the conversation between extension and sidecar.
// Fields and events are added without changing it; it grows when either side
// would misunderstand the other.
const Protocol = 1

// MessageType is the custom type of our messages in a Pi session.
const MessageType = "switchboard"

// hello is the extension's first request.
type hello struct {
	Protocol int    `json:"protocol"`
	Version  string `json:"version"` // of the extension
	Session  struct {
		ID   string `json:"id"`
		File string `json:"file,omitempty"`
		Name string `json:"name,omitempty"`
	} `json:"session"`
	Cwd       string   `json:"cwd"`
	Model     string   `json:"model,omitempty"`
	Mode      string   `json:"mode"`
	PID       int      `json:"pid"`
	Idle      bool     `json:"idle"`
	Since     int64    `json:"since,omitempty"`     // when it became idle, or no longer was: milliseconds since 1970
	InContext []string `json:"inContext,omitempty"` // ids of our messages that the conversation holds

	StartedAt int64         `json:"startedAt"`        // of Pi, milliseconds since 1970
	Now       snapshot      `json:"now"`              // of this moment
	Open      []hostEvent   `json:"open,omitempty"`   // what began and has not ended yet
	Retry     retrySettings `json:"retry"`            // Pi's settings
	Limits    string        `json:"limits,omitempty"` // what this Pi does not tell
	Choice    *agent.Choice `json:"choice,omitempty"` // of its human's, on this branch of the conversation
}

// welcome answers hello.
type welcome struct {
	Protocol int      `json:"protocol"`
	Version  string   `json:"version"`           // of the program
	Problem  string   `json:"problem,omitempty"` // why nothing will work; told to the human
	Hooks    []string `json:"hooks"`             // tools whose calls are to be asked about
	Commands []word   `json:"commands"`          // what may follow /telecom
}

// hostEvent is a notification: something happened in Pi. Which fields are set
// depends on Type, the name that Pi gives it.
type hostEvent struct {
	Type      string   `json:"type"`
	Idle      bool     `json:"idle"`
	Error     bool     `json:"error,omitempty"`
	Aborted   bool     `json:"aborted,omitempty"`
	Reason    string   `json:"reason,omitempty"`
	WillRetry bool     `json:"willRetry,omitempty"`
	Summary   bool     `json:"summary,omitempty"`
	CallID    string   `json:"callId,omitempty"`
	Tool      string   `json:"tool,omitempty"`
	Name      string   `json:"name,omitempty"`
	Model     string   `json:"model,omitempty"`
	InContext []string `json:"inContext,omitempty"`

	At      int64     `json:"at,omitempty"`      // when it was, milliseconds since 1970
	After   string    `json:"after,omitempty"`   // look: the event that it follows directly
	Leaf    string    `json:"leaf,omitempty"`    // look: type of the conversation's last entry
	Message string    `json:"message,omitempty"` // look: the error of the last message
	Now     *snapshot `json:"now,omitempty"`

	Choice *agent.Choice `json:"choice,omitempty"` // session_tree: as in hello
	Calls  []string      `json:"calls"`            // session_tree: of hooked tools, on this branch; null from an older extension
}

// word completes a command.
type word struct {
	Name string `json:"name"`
	What string `json:"what"`
}

// command runs what the human typed; the answer is an agent.CommandResult.
type command struct {
	Args string `json:"args"`
}

// boundary asks what is due at a moment when Pi takes messages.
type boundary struct {
	At      string   `json:"at"` // before-run, turn-end, before-settle
	ByHuman bool     `json:"byHuman,omitempty"`
	Open    bool     `json:"open,omitempty"`
	Closed  bool     `json:"closed,omitempty"`
	Prompt  string   `json:"prompt,omitempty"` // what the human wrote, when a run starts with it
	Now     snapshot `json:"now"`
	WaitMS  int      `json:"waitMs"` // how long the extension waits for the answer
	SentAt  int64    `json:"sentAt"` // when it asked, milliseconds since 1970
}

// handover is a message for Pi's conversation: the answer to boundary, and the
// parameter of wake.
type handover struct {
	Batch    int     `json:"batch"`
	Message  message `json:"message"`
	Continue bool    `json:"continue,omitempty"`
}

// message is what Pi stores as a custom message.
type message struct {
	CustomType string           `json:"customType"`
	Content    string           `json:"content"`
	Display    bool             `json:"display"`
	Details    delivery.Details `json:"details"`
}

// woken is what the extension did with a wake. It is a notification and not an
// answer, so that it keeps its place among the events.
type woken struct {
	Batch    int  `json:"batch"`
	Accepted bool `json:"accepted"`
	Idle     bool `json:"idle"`
}

// declined says that a handover came too late to be used.
type declined struct {
	Batch int `json:"batch"`
}

// toolRun is a call of one of our tools by the model.
type toolRun struct {
	Tool   string          `json:"tool"`
	CallID string          `json:"callId"`
	Params json.RawMessage `json:"params"`
}

// toolCall asks whether a tool of Pi's may run.
type toolCall struct {
	Tool   string `json:"tool"`
	CallID string `json:"callId"`
	Path   string `json:"path,omitempty"` // as the model wrote it
	WaitMS int    `json:"waitMs"`
	SentAt int64  `json:"sentAt"`
}

// toolDone says that a tool of Pi's ended; the answer is what its result must
// say besides.
type toolDone struct {
	Tool   string `json:"tool"`
	CallID string `json:"callId"`
	Path   string `json:"path,omitempty"` // after other extensions may have changed it
	Failed bool   `json:"failed,omitempty"`
	WaitMS int    `json:"waitMs"`
	SentAt int64  `json:"sentAt"`
}

// hold says that the answer to a toolCall takes up to MS milliseconds.
type hold struct {
	CallID string `json:"callId"`
	MS     int64  `json:"ms"`
}

// bye is the extension's last notification.
type bye struct {
	Reason string `json:"reason"` // quit, reload, new, resume, fork
}

// tell shows the human a line; status sets the one at the foot of the screen.
type (
	tell struct {
		Text  string `json:"text"`
		Level string `json:"level"` // info, warning
	}
	status struct {
		Text string `json:"text"`
	}
	// deck says how many messages wait for the model.
	deck struct {
		Count int `json:"count"`
	}
)
