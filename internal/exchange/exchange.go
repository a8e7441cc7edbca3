// Package exchange names what sessions share — records, inboxes and journals
// — and the store that holds it. Its comments are the contract that every
// store keeps; exchangetest checks it. Nothing here speaks of files, so that a
// store on a network can take the place of a directory.
package exchange

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"time"

	"switchboard/internal/delivery"
	"switchboard/internal/proc"
)

// Version is written into every record, envelope and entry. Readers ignore
// fields they don't know and leave alone what carries a larger version.
const Version = 1

// Times of the exchange.
const (
	// BeatEvery is how often an owner says that it is there.
	BeatEvery = 5 * time.Second
	// Silent is how old the last beat of a live session may be before it
	// counts as unresponsive (spec: telecom, Delivery rules).
	Silent = 45 * time.Second
	// LeaseTime is how long a session without an owner stays on the roster: a
	// reload or a restart takes less.
	LeaseTime = 10 * time.Second
	// KeepMail is how long messages wait for a session that left.
	KeepMail = 7 * 24 * time.Hour
)

// SessionKey names a session: the kind of agent that hosts it, and the id
// which that host gave it. Never a process id.
type SessionKey struct {
	Host string `json:"host"` // "pi"
	ID   string `json:"id"`
}

// PiHost is the host of Pi's sessions.
const PiHost = "pi"

var plainID = regexp.MustCompile(`^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,126}[A-Za-z0-9])?$`)

// Slug is a name for the key that is safe as a file name and in a subject:
// the id itself for an ordinary Pi session, so that other programs find its
// metadata folder.
func (k SessionKey) Slug() string {
	if !plainID.MatchString(k.ID) {
		sum := sha256.Sum256([]byte(k.ID))
		return k.prefix() + "~~" + hex.EncodeToString(sum[:16]) // no plain id has a ~
	}
	if k.Host == PiHost {
		return k.ID
	}
	return k.prefix() + "~" + k.ID
}

func (k SessionKey) prefix() string {
	if k.Host == PiHost || plainID.MatchString(k.Host) {
		return k.Host
	}
	sum := sha256.Sum256([]byte(k.Host))
	return "~" + hex.EncodeToString(sum[:16])
}

func (k SessionKey) String() string { return k.Host + "/" + k.ID }

// Record is what a session publishes about itself. Only its owner writes it.
type Record struct {
	Version     int        `json:"v"`
	Key         SessionKey `json:"session"`
	Incarnation string     `json:"incarnation"` // one stay on the roster; kept over reload and restart
	Generation  string     `json:"generation"`  // one owner process; whoever cleans up removes only its own
	Name        string     `json:"name,omitempty"`
	Cwd         string     `json:"cwd"`
	Model       string     `json:"model,omitempty"`
	Mode        string     `json:"mode,omitempty"` // tui, rpc, json, print
	File        string     `json:"file,omitempty"` // the host's session file
	State       string     `json:"state"`
	Since       time.Time  `json:"since"`   // when State began
	Agent       proc.ID    `json:"agent"`   // the process that runs the agent
	Owner       proc.ID    `json:"owner"`   // the sidecar
	Joined      time.Time  `json:"joined"`  // start of the incarnation
	Updated     time.Time  `json:"updated"` // last change of the record
	Program     string     `json:"program"` // version of Switchboard
	Wakes       bool       `json:"wakes"`   // a message can start a turn there
	Bell        string     `json:"bell,omitempty"`
	Handles     Handles    `json:"handles,omitzero"`

	Team     TeamID `json:"team,omitempty"`     // of its repository
	Callsign string `json:"callsign,omitempty"` // in that team
	Root     string `json:"root,omitempty"`     // its checkout
	Branch   string `json:"branch,omitempty"`   // checked out there
	Tool     Tool   `json:"tool,omitzero"`      // that it has been in for long
	Held     bool   `json:"held,omitempty"`     // its human stopped it, and messages from before that wait for the next prompt
}

