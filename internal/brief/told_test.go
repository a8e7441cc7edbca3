package brief_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"switchboard/internal/brief"
)

const head = "📡 Telecom: news of your team (you are bravo)\n"

// spec: telecom, Team briefs
func TestUpdate(t *testing.T) {
	near := []brief.Peer{with(alpha, messages), with(charlie, messages), delta, echo}
	for _, c := range []struct {
		name       string
		was, is    []brief.Peer
		want       string // by Update
		wantMidrun string // by Presence
	}{
		{name: "nothing", was: []brief.Peer{alpha}, is: []brief.Peer{alpha}},
		{
			name: "what is not told", was: []brief.Peer{alpha},
			is: []brief.Peer{with(alpha, func(p *brief.Peer) {
				p.Doing, p.Changed, p.Mine, p.Messages, p.TaskSince = idle, nil, []string{"a.go"}, true, t0
			})},
		},
		{name: "the last one left", was: []brief.Peer{alpha}, want: head + "• alpha left", wantMidrun: head + "• alpha left"},
		{
			name: "many left", was: []brief.Peer{echo, delta, alpha, charlie, with(alpha, func(p *brief.Peer) { p.Session, p.Callsign = "2", "alpha2" })},
			want: head + "• alpha, charlie, delta, echo, alpha2 left", wantMidrun: head + "• alpha, charlie, delta, echo, alpha2 left",
		},
		{
			name: "joined", was: []brief.Peer{alpha}, is: []brief.Peer{alpha, charlie},
			want:       head + "• joined: charlie [idle 5m] on lane-b  in /home/me/repo-lane  id 9d41c07a",
			wantMidrun: head + "• joined: charlie [idle 5m] on lane-b  in /home/me/repo-lane  id 9d41c07a",
		},
		{
			name: "a new task, another branch", was: []brief.Peer{alpha},
			is:   []brief.Peer{with(alpha, func(p *brief.Peer) { p.Task, p.Branch = "write the session migration", "lane-c" })},
			want: head + "• alpha now works on: write the session migration\n• alpha is now on lane-c",
		},
		{
			name: "no task, no branch, another checkout", was: []brief.Peer{alpha, charlie},
			is: []brief.Peer{
				with(alpha, func(p *brief.Peer) { p.Task, p.Branch = "", "" }),
				with(charlie, func(p *brief.Peer) { p.Checkout = "" }),
			},
			want: head + "• alpha has no task now\n• alpha is now on no branch\n• charlie is now in your checkout, on lane-b",
		},
		{
			name: "left, renamed and joined under one name", was: []brief.Peer{alpha, charlie, delta},
			is: []brief.Peer{
				with(charlie, func(p *brief.Peer) { p.Callsign = "alpha" }),
				with(delta, func(p *brief.Peer) { p.Callsign = "ops" }),
				with(echo, func(p *brief.Peer) { p.Callsign = "charlie" }),
			},
			want: head + `• alpha left
• renamed: charlie → alpha, delta → ops
• joined: charlie [busy] on main  id 10c4e2f0
    task: the build (1h ago)`,
			wantMidrun: head + `• alpha left
• renamed: charlie → alpha, delta → ops
• joined: charlie [busy] on main  id 10c4e2f0
    task: the build (1h ago)`,
		},
		{
			name: "renamed", was: []brief.Peer{alpha}, is: []brief.Peer{with(alpha, func(p *brief.Peer) { p.Callsign = "ops" })},
			want: head + "• renamed: alpha → ops",
		},
		{
			name: "a task of one that is not near", was: near,
			is: slices.Concat(near[:3], []brief.Peer{with(echo, func(p *brief.Peer) { p.Task = "the docs" })}),
		},
		{
			name: "now near", was: near,
			is: slices.Concat(near[:3], []brief.Peer{with(echo, func(p *brief.Peer) {
				p.Task, p.Mine, p.Changed = "the docs", []string{"a.md"}, []brief.Change{{Path: "a.md", At: t0}}
			})}),
			want: head + `• now near your work: echo [busy] on main  id 10c4e2f0
    task: the docs (1h ago)
    changed: a.md (0s ago, yours too)`,
		},
		{
			name: "few enough to describe", was: near, is: []brief.Peer{near[0], delta, echo},
			want: head + `• charlie left
• also here: delta [busy] on main  id 77aa01bc
    task: the api; layer (1h ago)
• also here: echo [busy] on main  id 10c4e2f0
    task: the build (1h ago)`,
			wantMidrun: head + "• charlie left",
		},
		{
			name: "joined and not near", was: near[:2],
			is:         near,
			want:       head + "• joined, away from your work: delta [busy] the api, layer; echo [busy] the build",
			wantMidrun: head + "• joined, away from your work: delta [busy] the api, layer; echo [busy] the build",
		},
	} {
		_, told := brief.Full(me, c.was, t0)
		got, next := brief.Update(me, c.is, told, t0)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: Update (-want +got):\n%s", c.name, diff)
		}
		if again, _ := brief.Update(me, c.is, next, t0); again != "" {
			t.Errorf("%s: again %q", c.name, again)
		}
		got, _ = brief.Presence(me, c.is, told, t0)
		if diff := cmp.Diff(c.wantMidrun, got); diff != "" {
			t.Errorf("%s: Presence (-want +got):\n%s", c.name, diff)
		}
		logSize(t, "update, "+c.name, c.want)
	}
}

