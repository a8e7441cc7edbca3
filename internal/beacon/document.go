// Package beacon publishes the state of one running agent where any program
// can read it: a document in a file, and a socket that answers with a fresh
// one. It is read-only; nothing that arrives here reaches the agent (spec:
// beacon).
package beacon

import (
	"time"

	"switchboard/internal/lifecycle"
)

// Schema names the format of a Document.
const Schema = "pi-beacon/v1"

// Times of a beacon.
const (
	// Heartbeat is how often an unchanged document is refreshed.
	Heartbeat = 5 * time.Second
	// Stale is how old a document may be before its instance counts as
	// crashed.
	Stale = 20 * time.Second
)

// Document is what a beacon says. Unknown values are null, never invented.
type Document struct {
	Schema       string          `json:"schema"`
	PID          int             `json:"pid"`
	State        lifecycle.State `json:"state"`
	Detail       Detail          `json:"detail"`
	Model        *string         `json:"model"`       // provider/model
	SessionFile  *string         `json:"sessionFile"` // null for a session without a file
	SessionID    string          `json:"sessionId"`
	SessionName  *string         `json:"sessionName"`
	Cwd          string          `json:"cwd"`
	ContextUsage Usage           `json:"contextUsage"`
	StartedAt    int64           `json:"startedAt"` // milliseconds since 1970
	UpdatedAt    int64           `json:"updatedAt"` // milliseconds since 1970

	Instance string  `json:"instance"`           // unlike that of any other publisher
	Socket   string  `json:"socket"`             // where the socket is: not beside the document when that path would be too long
	Since    int64   `json:"since"`              // when the state began, milliseconds since 1970
	Sessions []Other `json:"sessions,omitempty"` // other sessions in this process
	Limits   string  `json:"limits,omitempty"`   // what this host does not tell, and so neither can we
}

// Detail is what is known beside the state. Absent means unknown or not so.
type Detail struct {
	PendingMessages  bool             `json:"pendingMessages"` // something waits for the model
	PendingCount     int              `json:"pendingCount"`    // messages of ours that wait, counted by ourselves
	CompactionReason lifecycle.Reason `json:"compactionReason,omitempty"`
	WillRetry        *bool            `json:"willRetry,omitempty"` // while compacting: the failed request is repeated after it
	Attempt          int              `json:"attempt,omitempty"`   // while retrying: 1 is the first repetition
	MaxAttempts      int              `json:"maxAttempts,omitempty"`
	DelayMS          *int64           `json:"delayMs,omitempty"`
	Error            string           `json:"error,omitempty"`     // what the retry is for, one line
	Tool             string           `json:"tool,omitempty"`      // the tool that runs
	ToolSince        int64            `json:"toolSince,omitempty"` // milliseconds since 1970
	WaitingForUser   bool             `json:"waitingForUser,omitempty"`
}

// Usage is how full the context is; null where the host doesn't know.
type Usage struct {
	Tokens        *int     `json:"tokens"`
	ContextWindow *int     `json:"contextWindow"`
	Percent       *float64 `json:"percent"`
}

// Other is another session in the same process.
type Other struct {
	ID    string `json:"id"`
	Name  string `json:"name,omitempty"`
	State string `json:"state"`
}
