package rig

import "testing"

func TestCanonical(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, in, want string }{
		{"plain", "a b  \n\n c\n", "a b\n\n c\n"},
		{"carried over lines", "\x1b[31ma\nb\x1b[39m\nc\n", "\x1b[31ma\x1b[m\n\x1b[31mb\x1b[m\nc\n"},
		{"coloured spaces at the end", "\x1b[44m a  \x1b[49m  \n", "\x1b[44m a  \x1b[m\n"},
		{"unseen spaces at the end", "\x1b[31m a  \x1b[1m  \n", "\x1b[31m a\x1b[m\n"},
		{"reverse and underlined spaces", "\x1b[7m \x1b[27m\n\x1b[4m \x1b[24m\n", "\x1b[7m \x1b[m\n\x1b[4m \x1b[m\n"},
		{"one after another", "\x1b[1;38;2;1;2;3ma\x1b[22mb\x1b[48;5;9mc\x1b[0md\n", "\x1b[1;38;2;1;2;3ma\x1b[m\x1b[38;2;1;2;3mb\x1b[m\x1b[38;2;1;2;3;48;5;9mc\x1b[md\n"},
		{"no change", "\x1b[31ma\x1b[31mb\x1b[97;102mc\x1b[m\n", "\x1b[31mab\x1b[m\x1b[97;102mc\x1b[m\n"},
		{"cut off", "a\x1b[38;2\nb\x1b[38;5m\n", "a\x1b[38;2\nb\n"},
	} {
		if got := canonical(tt.in); got != tt.want {
			t.Errorf("%s: canonical(%q) = %q, want %q", tt.name, tt.in, got, tt.want)
		}
	}
}
