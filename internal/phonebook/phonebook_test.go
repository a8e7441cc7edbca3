package phonebook

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// book is the roster of most tests: two sessions of one name, two in one
// folder, one without a name, and one whose name is another's pid.
var book = Book{
	{ID: "id-a", Name: "reviewer", PID: 11, Cwd: "/w/app"},
	{ID: "id-b", Name: "reviewer", PID: 12, Cwd: "/w/lib"},
	{ID: "id-c", PID: 13, Cwd: "/w/app", Self: true},
	{ID: "id-d", Name: "11", Cwd: "/w/a <b> & c"},
}

func ids(b Book) string {
	var out []string
	for _, e := range b {
		out = append(out, e.ID)
	}
	return strings.Join(out, " ")
}

func TestLocators(t *testing.T) {
	tests := []struct {
		name  string
		entry Entry
		want  []string
	}{
		{"all", book[0], []string{"id-a", "reviewer", "/w/app", "11"}},
		{"no name", book[2], []string{"id-c", "/w/app", "13"}},
		{"no pid", book[3], []string{"id-d", "11", "/w/a <b> & c"}},
		{"blank name", Entry{ID: "x", Name: " \t", Cwd: "/"}, []string{"x", "/"}},
		{"repetitions", Entry{ID: "7", Name: "7", PID: 7, Cwd: "/7"}, []string{"7", "/7"}},
		{"nothing", Entry{}, nil},
		{"negative pid", Entry{ID: "x", PID: -1}, []string{"x"}},
		{"spaces stay", Entry{ID: "x", Name: " two words "}, []string{"x", " two words "}},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, tt.entry.Locators()); diff != "" {
			t.Errorf("%s: Locators (-want +got):\n%s", tt.name, diff)
		}
	}
}

func TestSelectors(t *testing.T) {
	for entry, want := range map[int]string{
		0: `["id-a","reviewer","/w/app","11"]`,
		3: `["id-d","11","/w/a <b> & c"]`,
	} {
		if got := book[entry].Selectors(); got != want {
			t.Errorf("Selectors of %s = %s, want %s", book[entry].ID, got, want)
		}
	}
	quoted := Entry{ID: "x", Name: "say \"hi\"\nthere", Cwd: `C:\w`}
	if got, want := quoted.Selectors(), `["x","say \"hi\"\nthere","C:\\w"]`; got != want {
		t.Errorf("Selectors = %s, want %s", got, want)
	}
}

func TestLookAndFilter(t *testing.T) {
	tests := []struct {
		name      string
		locators  []string
		looked    []string // the locators that counted
		found     string
		unmatched []string
	}{
		{"none", nil, nil, "", nil},
		{"blank ones", []string{"", "  ", "\n\t"}, nil, "", nil},
		{"id", []string{"id-b"}, []string{"id-b"}, "id-b", nil},
		{"name of two", []string{"reviewer"}, []string{"reviewer"}, "id-a id-b", nil},
		{"cwd of two", []string{"/w/app"}, []string{"/w/app"}, "id-a id-c", nil},
		{"pid, and a name that looks like it", []string{"11"}, []string{"11"}, "id-a id-d", nil},
		{"union keeps roster order", []string{"id-d", "id-a", "reviewer"}, []string{"id-d", "id-a", "reviewer"}, "id-a id-b id-d", nil},
		{"repeated", []string{"id-a", "id-a"}, []string{"id-a"}, "id-a", nil},
		{"exact only", []string{"Reviewer", "review", "/w/app/", " id-a"}, []string{"Reviewer", "review", "/w/app/", " id-a"}, "", []string{"Reviewer", "review", "/w/app/", " id-a"}},
		{"one of two", []string{"id-a", "nobody", ""}, []string{"id-a", "nobody"}, "id-a", []string{"nobody"}},
	}
	for _, tt := range tests {
		matches := book.Look(tt.locators)
		var looked []string
		for _, m := range matches {
			looked = append(looked, m.Locator)
		}
		if diff := cmp.Diff(tt.looked, looked); diff != "" {
			t.Errorf("%s: Look (-want +got):\n%s", tt.name, diff)
		}
		found, unmatched := book.Filter(matches)
		if got := ids(found); got != tt.found {
			t.Errorf("%s: Filter found %q, want %q", tt.name, got, tt.found)
		}
		if diff := cmp.Diff(tt.unmatched, unmatched); diff != "" {
			t.Errorf("%s: unmatched (-want +got):\n%s", tt.name, diff)
		}
	}
}

