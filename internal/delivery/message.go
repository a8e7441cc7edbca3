// Package delivery decides what one session's model is told of the messages
// that wait for it: when, in which manner, and within which limits. It is
// pure: the clock and the host's state are arguments, and nothing here reads
// or writes anything.
package delivery

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Limits on what one message may be, in bytes (spec: telecom, Behavior under
// failure, Errors; held to on both surfaces).
const (
	MaxText    = 32 << 10 // the text itself
	MaxMessage = 64 << 10 // the whole stored message
	maxLabel   = 120      // a sender's name or folder, once shown
)

// Kind says which surface a message came in by.
type Kind string

// The kinds of message. Unknown kinds are skipped by readers, so that a newer
// Switchboard may add some.
const (
	// Call is a touchtone message to one session.
	Call Kind = "call"
	// PartyLine is one to every session that some selectors mean.
	PartyLine Kind = "party-line"
)

// Known reports whether this version can deliver messages of kind k.
func (k Kind) Known() bool { return k == Call || k == PartyLine }

// Sender says who sent a message. It is stamped by the sending program from
// its own identity; nothing in the text can change it.
type Sender struct {
	Session string `json:"session,omitempty"` // id of the sending session; empty for a human at a shell
	Name    string `json:"name,omitempty"`    // its name when it sent
	PID     int    `json:"pid,omitempty"`     // process of the sending agent or program
	Cwd     string `json:"cwd,omitempty"`     // its working directory
	Human   bool   `json:"human,omitempty"`   // sent by a person through the switchboard program
}

// Label is what the sender is called in front of people and models: one line,
// without control characters, cut to a readable length.
func (s Sender) Label() string {
	switch {
	case s.Human:
		return "a human at this machine"
	case s.Name != "":
		return Line(s.Name, maxLabel)
	case s.Session != "":
		return Line(s.Session, maxLabel)
	}
	return "an unnamed session"
}

// Message is one message to one session.
type Message struct {
	ID    string    `json:"id"` // a ULID: ids sort in sending order
	Kind  Kind      `json:"kind"`
	From  Sender    `json:"from"`
	Text  string    `json:"text"`
	Sent  time.Time `json:"sent"`            // UTC, for showing
	Hops  int       `json:"hops,omitempty"`  // wakes by messages since a human last spoke, on the way here
	After []string  `json:"after,omitempty"` // ids of the messages that the sender had just been handed

	Selectors []string `json:"selectors,omitempty"` // of a party line: whom it went to
}

// MaxHops is how many agents in a row may be woken by one another before a
// message waits for a human's next prompt instead of starting a turn.
const MaxHops = 40

// maxAfter bounds the list of ancestors in a message.
const maxAfter = 16

// ErrNoText means that a message holds nothing that anybody could read.
var ErrNoText = errors.New("the message is empty")

// TooLongError means that a text is over MaxText, or that the message is over
// MaxMessage once it is stored.
type TooLongError struct {
	Size   int  // of the text
	More   bool // Size is all that was looked at
	Stored bool // the text would do, the stored message would not
}

func (e *TooLongError) Error() string {
	switch {
	case e.Stored:
		return fmt.Sprintf("the message is %s bytes, but more than %s once stored, where quotes, backslashes and line ends count twice", thousands(e.Size), thousands(MaxMessage))
	case e.More:
		return fmt.Sprintf("the message is more than %s bytes, at most %s", thousands(e.Size), thousands(MaxText))
	}
	return fmt.Sprintf("the message is %s bytes, at most %s", thousands(e.Size), thousands(MaxText))
}

// Shorten says what to do about a TooLongError.
const Shorten = "send the important part, or write a file and send its path"

// thousands writes a number the way people read it.
func thousands(n int) string {
	if n < 1000 {
		return strconv.Itoa(n)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}

// Prepare makes a text ready to be sent: clean, and without blanks around it.
// What nobody could read is ErrNoText, what is too long a *TooLongError.
func Prepare(text string) (string, error) {
	text = strings.TrimSpace(CleanText(text))
	if strings.IndexFunc(text, visible) < 0 {
		return "", ErrNoText
	}
	if len(text) > MaxText {
		return "", &TooLongError{Size: len(text)}
	}
	return text, nil
}

// visible reports whether a rune leaves a mark that can be read.
func visible(r rune) bool {
	return !unicode.IsSpace(r) && r != 0x2800 && // 0x2800 is Braille without a dot
		!unicode.In(r, unicode.Cc, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// sequences are a terminal's commands without a text of their own: colours,
// cursors.
var sequences = regexp.MustCompile("\x1b\\[[0-?]*[ -/]*[@-~]")

// CleanText makes text that came from elsewhere safe to show: valid UTF-8,
// line ends as \n, and no control, escape or invisible direction characters
// except newline and tab.
func CleanText(s string) string {
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\uFFFD")
	}
	s = strings.ReplaceAll(s, "\r\n", "\n")
	if strings.ContainsRune(s, 0x1b) {
		s = sequences.ReplaceAllString(s, "") // without their ends nothing of a colour stays
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r == '\r':
			return '\n'
		case r == '\u2028' || r == '\u2029':
			return '\n'
		case unsafe(r):
			return -1
		}
		return r
	}, s)
}

// Line flattens s to one line of at most limit bytes, cut at a rune boundary
// with an ellipsis.
func Line(s string, limit int) string {
	s = strings.Join(strings.Fields(CleanText(s)), " ")
	if len(s) <= limit {
		return s
	}
	if limit < len("…") {
		return ""
	}
	cut := limit - len("…")
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}

// unsafe reports runes that move the cursor, change colours or reorder text.
func unsafe(r rune) bool {
	if unicode.IsControl(r) {
		return true
	}
	switch {
	case r >= 0x202A && r <= 0x202E, r >= 0x2066 && r <= 0x2069: // bidirectional overrides
		return true
	case r == 0x200E || r == 0x200F || r == 0x061C || r == 0xFEFF:
		return true
	case r >= 0xE0000 && r <= 0xE007F: // tag characters: text that no human sees
		return true
	}
	return false
}
