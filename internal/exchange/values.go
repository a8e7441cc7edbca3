package exchange

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// Values are what a session can be dialled by beside its own record: keys to
// one or more strings.
type Values map[string][]string

// Limits on what one publisher may say about a session.
const (
	MaxContribution = 64 << 10 // bytes of one publisher's file (spec: touchtone, Phonebook metadata)
	maxValues       = 256      // values of one publisher
	maxValue        = 4 << 10  // bytes of one value
	maxKey          = 64       // bytes of one key
)

// reserved are the keys that sessions say of themselves. Nobody else may.
var reserved = map[string]bool{
	"id": true, "session": true, "sessionid": true, "name": true, "sessionname": true, "pid": true, "cwd": true,
	"model": true, "mode": true, "state": true, "since": true, "callsign": true, "selectors": true, "self": true,
	"host": true, "note": true, "tty": true,
	"workspace": true, "surface": true, "panel": true, "pane": true,
	"tmuxpane": true, "weztermpane": true, "kittywindow": true, "zellijpane": true,
}

// Reserved reports whether a key is a core field name, whatever its case.
func Reserved(key string) bool { return reserved[strings.ToLower(key)] }

// ParseContribution reads one publisher's flat JSON object: values are strings
// or lists of strings. Reserved keys and blank values are left out; anything
// else that doesn't fit makes the whole contribution malformed.
func ParseContribution(data []byte) (Values, error) {
	if len(data) > MaxContribution {
		return nil, fmt.Errorf("larger than %d KB", MaxContribution>>10)
	}
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(data, &raw); err != nil || raw == nil {
		return nil, errors.New("not a flat JSON object")
	}
	out := make(Values)
	total := 0
	for key, value := range raw {
		list, err := stringsOf(value)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", key, err)
		}
		if total += len(list); total > maxValues {
			return nil, fmt.Errorf("more than %d values", maxValues)
		}
		if strings.TrimSpace(key) == "" || len(key) > maxKey || Reserved(key) {
			continue
		}
		for _, v := range list {
			if strings.TrimSpace(v) != "" && len(v) <= maxValue && utf8.ValidString(v) && !slices.Contains(out[key], v) {
				out[key] = append(out[key], v)
			}
		}
	}
	return out, nil
}

// Check says why a publisher can't say this: the first of what
// ParseContribution would leave out or refuse. The keys of sessions come first;
// the size is for whoever writes the file.
func (v Values) Check() error {
	var taken []string
	total := 0
	for _, key := range slices.Sorted(maps.Keys(v)) {
		if Reserved(key) {
			taken = append(taken, fmt.Sprintf("%q", key))
		}
		total += len(v[key])
	}
	switch {
	case len(taken) == 1:
		return fmt.Errorf("%s is what a session says of itself: choose another key", taken[0])
	case len(taken) > 1:
		return fmt.Errorf("%s are what a session says of itself: choose other keys", strings.Join(taken, ", "))
	case total > maxValues:
		return fmt.Errorf("%d values, at most %d", total, maxValues)
	}
	for _, key := range slices.Sorted(maps.Keys(v)) {
		switch {
		case strings.TrimSpace(key) == "" || !utf8.ValidString(key):
			return fmt.Errorf("%q is not a key", key)
		case len(key) > maxKey:
			return fmt.Errorf("the key %q… is %d bytes, at most %d", strings.ToValidUTF8(key[:maxKey], ""), len(key), maxKey)
		}
		for _, value := range v[key] {
			switch {
			case strings.TrimSpace(value) == "":
				return fmt.Errorf("%q has no value", key)
			case len(value) > maxValue:
				return fmt.Errorf("a value of %q is %d bytes, at most %d", key, len(value), maxValue)
			case !utf8.ValidString(value):
				return fmt.Errorf("a value of %q is not UTF-8", key)
			}
		}
	}
	return nil
}

func stringsOf(value json.RawMessage) ([]string, error) {
	var one *string
	if json.Unmarshal(value, &one) == nil && one != nil {
		return []string{*one}, nil
	}
	var many []*string
	if err := json.Unmarshal(value, &many); err != nil || many == nil {
		return nil, errors.New("neither a string nor a list of strings")
	}
	out := make([]string, 0, len(many))
	for _, s := range many {
		if s == nil {
			return nil, errors.New("neither a string nor a list of strings")
		}
		out = append(out, *s)
	}
	return out, nil
}

// Merge joins the contributions of several publishers: the one whose name sorts
// first wins a key (spec: touchtone, Phonebook metadata).
func Merge(by map[string]Values) Values {
	out := make(Values)
	for _, publisher := range slices.Sorted(maps.Keys(by)) {
		for key, values := range by[publisher] {
			if _, taken := out[key]; !taken {
				out[key] = values
			}
		}
	}
	return out
}

var plainPublisher = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// ValidPublisher reports whether a publisher may be called so.
func ValidPublisher(name string) bool { return plainPublisher.MatchString(name) }
