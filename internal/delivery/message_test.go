package delivery

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestPrepare(t *testing.T) {
	long := strings.Repeat("x", MaxText)
	for _, tt := range []struct{ in, want, err string }{
		{"plain", "plain", ""},
		{" \n two\r\nlines\t\n", "two\nlines", ""},
		{"\u200bx", "\u200bx", ""},
		{"👍", "👍", ""},
		{"\ue000", "\ue000", ""}, // somebody's own
		{"", "", "the message is empty"},
		{" \t\r\n", "", "the message is empty"},
		{"\x1b\u202e\x00", "", "the message is empty"},
		{"\u200b\u200c\u200d\u2060\ufeff\u00ad\u180e", "", "the message is empty"},
		{"\u3164\u115f\uffa0\ufe0f\u2800 \u00a0\U000E0041", "", "the message is empty"},
		{long + "\n", long, ""},
		{long + "x", "", "the message is 32,769 bytes, at most 32,768"},
		{strings.Repeat("é", 16385), "", "the message is 32,770 bytes, at most 32,768"},
	} {
		got, err := Prepare(tt.in)
		text := ""
		if err != nil {
			text = err.Error()
		}
		if got != tt.want || text != tt.err {
			t.Errorf("Prepare(%.40q) = %.40q, %q; want %.40q, %q", tt.in, got, text, tt.want, tt.err)
		}
	}
	_, err := Prepare(" ")
	if !errors.Is(err, ErrNoText) {
		t.Errorf("Prepare of nothing: %v, want ErrNoText", err)
	}
	var long2 *TooLongError
	if _, err := Prepare(long + "xy"); !errors.As(err, &long2) || long2.Size != MaxText+2 {
		t.Errorf("Prepare of too much: %v, want a TooLongError", err)
	}
}

func TestTooLongError(t *testing.T) {
	for want, e := range map[string]*TooLongError{
		"the message is more than 65,536 bytes, at most 32,768":                                                           {Size: 65536, More: true},
		"the message is 1,002,003 bytes, at most 32,768":                                                                  {Size: 1002003},
		"the message is 900 bytes, but more than 65,536 once stored, where quotes, backslashes and line ends count twice": {Size: 900, Stored: true},
	} {
		if got := e.Error(); got != want {
			t.Errorf("%+v = %q, want %q", *e, got, want)
		}
	}
}

// Many short messages go as one batch: what each is charged is what it takes.
func TestCost(t *testing.T) {
	var b Batch
	charged := 0
	for _, text := range []string{"short", "two\nlines\n", strings.Repeat("x", 5000), "\x1b\xff"} {
		m := Message{From: ann, Text: text, Sent: t0}
		b.Messages = append(b.Messages, m)
		charged += cost(m)
	}
	for _, age := range []int{0, 1, 59, 60, 47 * 60, 30 * 24 * 60} {
		now := t0.Add(time.Duration(age) * time.Minute)
		took := len(Compose(b, now)) - strings.Index(Compose(b, now), "\n\n")
		if spare := charged - took; spare < 0 || spare > len(b.Messages)*len(", 59m ago") {
			t.Errorf("after %d minutes %d messages take %d bytes and are charged %d", age, len(b.Messages), took, charged)
		}
	}
}
