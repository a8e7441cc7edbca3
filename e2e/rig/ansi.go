package rig

import (
	"slices"
	"strings"
)

// style is how a terminal draws: what of SGR is in force.
type style struct {
	fg, bg string // parameters, "" for the terminal's own
	attrs  string // parameters of all that is on, sorted
}

// run is text in one style.
type run struct {
	style
	text string
}

// canonical writes a capture so that it says what is seen and no more: each
// line sets its own colours and ends without any, and has no spaces at its end
// that nobody can see. tmux carries colours over line ends, and its lines end
// where something was once drawn.
func canonical(capture string) string {
	var out strings.Builder
	var now style
	for line := range strings.Lines(capture) {
		var runs []run
		for text := range parts(strings.TrimSuffix(line, "\n")) {
			if params, ok := sgr(text); ok {
				now = now.set(strings.Split(params, ";"))
			} else if n := len(runs); n > 0 && runs[n-1].style == now {
				runs[n-1].text += text
			} else {
				runs = append(runs, run{now, text})
			}
		}
		for len(runs) > 0 {
			last := &runs[len(runs)-1]
			if last.bg == "" && !last.has("4") && !last.has("7") {
				last.text = strings.TrimRight(last.text, " ")
			}
			if last.text != "" {
				break
			}
			runs = runs[:len(runs)-1]
		}
		for _, r := range runs {
			if on := r.on(); on != "" {
				out.WriteString("\x1b[" + on + "m" + r.text + "\x1b[m")
			} else {
				out.WriteString(r.text)
			}
		}
		out.WriteString("\n")
	}
	return out.String()
}

// parts splits a line before and after each escape sequence for colours.
func parts(line string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for line != "" {
			n := strings.Index(line, "\x1b[")
			switch {
			case n < 0:
				n = len(line)
			case n == 0:
				n = strings.IndexByte(line, 'm') + 1
				if n == 0 {
					n = len(line)
				}
			}
			if !yield(line[:n]) {
				return
			}
			line = line[n:]
		}
	}
}

// sgr returns the parameters of an escape sequence for colours.
func sgr(text string) (params string, ok bool) {
	params, ok = strings.CutPrefix(text, "\x1b[")
	if !ok {
		return "", false
	}
	return strings.CutSuffix(params, "m")
}

// set applies parameters.
func (s style) set(params []string) style {
	for len(params) > 0 {
		p := params[0]
		n := 1
		switch {
		case p == "" || p == "0":
			s = style{}
		case p == "38" || p == "48":
			n = min(len(params), 3) // 38;5;n
			if len(params) > 1 && params[1] == "2" {
				n = min(len(params), 5) // 38;2;r;g;b
			}
			if colour := strings.Join(params[:n], ";"); p == "38" {
				s.fg = colour
			} else {
				s.bg = colour
			}
		case p == "39":
			s.fg = ""
		case p == "49":
			s.bg = ""
		case len(p) == 2 && (p[0] == '3' || p[0] == '9'):
			s.fg = p
		case len(p) == 2 && p[0] == '4' || len(p) == 3 && p[:2] == "10":
			s.bg = p
		case p == "22":
			s = s.without("1", "2")
		case len(p) == 2 && p[0] == '2':
			s = s.without(p[1:])
		case !s.has(p):
			all := append(strings.Fields(s.attrs), p)
			slices.Sort(all)
			s.attrs = strings.Join(all, " ")
		}
		params = params[n:]
	}
	return s
}

func (s style) has(attr string) bool { return slices.Contains(strings.Fields(s.attrs), attr) }

func (s style) without(attrs ...string) style {
	s.attrs = strings.Join(slices.DeleteFunc(strings.Fields(s.attrs), func(a string) bool { return slices.Contains(attrs, a) }), " ")
	return s
}

// on are the parameters that set the style, "" for the terminal's own.
func (s style) on() string {
	all := strings.Fields(s.attrs)
	for _, colour := range []string{s.fg, s.bg} {
		if colour != "" {
			all = append(all, colour)
		}
	}
	return strings.Join(all, ";")
}
