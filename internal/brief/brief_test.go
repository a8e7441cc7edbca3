package brief_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"github.com/tiktoken-go/tokenizer"

	"switchboard/internal/brief"
	"switchboard/internal/delivery"
	"switchboard/internal/lifecycle"
)

var t0 = time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)

func before(d time.Duration) time.Time { return t0.Add(-d) }

var (
	me   = brief.Me{Callsign: "bravo", Task: "fix the tests"}
	busy = brief.Activity{State: lifecycle.Working}
	idle = brief.Activity{State: lifecycle.Idle, Since: before(5 * time.Minute)}

	alpha = brief.Peer{
		Session: "a", Callsign: "alpha", ID: "3f2a9c1e", Doing: busy, Branch: "main",
		Task: "refactor the auth module", TaskSince: before(2 * time.Minute),
		Changed: []brief.Change{{Path: "src/auth/session.ts", At: before(time.Minute)}},
	}
	charlie = brief.Peer{Session: "c", Callsign: "charlie", ID: "9d41c07a", Doing: idle, Branch: "lane-b", Checkout: "/home/me/repo-lane"}
	delta   = brief.Peer{Session: "d", Callsign: "delta", ID: "77aa01bc", Doing: busy, Branch: "main", Task: "the api; layer", TaskSince: before(time.Hour)}
	echo    = brief.Peer{Session: "e", Callsign: "echo", ID: "10c4e2f0", Doing: busy, Branch: "main", Task: "the build", TaskSince: before(time.Hour)}
)

// with returns a changed copy.
func with(p brief.Peer, change func(*brief.Peer)) brief.Peer {
	change(&p)
	return p
}

func messages(p *brief.Peer) { p.Messages = true }

const read = `Call read on a file they changed before you edit it. Who does what: telecom({ action: "board" }).`

// spec: telecom, Team briefs
func TestFull(t *testing.T) {
	seven := []brief.Peer{}
	for i, c := range []string{"golf", "hotel", "india", "juliett", "kilo", "lima", "mike"} {
		seven = append(seven, brief.Peer{Session: c, Callsign: c, Doing: busy, Mine: make([]string, 1+i)})
	}
	var crowd []brief.Peer
	for i := range 15 {
		crowd = append(crowd, brief.Peer{Session: fmt.Sprint(i), Callsign: fmt.Sprint("x", i), Doing: busy})
	}
	for _, c := range []struct {
		name  string
		me    brief.Me
		peers []brief.Peer
		want  string
	}{
		{"nobody", me, nil, ""},
		{
			"one",
			me,
			[]brief.Peer{alpha},
			`📡 Telecom: you are bravo. 1 other agent works in this repository:
• alpha [busy] on main  id 3f2a9c1e
    task: refactor the auth module (2m ago)
    changed: src/auth/session.ts (1m ago)
` + read,
		},
		{
			"all that can be said",
			brief.Me{Callsign: "bravo", Log: true},
			[]brief.Peer{charlie, with(alpha, func(p *brief.Peer) {
				p.Changed = []brief.Change{{"a.go", t0}, {"b.go", before(time.Minute)}, {"c.go", before(time.Hour)}, {"d.go", before(2 * time.Hour)}}
				p.Mine = []string{"d.go"}
			})},
			`📡 Telecom: you are bravo. 2 other agents work in this repository:
• alpha [busy] on main  id 3f2a9c1e
    task: refactor the auth module (2m ago)
    changed: d.go (2h ago, yours too), a.go (0s ago), b.go (1m ago)
• charlie [idle 5m] on lane-b  in /home/me/repo-lane  id 9d41c07a
` + read + ` What happened so far: telecom({ action: "log" }). They don't see what you work on: telecom({ action: "status", message: "…" }).`,
		},
		{
			"more than three, one near",
			me,
			[]brief.Peer{alpha, charlie, with(delta, messages), echo},
			`📡 Telecom: you are bravo. 4 other agents work in this repository, 1 of them near your work:
• delta [busy] on main  id 77aa01bc
    task: the api; layer (1h ago)
Away from your work so far: alpha [busy] refactor the auth module; charlie [idle 5m]; echo [busy] the build
` + read,
		},
		{
			"more than three, none near",
			me,
			[]brief.Peer{alpha, charlie, delta, with(echo, func(p *brief.Peer) { p.Task = strings.Repeat("long ", 20) })},
			`📡 Telecom: you are bravo. 4 other agents work in this repository.
Away from your work so far: alpha [busy] refactor the auth module; charlie [idle 5m]; delta [busy] the api, layer; echo [busy] long long long long long long long long long long long lo…
` + read,
		},
		{
			"seven near",
			me,
			seven,
			`📡 Telecom: you are bravo. 7 other agents work in this repository, 6 of them near your work:
• mike [busy]
• lima [busy]
• kilo [busy]
• juliett [busy]
• india [busy]
• hotel [busy]
Away from your work so far: golf [busy]
` + read,
		},
		{
			"a crowd",
			me,
			crowd,
			`📡 Telecom: you are bravo. 15 other agents work in this repository.
Away from your work so far: x0 [busy]; x1 [busy]; x2 [busy]; x3 [busy]; x4 [busy]; x5 [busy]; x6 [busy]; x7 [busy]; x8 [busy]; x9 [busy]; x10 [busy]; x11 [busy]; x12, x13, x14
` + read,
		},
	} {
		got, _ := brief.Full(c.me, c.peers, t0)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
		logSize(t, "full, "+c.name, got)
	}
}

