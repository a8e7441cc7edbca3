package rig

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"testing"
)

// Entry is one line of a session file.
type Entry struct {
	Type       string // "session", "message", "custom_message", "custom", …
	ID         string
	ParentID   string
	CustomType string
	Role       string // of a message
	Text       string // of a message or custom message
	Display    bool   // of a custom message
	Details    json.RawMessage
	Data       json.RawMessage // of a custom entry
	Raw        json.RawMessage
}

// Entries reads a session file. Pi creates it with the first message, so a
// missing one has no entries; neither has a last line still being written.
func Entries(t testing.TB, sessionFile string) []Entry {
	t.Helper()
	raw, err := os.ReadFile(sessionFile)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("rig: %v", err)
	}
	var entries []Entry
	for line := range bytes.Lines(raw) {
		if !bytes.HasSuffix(line, []byte("\n")) {
			break
		}
		var e struct {
			Entry
			Content content
			Message struct {
				Role    string
				Content content
			}
		}
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatalf("rig: %s: %v in %q", sessionFile, err, line)
		}
		e.Raw = bytes.TrimSuffix(line, []byte("\n"))
		e.Role = e.Message.Role
		e.Text = string(e.Content + e.Message.Content)
		entries = append(entries, e.Entry)
	}
	return entries
}

// content is the text of what may be a string or a list of parts.
type content string

func (c *content) UnmarshalJSON(raw []byte) error {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		*c = content(text)
		return nil
	}
	var parts []struct{ Text string }
	if err := json.Unmarshal(raw, &parts); err != nil {
		return err
	}
	for _, p := range parts {
		*c += content(p.Text)
	}
	return nil
}