// Tool is a call that a session is in.
type Tool struct {
	Name  string    `json:"name"`
	Since time.Time `json:"since"`
}

// Handles are where a session is seen: its place in a terminal or multiplexer.
type Handles struct {
	Workspace   string `json:"workspace,omitempty"` // cmux
	Surface     string `json:"surface,omitempty"`   // cmux
	Panel       string `json:"panel,omitempty"`     // cmux
	Pane        string `json:"pane,omitempty"`      // cmux
	TmuxPane    string `json:"tmuxPane,omitempty"`
	WeztermPane string `json:"weztermPane,omitempty"`
	KittyWindow string `json:"kittyWindow,omitempty"`
	ZellijPane  string `json:"zellijPane,omitempty"`
	TTY         string `json:"tty,omitempty"`
}

// Values lists the handles that are set.
func (h Handles) Values() Values {
	out := make(Values)
	for key, v := range map[string]string{
		"workspace": h.Workspace, "surface": h.Surface, "panel": h.Panel, "pane": h.Pane, "tmuxPane": h.TmuxPane,
		"weztermPane": h.WeztermPane, "kittyWindow": h.KittyWindow, "zellijPane": h.ZellijPane, "tty": h.TTY,
	} {
		if v != "" {
			out[key] = []string{v}
		}
	}
	return out
}

// Presence is what can be said about a session's being there.
type Presence string

// Presences of sessions on the roster.
const (
	// Live: its process runs and its owner is there, or is being replaced.
	Live Presence = "live"
	// Unresponsive: its process is stopped, or its owner has been silent.
	Unresponsive Presence = "unresponsive"
	// Gone: not on the roster any more.
	Gone Presence = "gone"
)

// Session is a record together with what the store sees of its owner.
type Session struct {
	Record
	Presence Presence
	LastBeat time.Time // wall clock; zero when unknown
	Values   Values    // what other programs contribute
}

// Envelope is one message in an inbox, as stored.
type Envelope struct {
	Version int `json:"v"`
	delivery.Message
}

// Entry is one line of a team's journal.
type Entry struct {
	Version     int             `json:"v"`
	Seq         uint64          `json:"seq"`  // one more than the entry before it, forever
	Boot        string          `json:"boot"` // which boot At belongs to
	At          time.Duration   `json:"at"`   // boot clock when stamped; never less than the entry before it in the same boot
	Wall        time.Time       `json:"wall"` // for showing, and for other machines
	Session     string          `json:"session"`
	Incarnation string          `json:"incarnation"`
	Kind        string          `json:"kind"`
	Body        json.RawMessage `json:"body,omitempty"`
}

// TeamID names a team's journal: letters, digits, '-' and '_' only.
type TeamID string

var plainTeam = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// Valid reports whether the id may name a journal.
func (t TeamID) Valid() bool { return plainTeam.MatchString(string(t)) }

// Cursor is a reader's place in a journal. The zero Cursor is the beginning.
type Cursor struct {
	Seq    uint64 // the last entry that was read
	Epoch  string // which rewrite of the journal Offset belongs to
	Offset int64  // the store's own
}