// A task that was left out while its peer was not near is told once it is.
func TestLeftOut(t *testing.T) {
	world := []brief.Peer{with(alpha, messages), charlie, delta, echo}
	_, told := brief.Full(me, world, t0)
	world[0].Messages, world[0].Task = false, "something else"
	text, told := brief.Update(me, world, told, t0)
	if text != "" {
		t.Errorf("away: %q", text)
	}
	world[0].Messages = true
	text, _ = brief.Update(me, world, told, t0)
	if want := head + "• alpha now works on: something else"; text != want {
		t.Errorf("near again: %q, want %q", text, want)
	}
}

// When a whole brief is due.
func TestWhole(t *testing.T) {
	full, told := brief.Full(me, []brief.Peer{alpha}, t0)
	_, alone := brief.Full(me, nil, t0)
	ops := brief.Me{Callsign: "ops", Task: "x"}
	renamed, _ := brief.Full(ops, []brief.Peer{alpha}, t0)
	for _, c := range []struct {
		name   string
		me     brief.Me
		peers  []brief.Peer
		told   brief.Told
		update string
		midrun string
	}{
		{"nothing was told", me, []brief.Peer{alpha}, brief.Told{}, full, ""},
		{"nothing to tell", me, nil, brief.Told{}, "", ""},
		{"alone", me, nil, alone, "", ""},
		{
			"alone until now", me,
			[]brief.Peer{alpha},
			alone, full, head + "• joined: " + full[strings.Index(full, "alpha"):],
		},
		{"own callsign changed", ops, []brief.Peer{alpha}, told, renamed, ""},
		{
			"own callsign changed, and the others left", ops, nil, told,
			strings.ReplaceAll(head, "bravo", "ops") + "• alpha left", strings.ReplaceAll(head, "bravo", "ops") + "• alpha left",
		},
	} {
		if got, _ := brief.Update(c.me, c.peers, c.told, t0); got != c.update {
			t.Errorf("%s: Update = %q, want %q", c.name, got, c.update)
		}
		got, next := brief.Presence(c.me, c.peers, c.told, t0)
		if got != c.midrun {
			t.Errorf("%s: Presence = %q, want %q", c.name, got, c.midrun)
		}
		if again, _ := brief.Update(c.me, c.peers, next, t0); got != "" && again != "" {
			t.Errorf("%s: Update repeats %q", c.name, again)
		}
	}
}