func TestOne(t *testing.T) {
	tests := []struct {
		name     string
		locators []string
		want     string // id, else
		err      string // text of the error
	}{
		{"id", []string{"id-a"}, "id-a", ""},
		{"several locators of one session", []string{"13", "id-c", " "}, "id-c", ""},
		{"none", nil, "", `no destination: give a locator`},
		{"blank", []string{" "}, "", `no destination: give a locator`},
		{"nobody", []string{"x"}, "", `no live session matches "x"`},
		{"two nobodies", []string{"x", "y\n"}, "", `no live session matches "x", "y\n"`},
		{"one matches, one doesn't", []string{"id-a", "x"}, "", `no live session matches "x" ("id-a" matches reviewer (id id-a, pid 11))`},
		{"one matches several, one nobody", []string{"/w/app", "x"}, "", `no live session matches "x" ("/w/app" matches reviewer (id id-a, pid 11), id id-c (pid 13))`},
		{"several", []string{"reviewer"}, "", `that is 2 sessions, not one: "reviewer" matches reviewer (id id-a, pid 11), reviewer (id id-b, pid 12)`},
		{"several by union", []string{"id-a", "id-c"}, "", `that is 2 sessions, not one: "id-a" matches reviewer (id id-a, pid 11); "id-c" matches id id-c (pid 13)`},
		{"narrowing is no intersection", []string{"reviewer", "id-a"}, "", `that is 2 sessions, not one: "reviewer" matches reviewer (id id-a, pid 11), reviewer (id id-b, pid 12); "id-a" matches reviewer (id id-a, pid 11)`},
	}
	for _, tt := range tests {
		got, err := book.One(tt.locators)
		if got.ID != tt.want {
			t.Errorf("%s: One(%q) = %q, want %q", tt.name, tt.locators, got.ID, tt.want)
		}
		if text := errText(err); text != tt.err {
			t.Errorf("%s: One(%q) error:\n got %s\nwant %s", tt.name, tt.locators, text, tt.err)
		}
	}
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestErrorsCarryWhatAnAnswerNeeds(t *testing.T) {
	_, err := book.One([]string{"x", "id-a"})
	var nobody *NobodyError
	if !errors.As(err, &nobody) {
		t.Fatalf("One of nobody: %v, want a NobodyError", err)
	}
	if !slices.Equal(nobody.Unmatched, []string{"x"}) || len(nobody.Book) != len(book) || len(nobody.Matches) != 2 {
		t.Errorf("NobodyError = %+v", nobody)
	}
	_, err = book.One([]string{"reviewer"})
	var several *SeveralError
	if !errors.As(err, &several) {
		t.Fatalf("One of two: %v, want a SeveralError", err)
	}
	if ids(several.Found) != "id-a id-b" || len(several.Matches) != 1 {
		t.Errorf("SeveralError = %+v", several)
	}
	if _, err := book.One(nil); !errors.Is(err, ErrNoLocator) {
		t.Errorf("One(nil): %v, want ErrNoLocator", err)
	}
	if _, err := Book(nil).One([]string{"x"}); !errors.As(err, &nobody) {
		t.Errorf("One in an empty book: %v, want a NobodyError", err)
	}
}

func TestLabel(t *testing.T) {
	for want, e := range map[string]Entry{"reviewer": book[0], "id-c": book[2]} {
		if got := e.Label(); got != want {
			t.Errorf("Label of %s = %q, want %q", e.ID, got, want)
		}
	}
}

// What a session chose never passes for our own words.
func TestShow(t *testing.T) {
	for in, want := range map[string]string{
		"reviewer": "reviewer", "two words": "two words", "/w/app-1.0_b": "/w/app-1.0_b", `C:\w`: `C:\w`, "Grüße 日本": "Grüße 日本", "lab/large:v2": "lab/large:v2",
		"": `""`, " bob": `" bob"`, "a  pid 1": `"a  pid 1"`, "bob [idle]": `"bob [idle]"`, "bob (id x)": `"bob (id x)"`, `say "hi"`: `"say \"hi\""`,
		"a, b": `"a, b"`, "a; b": `"a; b"`, "two\nlines": `"two\nlines"`, "\x1b[2J": `"\x1b[2J"`, "\u202eabc": `"\u202eabc"`, "• eve": `"• eve"`,
		strings.Repeat("é", 150): strings.Repeat("é", 101) + "…",
	} {
		if got := Show(in); got != want {
			t.Errorf("Show(%q) = %s, want %s", in, got, want)
		}
	}
}

func TestDial(t *testing.T) {
	for entry, want := range map[int]string{0: "id-a", 1: "id-b", 3: "id-d"} {
		if got, ok := book.Dial(book[entry]); got != want || !ok {
			t.Errorf("Dial(%s) = %q, %v, want %q", book[entry].ID, got, ok, want)
		}
	}
	same := Book{{ID: "x", Name: "y", Cwd: "/"}, {ID: "y", Name: "x", Cwd: "/"}, {ID: "z", Name: "x", PID: 5}}
	if got, ok := same.Dial(same[0]); ok {
		t.Errorf("Dial of what has no locator of its own = %q", got)
	}
	if got, ok := same.Dial(same[2]); got != "z" || !ok {
		t.Errorf("Dial = %q, %v, want z", got, ok)
	}
}

// One succeeds exactly when each locator matches somebody and all of them
// together mean one session.
func TestOneProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 5).Draw(t, "sessions")
		word := rapid.SampledFrom([]string{"", " ", "1", "2", "a", "b", "/w"})
		var b Book
		for i := range n {
			b = append(b, Entry{
				ID:   "id" + string(rune('0'+i)),
				Name: word.Draw(t, "name"),
				PID:  rapid.IntRange(0, 2).Draw(t, "pid"),
				Cwd:  word.Draw(t, "cwd"),
			})
		}
		locators := rapid.SliceOfN(rapid.OneOf(word, rapid.SampledFrom([]string{"id0", "id1", "id9"})), 0, 4).Draw(t, "locators")

		union := make(map[string]bool)
		asked, each := 0, true
		for _, l := range locators {
			if strings.TrimSpace(l) == "" {
				continue
			}
			asked++
			hit := false
			for _, e := range b {
				if dials(e, l) {
					hit = true
					union[e.ID] = true
				}
			}
			each = each && hit
		}
		want := asked > 0 && each && len(union) == 1

		got, err := b.One(locators)
		if (err == nil) != want {
			t.Fatalf("One(%q) in %+v: error %v, want success: %v", locators, b, err, want)
		}
		if err == nil && !union[got.ID] {
			t.Fatalf("One(%q) = %s, want one of %v", locators, got.ID, union)
		}
	})
}

// dials says in the plainest way whether a locator means an entry.
func dials(e Entry, l string) bool {
	pid := map[int]string{1: "1", 2: "2"}[e.PID]
	return l == e.ID || l == e.Name || l == e.Cwd || l == pid
}