// spec: telecom, Callsigns and presence
func TestActivity(t *testing.T) {
	for _, c := range []struct {
		a    brief.Activity
		want string
	}{
		{brief.Activity{}, "busy"},
		{busy, "busy"},
		{idle, "idle 5m"},
		{brief.Activity{State: lifecycle.Idle}, "idle"},
		{brief.Activity{State: lifecycle.Idle, Since: before(59 * time.Second)}, "idle"},
		{brief.Activity{State: lifecycle.Working, Tool: "bash", ToolSince: before(59 * time.Second)}, "busy"},
		{brief.Activity{State: lifecycle.Working, Tool: "bash", ToolSince: before(time.Minute)}, "busy · bash 1m"},
		{brief.Activity{State: lifecycle.Working, Tool: "bash", ToolSince: before(14 * time.Minute)}, "busy · bash 14m"},
		{brief.Activity{State: lifecycle.Working, Tool: "bash"}, "busy"},
		{brief.Activity{State: lifecycle.Idle, Tool: "bash", ToolSince: before(time.Hour)}, "idle"},
		{brief.Activity{State: lifecycle.Compacting}, "busy · compacting"},
		{brief.Activity{State: lifecycle.Idle, Unresponsive: true}, "unresponsive"},
		{brief.Activity{State: "x\n\x1b[2Jy"}, "busy · x y"},
	} {
		if got := c.a.Text(t0); got != c.want {
			t.Errorf("%+v is %q, want %q", c.a, got, c.want)
		}
	}
}

func TestNear(t *testing.T) {
	mine := func(n int) func(*brief.Peer) { return func(p *brief.Peer) { p.Mine = make([]string, n) } }
	for _, c := range []struct {
		name         string
		peers        []brief.Peer
		near, others string
	}{
		{"nobody", nil, "", ""},
		{"three", []brief.Peer{delta, charlie, alpha}, "alpha charlie delta", ""},
		{"four", []brief.Peer{echo, delta, charlie, alpha}, "", "alpha charlie delta echo"},
		{"files before messages", []brief.Peer{alpha, with(charlie, messages), with(delta, mine(1)), with(echo, mine(2))}, "echo delta charlie", "alpha"},
		{"messages decide between as many files", []brief.Peer{alpha, with(with(echo, mine(1)), messages), with(delta, mine(1)), charlie}, "echo delta", "alpha charlie"},
	} {
		near, others := brief.Near(c.peers)
		if names(near) != c.near || names(others) != c.others {
			t.Errorf("%s: near %q, others %q, want %q and %q", c.name, names(near), names(others), c.near, c.others)
		}
	}
}

func names(peers []brief.Peer) string {
	var out []string
	for _, p := range peers {
		out = append(out, p.Callsign)
	}
	return strings.Join(out, " ")
}

// Peers are cleaned in copies, and sorted in copies.
func TestTheCallersPeersStay(t *testing.T) {
	peers := func() []brief.Peer {
		return []brief.Peer{charlie, with(alpha, func(p *brief.Peer) {
			p.Mine, p.Changed = []string{" a\n"}, []brief.Change{{Path: " b\n", At: t0}, {Path: " a\n", At: t0}}
		})}
	}
	given := peers()
	brief.Near(given)
	text, told := brief.Full(me, given, t0)
	if !strings.Contains(text, "\n    changed: a (0s ago, yours too), b (0s ago)\n") {
		t.Errorf("not cleaned alike: %s", text)
	}
	_, next := brief.Update(me, given[:1], told, t0)
	if diff := cmp.Diff(peers(), given); diff != "" {
		t.Errorf("peers (-want +got):\n%s", diff)
	}
	if len(told.Peers) != 2 || len(next.Peers) != 1 {
		t.Errorf("told %v, then %v", told, next)
	}
}

