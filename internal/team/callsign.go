package team

import (
	"regexp"
	"strconv"
	"strings"
)

// Words are the callsigns in the order in which they are given.
var Words = [26]string{
	"alpha", "bravo", "charlie", "delta", "echo", "foxtrot", "golf", "hotel", "india", "juliett", "kilo", "lima", "mike",
	"november", "oscar", "papa", "quebec", "romeo", "sierra", "tango", "uniform", "victor", "whiskey", "xray", "yankee", "zulu",
}

// maxCallsign bounds a callsign, in bytes.
const maxCallsign = 32

var plainCallsign = regexp.MustCompile(`^[a-z][a-z0-9_-]*$`)

// Callsign returns the form in which a callsign is kept, and whether it may be
// one: a letter, then letters, digits, - and _.
func Callsign(s string) (string, bool) {
	s = strings.ToLower(strings.TrimSpace(s))
	return s, len(s) <= maxCallsign && plainCallsign.MatchString(s)
}

// firstFree is the first word that nobody has; after the alphabet it starts
// again with alpha2, since alpha-2 would be a subagent's.
func (t *Team) firstFree() string {
	for round := 1; ; round++ {
		for _, word := range Words {
			if round > 1 {
				word += strconv.Itoa(round)
			}
			if t.named(word) == nil {
				return word
			}
		}
	}
}

// splitCallsign takes the number off the end of a callsign; 1 without one.
func splitCallsign(s string) (word string, n int) {
	word = strings.TrimRight(s, "0123456789")
	n, err := strconv.Atoi(s[len(word):])
	if err != nil || word == "" {
		return s, 1
	}
	return word, n
}
