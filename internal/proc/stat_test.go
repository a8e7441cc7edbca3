package proc

import (
	"strings"
	"testing"
)

// rest is the tail of a stat line, from the parent on; the start time is 7700.
const rest = " 42 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 7700 1000 20 18446744073709551615"

func TestParseStat(t *testing.T) {
	tests := []struct {
		text string
		want facts
		ok   bool
	}{
		{"7 (pi) S" + rest, facts{name: "pi", parent: 42, start: "7700"}, true},
		{"7 (pi) S" + rest + "\n", facts{name: "pi", parent: 42, start: "7700"}, true},
		{"7 (a b) c) (d) T" + rest, facts{name: "a b) c) (d", parent: 42, start: "7700", stopped: true}, true},
		{"7 (a\n) S 1) t" + rest, facts{name: "a\n) S 1", parent: 42, start: "7700", stopped: true}, true},
		{"7 () Z" + rest, facts{parent: 42, start: "7700", zombie: true}, true},
		{"7 (x) X" + rest, facts{name: "x", parent: 42, start: "7700", zombie: true}, true},
		{"7 (pi) S", facts{}, false},
		{"7 (pi) S 42 1 1", facts{}, false},
		{"7 (pi) S" + strings.Replace(rest, "7700", "-1", 1), facts{}, false},
		{"7 (pi) S" + strings.Replace(rest, "42", "x", 1), facts{}, false},
		{"7 )pi( S" + rest, facts{}, false},
		{"", facts{}, false},
	}
	for _, tt := range tests {
		got, err := parseStat([]byte(tt.text))
		if got != tt.want || (err == nil) != tt.ok {
			t.Errorf("parseStat(%q) = %+v, %v; want %+v, ok %v", tt.text, got, err, tt.want, tt.ok)
		}
	}
}

// Whatever bytes come, the parser returns; whatever a process calls itself, its
// name and start time are read.
func FuzzParseStat(f *testing.F) {
	for _, name := range []string{"pi", "a b", ")", "(", ") S 1 2 3", "\n", "\x00\xff"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		_, _ = parseStat([]byte(name))
		_, _ = parseStat([]byte("7 (" + name))
		got, err := parseStat([]byte("7 (" + name + ") S" + rest))
		if want := (facts{name: name, parent: 42, start: "7700"}); got != want || err != nil {
			t.Errorf("name %q: %+v, %v", name, got, err)
		}
	})
}