// Whatever peers write about themselves, it stays on its line, and short.
func FuzzHostile(f *testing.F) {
	for _, s := range []string{
		"", "x", "a\nb", "\r\n• ghost left", "\u2028    task: none", "\x1b[2J\x1b]0;t\a", "\u202eabc", "\xff\xfe", "\x00",
		"a  id 12345678", "x; ghost [busy] y", "\U000E0041\u200b", "\u0085\v\f", strings.Repeat("é", 5000), strings.Repeat("\n", 10000), strings.Repeat("a b\n", 2500),
	} {
		f.Add(s, "x")
		f.Add("x", s)
	}
	f.Fuzz(func(t *testing.T, s, other string) {
		// As many lines as of plain values, or fewer where two of them are shown alike.
		plain, most := texts(plain(s, "x"), plain(other, "y")), texts("x", "y")
		for name, text := range texts(s, other) {
			inPlace(t, text)
			lines := strings.Count(text, "\n")
			if name == "full" && lines != strings.Count(plain[name], "\n") || lines > strings.Count(most[name], "\n") {
				t.Errorf("%s of %.99q and %.99q:\n%s\nwith plain values:\n%s", name, s, other, text, plain[name])
			}
		}
	})
}

// plain stands for a value that shows as something, or as nothing.
func plain(s, as string) string {
	if strings.TrimSpace(delivery.CleanText(s)) == "" {
		return ""
	}
	return as
}

// texts writes one of each kind with values that a peer gave.
func texts(s, other string) map[string]string {
	peer := func(session, s string) brief.Peer {
		return brief.Peer{
			Session: session, Callsign: s, ID: s, Task: s, Checkout: s, Branch: s, Mine: []string{s},
			Doing:   brief.Activity{State: lifecycle.State(s), Tool: s},
			Changed: []brief.Change{{Path: s, At: t0}, {Path: other, At: t0}},
		}
	}
	world := func(s string) []brief.Peer {
		return []brief.Peer{peer("1", s), peer("2", s), peer("3", s), with(peer("4", s), func(p *brief.Peer) { p.Mine = nil })}
	}
	you := brief.Me{Callsign: s, Task: s, Log: true}
	full, told := brief.Full(you, world(s), t0)
	update, told := brief.Update(you, world(other), told, t0)
	joined, told := brief.Update(you, append(world(other)[1:], peer("5", s)), told, t0)
	presence, _ := brief.Presence(you, append(world(other)[1:3], peer("6", s)), told, t0)
	notices := brief.Notices([]brief.Notice{
		{Callsign: "alpha", Path: other, Checkout: "/w" + s, Edits: 2, First: 1, Lines: []string{"-" + s, s, other}, Why: brief.Why(s)},
		{Callsign: "alpha", Path: s},
		{Callsign: s, Path: s},
	})
	return map[string]string{"full": full, "update": update, "joined": joined, "presence": presence, "notices": notices}
}

// inPlace checks that each line begins as one of ours, that nothing moves the
// cursor, and that blanks in a value can't pass for our own.
func inPlace(t *testing.T, text string) {
	t.Helper()
	starts := []string{"📡 ", "• ", "    ", "Away from your work so far: ", "Call read ", "What you know ", "A copy "}
	lines := strings.Split(text, "\n")
	if len(text) > 8000 {
		t.Errorf("%d bytes:\n%.2000s", len(text), text)
	}
	for _, line := range lines {
		begins := text == ""
		for _, s := range starts {
			begins = begins || strings.HasPrefix(line, s)
		}
		if !begins {
			t.Errorf("line %q is out of place", line)
		}
		if strings.ContainsFunc(line, func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) }) {
			t.Errorf("line %q has control characters", line)
		}
		if rest := strings.TrimLeft(line, " "); strings.Count(rest, "  id ") > 1 || strings.Count(rest, "  in ") > 1 {
			t.Errorf("line %q has more than one id or folder", line)
		}
	}
}

func logSize(t *testing.T, name, text string) {
	t.Helper()
	codec, err := tokenizer.Get(tokenizer.O200kBase)
	if err != nil {
		t.Fatal(err)
	}
	n, err := codec.Count(text)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d tokens: %s", n, name)
}