// However a team changes, and whatever was told when: a model that read it all
// knows what a full brief would tell it now.
func TestTheSumOfWhatWasTold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var (
			w    = world{me: brief.Me{Callsign: "bravo", Task: "x"}, free: []string{"alpha", "charlie", "delta", "echo", "foxtrot", "golf", "hotel", "india", "juliett", "kilo", "lima"}}
			told brief.Told
			m    model
		)
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			for range rapid.IntRange(0, 4).Draw(t, "changes") {
				w.change(t)
			}
			var text string
			switch rapid.IntRange(0, 5).Draw(t, "told") {
			case 0:
				told, m = brief.Told{}, model{} // a compaction
				continue
			case 1, 2:
				text, told = brief.Presence(w.me, w.peers, told, t0)
				m.read(t, text)
				if told.Briefed && !m.everybody(w.peers, told) {
					t.Fatalf("after %q the model knows of %v", text, m.agents)
				}
				continue
			}
			near, _ := brief.Near(w.peers)
			text, told = brief.Update(w.me, w.peers, durable(t, told), t0)
			m.read(t, text)
			for _, c := range m.tasks {
				if !slices.ContainsFunc(near, func(p brief.Peer) bool { return p.Callsign == c }) {
					t.Fatalf("%q tells a task of %s, which is not near", text, c)
				}
			}
			full, _ := brief.Full(w.me, w.peers, t0)
			var now model
			now.read(t, full)
			m.knows(t, now)
			if again, _ := brief.Update(w.me, w.peers, durable(t, told), t0); again != "" {
				t.Fatalf("Update after an Update is %q", again)
			}
			if again, _ := brief.Presence(w.me, w.peers, told, t0); again != "" {
				t.Fatalf("Presence after an Update is %q", again)
			}
		}
	})
}

