package agent_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"switchboard/internal/agent"
	"switchboard/internal/guard"
	"switchboard/internal/lifecycle"
	"switchboard/internal/team"
)

// Whatever teams do, and whoever dies in the middle of it: nothing unread is
// overwritten without a word, callsigns are unique, and no edit stays open.
func TestCrew(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		mode := rapid.SampledFrom([]guard.Mode{guard.Standard, guard.Strict}).Draw(t, "mode")
		c := newCrew(t, mode, rapid.IntRange(1, 4).Draw(t, "members"))
		files := []team.Path{at("x"), at("y")}
		for _, p := range files {
			c.disk[p.Rel] = []string{"old"}
		}
		calls := 0
		one := func(of func(*hand) bool) *hand {
			fit := slices.DeleteFunc(slices.Clone(c.members), func(h *hand) bool { return !of(h) })
			if len(fit) == 0 {
				t.Skip("nobody")
			}
			who := rapid.IntRange(0, len(fit)-1).Draw(t, "who")
			t.Log(fit[who].id)
			return fit[who]
		}
		alive := func(h *hand) bool { return h.brain != nil }
		dead := func(h *hand) bool { return h.brain == nil }
		busy := func(h *hand) bool { return alive(h) && len(h.calls) > 0 }
		pick := func(h *hand) *call {
			return h.calls[rapid.SampledFrom(slices.Sorted(maps.Keys(h.calls))).Draw(t, "call")]
		}
		t.Repeat(map[string]func(*rapid.T){
			"begin": func(t *rapid.T) {
				h := one(alive)
				calls++
				op := rapid.SampledFrom([]agent.Op{agent.Reads, agent.Edits, agent.Edits, agent.Writes, agent.Writes}).Draw(t, "op")
				h.begin(fmt.Sprintf("c%03d", calls), op, rapid.SampledFrom(files).Draw(t, "file"))
			},
			"end": func(t *rapid.T) {
				h := one(busy)
				k := pick(h)
				switch v, answered := h.verdict(k); {
				case !answered:
					t.Skip("it waits")
				case v.Block:
					h.drop(k)
				default:
					h.end(k)
				}
			},
			"run": func(t *rapid.T) {
				h := one(busy)
				k := pick(h)
				if v, answered := h.verdict(k); !answered || v.Block || k.ran {
					t.Skip("it does not run")
				}
				h.run(k)
			},
			"fail": func(t *rapid.T) {
				h := one(busy)
				k := pick(h)
				if v, answered := h.verdict(k); !answered || v.Block || k.ran {
					t.Skip("it does not run")
				}
				h.tell(k, true)
			},
			"fail after all was done": func(t *rapid.T) {
				h := one(busy)
				k := pick(h)
				if v, answered := h.verdict(k); !answered || v.Block || k.forgotten {
					t.Skip("it does not run")
				}
				if !k.ran {
					h.run(k)
				}
				h.tell(k, true)
			},
			"a program changes a file": func(t *rapid.T) {
				p := rapid.SampledFrom(files).Draw(t, "file")
				calls++
				c.disk[p.Rel] = append(slices.Clone(c.disk[p.Rel]), fmt.Sprint("program-", calls))
			},
			"go to another branch": func(t *rapid.T) {
				h := one(func(h *hand) bool { return alive(h) && len(h.calls) == 0 && len(h.branch)+len(h.other) > 0 })
				if len(h.branch) == 0 || len(h.other) > 0 && rapid.Bool().Draw(t, "the one before") {
					h.goTo(h.other)
					return
				}
				h.goTo(h.branch[:rapid.IntRange(0, len(h.branch)-1).Draw(t, "steps")])
			},
			"leave": func(t *rapid.T) {
				h := one(alive)
				h.catchUp(false)
				h.handle(agent.Leaving{})
				h.gone()
			},
			"another extension blocks": func(t *rapid.T) {
				h := one(busy)
				k := pick(h)
				if _, answered := h.verdict(k); !answered || k.ran {
					t.Skip("it waits, or is over")
				}
				h.drop(k)
			},
			"ask the human": func(t *rapid.T) {
				h := one(busy)
				h.handle(agent.Lived{Fact: lifecycle.DialogOpened{}})
				h.handle(agent.Lived{Fact: lifecycle.DialogClosed{}})
			},
			"respond": func(t *rapid.T) { one(alive).newResponse() },
			"time": func(t *rapid.T) {
				c.pass(time.Duration(rapid.IntRange(1, 2500).Draw(t, "ms")) * time.Millisecond)
			},
			"rings get lost": func(t *rapid.T) {
				h := one(alive)
				h.deaf = !h.deaf
			},
			"die": func(t *rapid.T) {
				h := one(alive)
				if len(h.calls) > 0 && rapid.Bool().Draw(t, "in a write") {
					if k := pick(h); k.op != agent.Reads {
						if v, answered := h.verdict(k); answered && !v.Block && !k.ran {
							h.run(k) // never reported
						}
					}
				}
				h.gone()
			},
			"the helper dies": func(t *rapid.T) {
				h := one(alive)
				answers := h.answers
				h.start(true)
				// A verdict that was given stays given; others are asked for again.
				for _, id := range slices.Sorted(maps.Keys(h.calls)) {
					k := h.calls[id]
					if v, ok := answers[k.req]; ok {
						h.answers[k.req] = v
					} else {
						k.req = h.ask()
						h.handle(agent.ToolAbout{Req: k.req, CallID: id, Tool: string(k.op), Op: k.op, Path: k.path, Hash: c.hash(k.path)})
					}
				}
			},
			"miss": func(t *rapid.T) { one(alive).miss(one(dead)) },
			"come back": func(t *rapid.T) {
				h := one(dead)
				h.start(false)
				c.pass(time.Second) // what others made alone is written down now
			},
			"somebody comes": func(t *rapid.T) {
				if len(c.members) == 5 {
					t.Skip("it is a full house")
				}
				c.add()
			},
			"rewrite": func(t *rapid.T) { c.shorten(t) },
			"": func(t *rapid.T) {
				if c.silent > 0 {
					t.Fatalf("an unread change was overwritten without a word")
				}
				c.check(t)
			},
		})
		c.finish(t)
	})
}

