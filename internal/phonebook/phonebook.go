// Package phonebook finds sessions by any value they advertise. It is pure:
// it works on a roster that somebody else has read.
package phonebook

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Entry is one live session as others may find it.
type Entry struct {
	ID    string `json:"id"`              // session id, exact
	Name  string `json:"name,omitempty"`  // session name; empty when it has none
	PID   int    `json:"pid"`             // process of the agent
	Cwd   string `json:"cwd"`             // working directory
	Model string `json:"model,omitempty"` // provider/model; empty when unknown
	State string `json:"state,omitempty"` // idle, working, …
	Note  string `json:"note,omitempty"`  // what a caller should know before dialling, such as "unresponsive"
	Self  bool   `json:"self,omitempty"`  // the caller itself
	// Values are what else dials it: handles and what other programs contribute.
	Values map[string][]string `json:"values,omitempty"`
}

// Locators lists every string that dials the entry, without blanks and
// repetitions (spec: touchtone, Tool reference).
func (e Entry) Locators() []string {
	var out []string
	add := func(s string) {
		if strings.TrimSpace(s) != "" && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	add(e.ID)
	add(e.Name)
	add(e.Cwd)
	if e.PID > 0 {
		add(strconv.Itoa(e.PID))
	}
	for _, key := range slices.Sorted(maps.Keys(e.Values)) {
		for _, v := range e.Values[key] {
			add(v)
		}
	}
	return out
}

// Selectors is Locators as a JSON array to copy from.
func (e Entry) Selectors() string { return List(e.Locators()) }

// Shown lists the further values that dial the entry, with their keys, on one
// line; "" without any.
func (e Entry) Shown() string {
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(e.Values)) {
		shown := make([]string, len(e.Values[key]))
		for i, v := range e.Values[key] {
			shown[i] = Show(v)
		}
		parts = append(parts, Show(key)+" "+strings.Join(shown, ", "))
	}
	return strings.Join(parts, "  ")
}

// Label names the entry for people and models, as Show does: its name, else
// its id.
func (e Entry) Label() string {
	if e.Name != "" {
		return Show(e.Name)
	}
	return Show(e.ID)
}

// Show writes a value that a session chose, on one line and not too long. It
// stands in quotes unless it is made of what names and paths are made of: a
// session called "bob [idle] (this session)" must not pass for what we say.
func Show(s string) string {
	cut := s
	for i := range s {
		if i > maxShown {
			cut = s[:i] + "…"
			break
		}
	}
	if s == "" || strings.ContainsFunc(s, odd) || strings.TrimSpace(s) != s || strings.Contains(s, "  ") {
		return strconv.Quote(cut)
	}
	return cut
}

// maxShown is how many bytes of a value are shown; its selector has them all.
const maxShown = 200

// odd reports whether r is seldom part of a name or path. Brackets, quotes,
// commas and semicolons are what our own sentences are made of.
func odd(r rune) bool {
	return !unicode.In(r, unicode.L, unicode.N, unicode.M) && !strings.ContainsRune(" -_./\\:~+@#%=", r)
}

// Book is a roster.
type Book []Entry

// Match is what one locator found.
type Match struct {
	Locator string
	Entries []Entry // empty when it matches no live session
}

// Look matches each locator against the roster; blank ones are dropped and
// repeated ones count once. A locator equals a value exactly.
func (b Book) Look(locators []string) []Match {
	var out []Match
	seen := make(map[string]bool)
	for _, l := range locators {
		if strings.TrimSpace(l) == "" || seen[l] {
			continue
		}
		seen[l] = true
		m := Match{Locator: l}
		for _, e := range b {
			if slices.Contains(e.Locators(), l) {
				m.Entries = append(m.Entries, e)
			}
		}
		out = append(out, m)
	}
	return out
}

// Filter returns the entries that any of the matches found, in roster order,
// and the locators that found nobody.
func (b Book) Filter(matches []Match) (found Book, unmatched []string) {
	hit := make(map[string]bool)
	for _, m := range matches {
		if len(m.Entries) == 0 {
			unmatched = append(unmatched, m.Locator)
		}
		for _, e := range m.Entries {
			hit[e.ID] = true
		}
	}
	for _, e := range b {
		if hit[e.ID] {
			found = append(found, e)
		}
	}
	return found, unmatched
}

// One resolves locators to the one session they mean together: each must
// match, and their union must be exactly one. Errors are *NobodyError,
// *SeveralError or ErrNoLocator.
func (b Book) One(locators []string) (Entry, error) {
	found, matches, err := b.Union(locators)
	switch {
	case err != nil:
		return Entry{}, err
	case len(found) > 1:
		return Entry{}, &SeveralError{Matches: matches, Found: found}
	}
	return found[0], nil
}

// Union resolves locators to all the sessions that any of them means; each must
// mean somebody. Errors are *NobodyError or ErrNoLocator.
func (b Book) Union(locators []string) (found Book, matches []Match, err error) {
	matches = b.Look(locators)
	if len(matches) == 0 {
		return nil, nil, ErrNoLocator
	}
	found, unmatched := b.Filter(matches)
	if len(unmatched) > 0 {
		return nil, nil, &NobodyError{Unmatched: unmatched, Matches: matches, Book: b}
	}
	return found, matches, nil
}

// Dial returns the first of an entry's locators that means it alone.
func (b Book) Dial(e Entry) (locator string, ok bool) {
	for _, l := range e.Locators() {
		if to, err := b.One([]string{l}); err == nil && to.ID == e.ID {
			return l, true
		}
	}
	return "", false
}

// ErrNoLocator says that no locator, or only blank ones, were given.
var ErrNoLocator = fmt.Errorf("no destination: give a locator")

// NobodyError says that locators matched no live session.
type NobodyError struct {
	Unmatched []string
	Matches   []Match
	Book      Book // everybody who could have been meant
}

func (e *NobodyError) Error() string {
	s := fmt.Sprintf("no live session matches %s", quoted(e.Unmatched))
	var hits []string
	for _, m := range e.Matches {
		if len(m.Entries) > 0 {
			hits = append(hits, fmt.Sprintf("%q matches %s", m.Locator, names(m.Entries)))
		}
	}
	if len(hits) > 0 {
		s += " (" + strings.Join(hits, "; ") + ")"
	}
	return s
}

// SeveralError says that the locators mean more than one session.
type SeveralError struct {
	Matches []Match
	Found   Book
}

func (e *SeveralError) Error() string {
	parts := make([]string, len(e.Matches))
	for i, m := range e.Matches {
		parts[i] = fmt.Sprintf("%q matches %s", m.Locator, names(m.Entries))
	}
	return fmt.Sprintf("that is %d sessions, not one: %s", len(e.Found), strings.Join(parts, "; "))
}

// names lists sessions as "reviewer (id …, cwd …)", enough to choose between them.
func names(es []Entry) string {
	parts := make([]string, len(es))
	for i, e := range es {
		if e.Name == "" {
			parts[i] = fmt.Sprintf("id %s (pid %d)", Show(e.ID), e.PID)
		} else {
			parts[i] = fmt.Sprintf("%s (id %s, pid %d)", e.Label(), Show(e.ID), e.PID)
		}
	}
	return strings.Join(parts, ", ")
}

func quoted(ss []string) string {
	parts := make([]string, len(ss))
	for i, s := range ss {
		parts[i] = strconv.Quote(s)
	}
	return strings.Join(parts, ", ")
}

// List writes strings as a JSON array on one line, without the HTML
// escapes that would spoil a copied path.
func List(ss []string) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(ss); err != nil { // strings always encode
		return "[]"
	}
	return strings.TrimSpace(b.String())
}