// durable sends what was told through its stored form.
func durable(t *rapid.T, told brief.Told) (out brief.Told) {
	data, err := json.Marshal(told)
	if err == nil {
		err = json.Unmarshal(data, &out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// world is a team that changes.
type world struct {
	me    brief.Me
	peers []brief.Peer
	free  []string // callsigns
	born  int
}

func (w *world) change(t *rapid.T) {
	swap := func(c *string) {
		i := rapid.IntRange(0, len(w.free)-1).Draw(t, "callsign")
		*c, w.free[i] = w.free[i], *c
	}
	n := len(w.peers)
	if kind := rapid.IntRange(0, 9).Draw(t, "change"); n == 0 || kind == 0 {
		if len(w.free) > 1 {
			w.born++
			p := brief.Peer{Session: fmt.Sprint("s", w.born), Callsign: w.free[0], Doing: busy}
			w.free, w.peers = w.free[1:], append(w.peers, p)
		}
		return
	} else if kind == 1 && rapid.IntRange(0, 3).Draw(t, "rarely") == 0 {
		swap(&w.me.Callsign)
		return
	}
	p := &w.peers[rapid.IntRange(0, n-1).Draw(t, "peer")]
	other := &w.peers[rapid.IntRange(0, n-1).Draw(t, "other")]
	switch rapid.IntRange(0, 7).Draw(t, "of a peer") {
	case 0:
		w.free = append(w.free, p.Callsign)
		w.peers = slices.DeleteFunc(w.peers, func(o brief.Peer) bool { return o.Session == p.Session })
	case 1:
		swap(&p.Callsign)
	case 2:
		p.Callsign, other.Callsign = other.Callsign, p.Callsign
	case 3:
		p.Task, p.TaskSince = rapid.SampledFrom([]string{"", "one", "two"}).Draw(t, "task"), t0
	case 4:
		p.Branch = rapid.SampledFrom([]string{"", "main", "lane"}).Draw(t, "branch")
	case 5:
		p.Checkout = rapid.SampledFrom([]string{"", "/w/a", "/w/b"}).Draw(t, "checkout")
	case 6:
		p.Mine = make([]string, rapid.IntRange(0, 2).Draw(t, "files"))
	case 7:
		p.Messages = !p.Messages
	}
}

// model reads the texts, and knows nothing else.
type model struct {
	me     string
	agents map[string]agent
	tasks  []string // whose task or place changed, in the text read last
}

type agent struct {
	described              bool
	task, checkout, branch string
}

var (
	fullHead = regexp.MustCompile(`^📡 Telecom: you are (\w+)\. `)
	newsHead = regexp.MustCompile(`^📡 Telecom: news of your team \(you are (\w+)\)$`)
	labelled = regexp.MustCompile(`^• (?:(joined|now near your work|also here): )?(\w+) \[busy\](?: on (\w+))?(?:  in (\S+))?$`)
	taskLine = regexp.MustCompile(`^    task: (\w+) \(0s ago\)$`)
	away     = regexp.MustCompile(`^(?:Away from your work so far|• joined, away from your work): (.+)$`)
	gone     = regexp.MustCompile(`^• (\w+(?:, \w+)*) left$`)
	rename   = regexp.MustCompile(`^• renamed: (.+)$`)
	worksOn  = regexp.MustCompile(`^• (\w+) (?:has no task now|now works on: (\w+))$`)
	isNow    = regexp.MustCompile(`^• (\w+) is now (?:in (your checkout|\S+), )?on (\w+|no branch)$`)
)

func (m *model) read(t *rapid.T, text string) {
	m.tasks = nil
	if text == "" {
		return
	}
	last := "" // whom the line before is about
	for i, line := range strings.Split(text, "\n") {
		var f []string
		is := func(re *regexp.Regexp) bool { f = re.FindStringSubmatch(line); return f != nil }
		switch {
		case i == 0 && is(fullHead):
			*m = model{me: f[1], agents: map[string]agent{}}
		case i == 0 && is(newsHead):
			m.me = f[1]
			if m.agents == nil {
				m.agents = map[string]agent{}
			}
		case is(gone):
			for _, c := range strings.Split(f[1], ", ") {
				m.get(t, c, line)
				delete(m.agents, c)
			}
		case is(rename):
			was := m.agents
			m.agents = map[string]agent{}
			moved := map[string]bool{}
			for _, r := range strings.Split(f[1], ", ") {
				from, to, _ := strings.Cut(r, " → ")
				if _, ok := was[from]; !ok {
					t.Fatalf("%q: who is %s?", line, from)
				}
				m.agents[to], moved[from] = was[from], true
			}
			for c, a := range was {
				if _, twice := m.agents[c]; twice && !moved[c] {
					t.Fatalf("%q: two are called %s", line, c)
				} else if !moved[c] {
					m.agents[c] = a
				}
			}
		case is(labelled):
			a, there := m.agents[f[2]]
			if joins := f[1] == "joined" || f[1] == ""; joins == there || a.described {
				t.Fatalf("%q, of one that is %+v", line, a)
			}
			last = f[2]
			m.agents[last] = agent{described: true, branch: f[3], checkout: f[4]}
		case is(taskLine):
			a := m.get(t, last, line)
			a.task = f[1]
			m.agents[last] = a
		case is(away):
			for _, entry := range strings.Split(f[1], "; ") {
				c, _, _ := strings.Cut(entry, " ")
				if _, there := m.agents[c]; there {
					t.Fatalf("%q: %s is there already", line, c)
				}
				m.agents[c] = agent{}
			}
		case is(worksOn):
			a := m.get(t, f[1], line)
			a.task, m.tasks = f[2], append(m.tasks, f[1])
			m.agents[f[1]] = a
		case is(isNow):
			a := m.get(t, f[1], line)
			switch f[2] {
			case "":
			case "your checkout":
				a.checkout = ""
			default:
				a.checkout = f[2]
			}
			a.branch, m.tasks = strings.TrimPrefix(f[3], "no branch"), append(m.tasks, f[1])
			m.agents[f[1]] = a
		case strings.HasPrefix(line, "Call read "):
		default:
			t.Fatalf("%q can't be read", line)
		}
	}
}

func (m *model) get(t *rapid.T, callsign, line string) agent {
	a, ok := m.agents[callsign]
	if !ok {
		t.Fatalf("%q: who is %s?", line, callsign)
	}
	return a
}

// knows checks that a model knows what one knows that has just read a full brief.
func (m *model) knows(t *rapid.T, now model) {
	if now.me != "" && m.me != now.me {
		t.Fatalf("it takes itself for %q, and is %q", m.me, now.me)
	}
	if len(m.agents) != len(now.agents) {
		t.Fatalf("it knows of %v, there are %v", m.agents, now.agents)
	}
	for c, want := range now.agents {
		if got, ok := m.agents[c]; !ok || want.described && got != want {
			t.Fatalf("it knows of %s: %+v (%v), a full brief says %+v", c, got, ok, want)
		}
	}
}

// everybody reports whether the model knows all who are there, by the name that
// it was told last.
func (m *model) everybody(peers []brief.Peer, told brief.Told) bool {
	for _, p := range peers {
		if _, ok := m.agents[told.Peers[p.Session].Callsign]; !ok {
			return false
		}
	}
	return len(m.agents) == len(peers)
}