// Exchange is the place where sessions meet. All methods may be called from
// several goroutines and from several processes at once.
type Exchange interface {
	// Own makes the caller the owner of a session: the only one who may
	// publish its record and settle its messages. If another process owns it
	// the error is an *OwnedError. Ownership ends with Release or with the
	// death of the process.
	Own(key SessionKey) (Lease, error)

	// Sessions lists the sessions on the roster, Live and Unresponsive, by
	// joining time. Records of dead processes are removed on the way.
	Sessions() ([]Session, error)

	// Session looks one session up. ErrGone if it is not on the roster.
	Session(key SessionKey) (Session, error)

	// Post puts a message into a session's inbox and wakes its owner. When it
	// returns nil the message survives the death of every process. Posting the
	// same id again replaces nothing and is no error. Whether the recipient
	// lives is the caller's question: mail waits KeepMail for a resume.
	// ErrTooLarge for a message beyond delivery.MaxText or MaxMessage, as
	// EncodeEnvelope counts.
	Post(to SessionKey, m delivery.Message) error

	// Waiting lists an inbox in sending order. What cannot be read, or is of a
	// newer version, is left out and left where it is.
	Waiting(key SessionKey) ([]delivery.Message, error)

	// Contribute replaces what a publisher says about a session; without values
	// it takes all back. It shows in Sessions while the session is there.
	Contribute(key SessionKey, publisher string, values Values) error

	// Ring wakes the owners of sessions: "look again", no more. It never
	// blocks, and a lost ring is made good by the owner's own look, once a
	// second.
	Ring(keys ...SessionKey)

	// Append adds entries to a team's journal, all or none, next to each
	// other, and returns them as stamped. Seq, Boot, At and Wall are the
	// store's. ErrBusy if the journal could not be had in time.
	Append(team TeamID, entries ...Entry) ([]Entry, error)

	// Read returns the entries after a cursor, oldest first, and the cursor
	// after them. A half-written last entry is not there yet; one that cannot
	// be read is skipped.
	Read(team TeamID, after Cursor) ([]Entry, Cursor, error)

	// Rewrite replaces a journal's entries by those that keep returns, a
	// subsequence of what it was given, in which bodies may differ. What is
	// appended meanwhile stays; keep may be called again. Numbers stay, and the
	// next entry's goes on from the last ever given. Readers' cursors stay good.
	Rewrite(team TeamID, keep func([]Entry) []Entry) error
}

// Lease is the ownership of one session.
type Lease interface {
	// Generation names this ownership, unlike any other.
	Generation() string
	// Publish replaces the session's record; Version, Generation, Owner, Bell
	// and Updated are the store's.
	Publish(r Record) error
	// Published reports whether the record is still there as this owner wrote
	// it: folders get cleaned by others.
	Published() bool
	// Lost reports whether the ownership came to nothing because its place was
	// removed, so that another process can own the session too. The lease is
	// then released without a trace, and the session is to be owned anew.
	Lost() bool
	// Beat says that the owner is there. It disturbs nobody.
	Beat() error
	// Rings delivers after others wrote something for this session. It carries
	// no truth, only "look again".
	Rings() <-chan struct{}
	// Changed reports whether the inbox may have changed since the last call.
	// It may say true for no reason, never false for a settled change.
	Changed() bool
	// OnDeck publishes how many messages wait for the session's model, for
	// other programs to show. It is kept until it changes.
	OnDeck(count int) error
	// Settle removes messages from the inbox. Unknown ids are no error.
	Settle(ids ...string) error
	// Recall returns what an owner of this session remembered last; nil if
	// nothing.
	Recall() ([]byte, error)
	// Remember keeps the owner's memory for its successor.
	Remember(data []byte) error
	// Release ends the ownership. With handOver the session stays on the
	// roster for LeaseTime, so that a successor is not noticed; without, its
	// record goes at once. Mail stays in either case.
	Release(handOver bool) error
}

// Errors that callers decide by.
var (
	ErrGone     = errors.New("no such session on the roster")
	ErrTooLarge = fmt.Errorf("message too large: at most %d KB of text and %d KB in all", delivery.MaxText>>10, delivery.MaxMessage>>10)
	ErrBusy     = errors.New("the team's journal is held by a process that doesn't let go")
	// ErrIndeterminate: a message may or may not have been written.
	ErrIndeterminate = errors.New("it can't be told whether the message was written")
	ErrReleased      = errors.New("the ownership of this session was released")
)

// OwnedError says that another process owns the session.
type OwnedError struct {
	By Record // zero if its record could not be read
}

func (e *OwnedError) Error() string {
	if e.By.Agent.PID == 0 {
		return "the session is open in another process"
	}
	return fmt.Sprintf("the session is open in process %d", e.By.Agent.PID)
}
