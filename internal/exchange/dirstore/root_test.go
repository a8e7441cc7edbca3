package dirstore

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRoot(t *testing.T) {
	base := t.TempDir()
	at := func(parts ...string) string { return filepath.Join(append([]string{base}, parts...)...) }
	// Homes with and without the legacy root, state folders with and without ours.
	for _, dir := range []string{at("old", ".local", "state", "pi", "touchtone"), at("new"), at("used", "pi", "touchtone"), at("unused")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	legacy := func(home string) string { return at(home, ".local", "state", "pi", "touchtone") }
	ours := func(state string) string { return at(state, "pi", "touchtone") }

	for _, tt := range []struct {
		name string
		home string
		env  map[string]string
		want string // else a RootError that names this
		err  string
	}{
		{"nothing set", at("new"), nil, legacy("new"), ""},
		{"ours before all", at("old"), map[string]string{"SWITCHBOARD_DIR": at("s"), "PI_TELECOM_DIR": at("t"), "PI_TOUCHTONE_HOME": at("p"), "XDG_STATE_HOME": at("used")}, at("s"), ""},
		{"telecom's next", at("old"), map[string]string{"PI_TELECOM_DIR": at("t"), "PI_TOUCHTONE_HOME": at("p"), "XDG_STATE_HOME": at("used")}, at("t"), ""},
		{"then touchtone's", at("old"), map[string]string{"PI_TOUCHTONE_HOME": at("p"), "XDG_STATE_HOME": at("used")}, at("p"), ""},
		{"a relative one of touchtone's is no setting", at("old"), map[string]string{"PI_TOUCHTONE_HOME": "p"}, legacy("old"), ""},
		{"state home in use", at("old"), map[string]string{"XDG_STATE_HOME": at("used")}, ours("used"), ""},
		{"state home not in use, legacy root there", at("old"), map[string]string{"XDG_STATE_HOME": at("unused")}, legacy("old"), ""},
		{"state home not in use, no legacy root", at("new"), map[string]string{"XDG_STATE_HOME": at("unused")}, ours("unused"), ""},
		{"state home that is not there, no legacy root", at("new"), map[string]string{"XDG_STATE_HOME": at("nowhere")}, ours("nowhere"), ""},
		{"both in use", at("old"), map[string]string{"XDG_STATE_HOME": at("used")}, ours("used"), ""},
		{"relative state home", at("new"), map[string]string{"XDG_STATE_HOME": "state"}, legacy("new"), ""},
		{"cleaned", at("new"), map[string]string{"SWITCHBOARD_DIR": at("s") + "/../s//"}, at("s"), ""},
		{"no home, not needed", "", map[string]string{"SWITCHBOARD_DIR": at("s")}, at("s"), ""},
		{"no home", "", nil, "", "HOME"},
		{"relative", at("new"), map[string]string{"SWITCHBOARD_DIR": "it's here"}, "", "SWITCHBOARD_DIR"},
		{"relative, telecom's", at("new"), map[string]string{"PI_TELECOM_DIR": "x"}, "", "PI_TELECOM_DIR"},
	} {
		got, err := Root(func(name string) string { return tt.env[name] }, tt.home)
		if got != tt.want {
			t.Errorf("%s: Root = %q, want %q", tt.name, got, tt.want)
		}
		var re *RootError
		switch {
		case tt.err == "" && err != nil:
			t.Errorf("%s: Root: %v", tt.name, err)
		case tt.err != "" && (!errors.As(err, &re) || !strings.Contains(re.Problem, tt.err) || re.Mend == ""):
			t.Errorf("%s: Root: %v, want a RootError that names %s and a command", tt.name, err, tt.err)
		}
	}
	for source, env := range map[string]map[string]string{
		"SWITCHBOARD_DIR":    {"SWITCHBOARD_DIR": at("s"), "PI_TELECOM_DIR": at("s")},
		"PI_TELECOM_DIR":     {"PI_TELECOM_DIR": at("t"), "PI_TOUCHTONE_HOME": at("t")},
		"PI_TOUCHTONE_HOME":  {"PI_TOUCHTONE_HOME": legacy("old")},
		"XDG_STATE_HOME":     {"PI_TOUCHTONE_HOME": "p", "XDG_STATE_HOME": at("used")},
		"the home directory": {"XDG_STATE_HOME": at("unused")},
	} {
		if got := RootSource(func(name string) string { return env[name] }, at("old")); got != source {
			t.Errorf("RootSource with %v = %q, want %q", env, got, source)
		}
	}
	if _, err := os.Stat(legacy("new")); err == nil {
		t.Error("Root made a folder")
	}
}

func TestOpenTwice(t *testing.T) {
	root := filepath.Join(t.TempDir(), "a", "b")
	first := open(t, root)
	post(t, first, "a", "kept")
	second := open(t, root)
	if got, err := second.Waiting(key("a")); len(got) != 1 || err != nil {
		t.Errorf("Waiting = %v, %v", got, err)
	}
	if first.Root() != second.Root() {
		t.Errorf("roots %q and %q", first.Root(), second.Root())
	}
}

// A path of any length works; only the bell may have to lie elsewhere.
func TestLongRoot(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), strings.Repeat("long", 30), strings.Repeat("long", 30)))
	l := publish(t, s, record("a"))
	post(t, s, "a", "one")
	if !l.Changed() || !l.Published() {
		t.Error("a session in a long root is not all there")
	}
	until(t, "the bell rings", func() bool {
		s.Ring(key("a"))
		select {
		case <-l.Rings():
			return true
		default:
			return l.Rings() == nil // this system has none
		}
	})
}