// check compares what live members that have read everything know.
func (c *crew) check(t *rapid.T) {
	var fold team.Team
	agent.Fold(&fold, c.journal)
	called := make(map[string]string)
	for _, h := range c.members {
		if h.brain == nil || h.read < c.seq {
			continue
		}
		m, in := fold.Member(h.id)
		if !in || m.Callsign != h.record.Callsign {
			t.Fatalf("%s calls itself %q, the journal %q", h.id, h.record.Callsign, m.Callsign)
		}
		if o, taken := called[m.Callsign]; taken {
			t.Fatalf("%s and %s are both called %s", h.id, o, m.Callsign)
		}
		called[m.Callsign] = h.id
		others := slices.DeleteFunc(fold.Members(), func(m team.Member) bool { return m.Session == h.id })
		if a, b := fmt.Sprint(h.brain.Peers()), fmt.Sprint(others); a != b {
			t.Fatalf("%s knows of\n%s\nin the journal are\n%s", h.id, a, b)
		}
	}
}

// shorten makes the journal shorter, which changes nothing that it tells.
func (c *crew) shorten(t *rapid.T) {
	c.journal = agent.Shorten(c.journal, c.now)
	var short, whole team.Team
	agent.Fold(&short, c.journal)
	agent.Fold(&whole, c.whole)
	if a, b := c.picture(&short), c.picture(&whole); a != b {
		t.Fatalf("the shortened journal tells\n%s\nthe whole\n%s", a, b)
	}
}

// picture is all that a fold tells.
func (c *crew) picture(t *team.Team) string {
	s := fmt.Sprintf("%+v\n%+v\n%+v\n%+v", t.Members(), t.Edits(at("x")), t.Edits(at("y")), t.Log(c.now))
	for _, h := range c.members {
		s += fmt.Sprintf("\n%s, once %s: %+v", h.id, t.Past(h.id), t.OpenEdits(h.id))
	}
	return s
}

// finish has everybody end what is open and leave, the dead by the others'
// hands, and looks at what is left.
func (c *crew) finish(t *rapid.T) {
	for _, h := range c.members {
		h.deaf = false
	}
	c.pass(3 * time.Second)
	for _, h := range c.members {
		for _, id := range slices.Sorted(maps.Keys(h.calls)) {
			if h.brain == nil {
				continue
			}
			k := h.calls[id]
			v, answered := h.verdict(k)
			if !answered {
				t.Fatalf("a verdict for the %s of %s is due for three seconds", k.op, h.id)
			}
			if v.Block {
				h.drop(k)
			} else {
				h.end(k)
			}
		}
	}
	if c.silent > 0 {
		t.Fatalf("an unread change was overwritten without a word")
	}
	last := c.members[0]
	if last.brain == nil {
		last.start(false)
	}
	for range 6 {
		for _, h := range c.members[1:] {
			if h.brain == nil {
				last.miss(h)
			}
		}
	}
	for _, h := range c.members {
		if h.brain != nil {
			h.catchUp(false)
			h.handle(agent.Leaving{})
			h.brain = nil
		}
	}
	var fold team.Team
	agent.Fold(&fold, c.journal)
	if fold.Size() > 0 {
		t.Fatalf("%d members are left", fold.Size())
	}
	if open := c.open(); len(open) > 0 {
		t.Fatalf("still open: %+v", open)
	}
	c.shorten(t)
}
