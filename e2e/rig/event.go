package rig

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// Event is one line of Pi's RPC or JSON output. A line that is no JSON object
// has the type "garbage": somebody else writes into Pi's standard output.
type Event struct {
	Type string
	At   time.Duration // since the process was started
	Raw  json.RawMessage

	fields map[string]any
}

func decodeEvent(line []byte, at time.Duration) Event {
	e := Event{Type: "garbage", At: at, Raw: line}
	if json.Unmarshal(line, &e.fields) == nil {
		e.Type = e.Str("type")
	}
	return e
}

// Get returns the value at a path of keys, nil if there is none.
func (e Event) Get(path ...string) any {
	var v any = e.fields
	for _, key := range path {
		object, _ := v.(map[string]any)
		v = object[key]
	}
	return v
}

// Str returns the string at a path of keys, "" if there is none.
func (e Event) Str(path ...string) string {
	s, _ := e.Get(path...).(string)
	return s
}

// Text returns the text of the event's message, "" if it has none.
func (e Event) Text() string {
	switch c := e.Get("message", "content").(type) {
	case string:
		return c
	case []any:
		var b strings.Builder
		for _, part := range c {
			object, _ := part.(map[string]any)
			text, _ := object["text"].(string)
			b.WriteString(text)
		}
		return b.String()
	}
	return ""
}

// String is short enough to list many.
func (e Event) String() string {
	const limit = 160
	text := string(e.Raw)
	if len(text) > limit {
		text = strings.ToValidUTF8(text[:limit], "") + "…"
	}
	return fmt.Sprintf("%6d ms %s", e.At.Milliseconds(), text)
}

// OfType returns a predicate for events of a type.
func OfType(typ string) func(Event) bool {
	return func(e Event) bool { return e.Type == typ }
}

// Response is Pi's answer to a command.
type Response struct {
	Success bool
	Error   string
	Data    json.RawMessage
}

// State is Pi's answer to get_state.
type State struct {
	SessionID           string
	SessionFile         string
	SessionName         string
	IsStreaming         bool
	IsCompacting        bool
	MessageCount        int
	PendingMessageCount int
	Model               struct{ Provider, ID string }
}

// Notification is a line an extension showed to the human.
type Notification struct{ Level, Text string }
