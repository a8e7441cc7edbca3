package delivery

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

var t0 = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)

// everything is room for any number of test messages.
const everything = 1 << 30

func call(id string) Message { return Message{ID: id, Kind: Call, Text: "text of " + id} }

func calls(ids string) []Message {
	var out []Message
	for id := range strings.FieldsSeq(ids) {
		out = append(out, call(id))
	}
	return out
}

func idsOf(ms []Message) string {
	var ids []string
	for _, m := range ms {
		ids = append(ids, m.ID)
	}
	return strings.Join(ids, " ")
}

// In a script every line is one call on the desk and what it must give.
//
//	sync a b = new|old       what the inbox holds
//	take [ROOM] = a b +1     and one more waits
//	wake [+5s] = yes|no      is a wake due, after so long
//	settle, context, decline N, fail N, end, abort, restart, tired, waiting
//	unknown a                like sync, of a kind we don't know
//	sent a                   it was sent now, and is not in the inbox yet
var scripts = []struct{ name, script string }{
	{"arrive, wake, take, settle", `
		wake = no
		sync a = new
		wake = yes
		take = a
		wake = no
		settle a = a
		waiting =
		sync = old
		end
		wake = no
		take =`},
	{"the same inbox again is nothing new", `
		sync a b = new
		sync a b = old
		sync a b c = new`},
	{"order is that of the ids", `
		sync c a = new
		sync c a b = new
		take = a b c`},
	{"what left the inbox is forgotten", `
		sync a b = new
		sync b = old
		take = b
		sync = old
		end
		take =`},
	{"nothing is offered twice", `
		sync a = new
		take = a
		sync a b = new
		take = b
		take =
		waiting = a b`},
	{"what is not used comes back at once", `
		sync a b = new
		take = a b
		decline 1
		wake = yes
		take = a b`},
	{"only that batch comes back", `
		sync a = new
		take = a
		sync a b = new
		take = b
		decline 2
		decline 9
		take = b
		waiting = a b`},
	{"an old number takes nothing back", `
		sync a = new
		take = a
		decline 1
		take = a
		decline 1
		take =`},
	{"offered and not seen: again, later each time", `
		sync a = new
		take = a
		end
		wake = no
		wake +999ms = no
		wake +1s = yes
		take = a
		end
		wake +1999ms = no
		wake +2s = yes
		take = a
		end
		wake +3999ms = no
		wake +4s = yes`},
	{"back-off has an end", `
		sync a = new
		take = a
		end
		take = a
		end
		take = a
		end
		take = a
		end
		take = a
		end
		take = a
		end
		wake +31s = no
		wake +32s = yes
		take = a
		end
		wake +59s = no
		wake +60s = yes
		take = a
		end
		wake +60s = yes`},
	{"back-off binds wakes, not boundaries", `
		sync a = new
		take = a
		end
		wake = no
		take = a`},
	{"a host that could not use it backs off too", `
		sync a b = new
		take = a b
		fail 1
		wake = no
		wake +1s = yes
		take = a b
		fail 1
		take =`},
	{"a failing run does not slow down the next message", `
		sync a = new
		take = a
		end
		sync a b = new
		wake = yes
		take = a b`},
	{"abort holds what was sent before and is read after it", `
		sent a
		abort
		sync a = new
		wake = no
		sync a b = new
		wake = yes
		take = a b`},
	{"a run that ends by itself holds nothing", `
		sent a
		abort
		end
		sync a = new
		wake = yes`},
	{"abort holds; the next message wakes and takes it along", `
		sync a b = new
		take 0 = a +1
		abort
		wake +9h = no
		waiting = a b
		sync a b c = new
		wake = yes
		take = a b c`},
	{"held goes with the next prompt", `
		sync a = new
		abort
		wake +9h = no
		take = a
		settle a = a`},
	{"a prompt that is not used leaves it held", `
		sync a = new
		abort
		take = a
		decline 1
		wake +9h = no
		take = a`},
	{"what a later run lost is no longer held", `
		sync a = new
		abort
		take = a
		end
		wake = no
		wake +1s = yes`},
	{"a plain end frees nothing that is held", `
		sync a = new
		abort
		end
		wake +9h = no`},
	{"in the conversation: never again", `
		sync a b = new
		take 0 = a +1
		context a x
		decline 1
		end
		abort
		waiting = b
		take = b
		take =
		settle a = a`},
	{"room: at least one", `
		sync a b = new
		take 0 = a +1
		take 0 = b
		take 0 =`},
	{"room: what fits, oldest first", `
		sync a b c = new
		take 149 = a +2
		take 150 = b c`},
	{"settle of several, some unknown, is heard of once", `
		sync a b c = new
		settle b x c b = b c
		settle b =
		take = a`},
	{"a message that comes again after it was settled", `
		sync a = new
		take = a
		settle a = a
		sync a = old
		repeated a b = a
		take =`},
	{"unknown kinds stay where they are", `
		unknown a = old
		take =
		wake = no`},
	{"hop limit: waits for a prompt", `
		tiring a = new
		wake +9h = no
		tired = a
		take = a
		tired =`},
	{"hop limit: a fresh message takes it along", `
		tiring a = new
		sync a b = new
		wake = yes
		take = a b`},
	{"a new sidecar goes on", `
		sync a b = new
		take 0 = a +1
		abort
		restart
		sync a b = new
		restore
		wake +9h = no
		take = a b
		end
		restart
		sync a b = new
		restore
		wake +999ms = no
		wake +2s = yes`},
	{"what was offered when the sidecar died is offered again", `
		sync a b = new
		take 0 = a +1
		restart
		sync a b = new
		restore
		take = a b`},
	{"memory of what is not there any more", `
		sync a = new
		take = a
		abort
		restart
		sync b = new
		restore
		wake = yes
		take = b`},
}

func TestScripts(t *testing.T) {
	for _, tt := range scripts {
		t.Run(tt.name, func(t *testing.T) {
			d, memory := new(Desk), Memory{}
			clock, sent := t0, make(map[string]time.Time) // a message is sent when it is first named
			send := func(ids string) []Message {
				var out []Message
				for _, m := range calls(ids) {
					if _, known := sent[m.ID]; !known {
						clock = clock.Add(time.Millisecond)
						sent[m.ID] = clock
					}
					m.Sent = sent[m.ID]
					out = append(out, m)
				}
				return out
			}
			for line := range strings.Lines(tt.script) {
				line = strings.TrimSpace(line)
				if line == "" {
					continue
				}
				command, want, _ := strings.Cut(line, "=")
				verb, args, _ := strings.Cut(strings.TrimSpace(command), " ")
				got := ""
				switch verb {
				case "sync":
					got = arrival(d.Sync(send(args)))
				case "sent":
					send(args)
				case "tiring", "unknown":
					m := send(args)[0]
					if verb == "unknown" {
						m.Kind = "fax"
					} else {
						m.Hops = MaxHops + 1
					}
					got = arrival(d.Sync([]Message{m}))
				case "repeated":
					got = strings.Join(d.Repeated(calls(args)), " ")
				case "wake":
					now := t0
					if args != "" {
						now = t0.Add(duration(t, args))
					}
					got = map[bool]string{true: "yes", false: "no"}[d.WakeDue(now)]
				case "take":
					room := everything
					if args != "" {
						fmt.Sscan(args, &room)
					}
					b := d.Take(room)
					got = idsOf(b.Messages)
					if b.More > 0 {
						got += fmt.Sprintf(" +%d", b.More)
					}
					if b.Empty() != (b.Number == 0) {
						t.Errorf("%s: batch of %d has number %d", line, len(b.Messages), b.Number)
					}
				case "settle":
					got = strings.Join(d.Settle(strings.Fields(args)), " ")
				case "context":
					d.MarkInContext(strings.Fields(args))
				case "decline", "fail":
					var n int
					fmt.Sscan(args, &n)
					if verb == "decline" {
						d.Decline(n)
					} else {
						d.Fail(n, t0)
					}
				case "end", "abort":
					d.RunEnded(verb == "abort", 0, clock, t0)
				case "tired":
					got = idsOf(d.Tired())
				case "waiting":
					got = idsOf(d.Waiting())
				case "restart":
					memory = throughJSON(t, d.Memory())
					d = new(Desk)
				case "restore":
					d.Restore(memory, t0)
				default:
					t.Fatalf("unknown command %q", verb)
				}
				if want = strings.TrimSpace(want); got != want {
					t.Errorf("%s: got %q, want %q", line, got, want)
				}
			}
		})
	}
}

func arrival(new bool) string { return map[bool]string{true: "new", false: "old"}[new] }

func duration(t *testing.T, s string) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(strings.TrimPrefix(s, "+"))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func throughJSON(t rapid.TB, m Memory) Memory {
	t.Helper()
	data, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	var out Memory
	if err := json.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestRoom(t *testing.T) {
	for _, tt := range []struct{ tokens, window, want int }{
		{0, 0, 96 << 10}, // unknown
		{5000, 0, 96 << 10},
		{0, 128000, 96000},
		{127996, 128000, 3},
		{128000, 128000, 0},
		{200000, 128000, 0}, // more than full
	} {
		if got := Room(tt.tokens, tt.window); got != tt.want {
			t.Errorf("Room(%d, %d) = %d, want %d", tt.tokens, tt.window, got, tt.want)
		}
	}
}

func TestLineage(t *testing.T) {
	var many []Message
	var last []string
	for i := range 20 {
		id := fmt.Sprintf("m%02d", i)
		many = append(many, call(id))
		if i >= 4 {
			last = append(last, id)
		}
	}
	for _, tt := range []struct {
		name   string
		handed []Message
		hops   int
		after  []string
	}{
		{"nothing", nil, 0, nil},
		{"a human's", []Message{{ID: "a"}}, 1, []string{"a"}},
		{"the longest chain", []Message{{ID: "a", Hops: 2}, {ID: "b", Hops: 5}, {ID: "c"}}, 6, []string{"a", "b", "c"}},
		{"with a human's prompt the chain starts anew", []Message{{ID: "a", Hops: -1}}, 0, []string{"a"}},
		{"many", many, 1, last},
	} {
		hops, after := Lineage(tt.handed)
		if hops != tt.hops {
			t.Errorf("%s: Lineage hops = %d, want %d", tt.name, hops, tt.hops)
		}
		if diff := cmp.Diff(tt.after, after); diff != "" {
			t.Errorf("%s: Lineage after (-want +got):\n%s", tt.name, diff)
		}
	}
}

// deskModel is what a desk must look like from outside, said plainly.
type deskModel struct {
	desk    *Desk
	inbox   map[string]Message
	waiting map[string]bool // may be handed over now
	held    map[string]bool // of those, the ones that wake nobody
	offered map[string]int  // handed over, in which batch
	parked  map[string]bool // was held when it was offered
	context map[string]bool // the conversation has it
	settled map[string]bool
	now     time.Time
	stopped time.Time // by its human
	serial  int
}

func (m *deskModel) inboxNow() []Message {
	var out []Message
	for _, msg := range m.inbox {
		out = append(out, msg)
	}
	return out // in no order
}

func (m *deskModel) available() []string {
	var ids []string
	for id := range m.waiting {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

func (m *deskModel) forget(id string) {
	delete(m.inbox, id)
	delete(m.waiting, id)
	delete(m.held, id)
	delete(m.offered, id)
	delete(m.parked, id)
	delete(m.context, id)
}

func (m *deskModel) anyID(t *rapid.T) string {
	return fmt.Sprintf("%04d", rapid.IntRange(-1, m.serial-1).Draw(t, "id")) // -1 never was
}

// Nothing is handed over twice without somebody having said that it came to
// nothing, nothing is lost, and the order is kept.
func TestDeskProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &deskModel{
			desk: new(Desk), inbox: make(map[string]Message), waiting: make(map[string]bool), held: make(map[string]bool),
			offered: make(map[string]int), parked: make(map[string]bool), context: make(map[string]bool), settled: make(map[string]bool), now: t0,
		}
		batches := 0
		back := func(pass func(batch int) bool, failed bool) {
			for id, batch := range m.offered {
				if pass(batch) && !m.context[id] {
					m.waiting[id] = true
					m.held[id] = m.parked[id] && !failed
					delete(m.offered, id)
				}
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"arrive": func(t *rapid.T) {
				n := rapid.IntRange(1, 3).Draw(t, "n")
				for range n {
					msg := call(fmt.Sprintf("%04d", m.serial))
					msg.Hops = rapid.SampledFrom([]int{0, 1, MaxHops, MaxHops + 1}).Draw(t, "hops")
					msg.Text = strings.Repeat("x", rapid.IntRange(0, 500).Draw(t, "size"))
					msg.Sent = m.now
					if rapid.Bool().Draw(t, "read late") {
						msg.Sent = m.now.Add(-3 * time.Minute)
					}
					m.serial++
					m.inbox[msg.ID] = msg
					m.waiting[msg.ID] = true
					m.held[msg.ID] = !m.stopped.IsZero() && !msg.Sent.After(m.stopped)
				}
				if !m.desk.Sync(m.inboxNow()) {
					t.Fatal("arrival was not noticed")
				}
			},
			"look": func(t *rapid.T) {
				if m.desk.Sync(m.inboxNow()) {
					t.Fatal("arrival of nothing")
				}
			},
			"take": func(t *rapid.T) {
				room := rapid.IntRange(0, 2000).Draw(t, "room")
				avail := m.available()
				b := m.desk.Take(room)
				got := b.IDs()
				if len(got) > len(avail) || !slices.Equal(got, avail[:len(got)]) {
					t.Fatalf("Take = %v, want a beginning of %v", got, avail)
				}
				if len(avail) > 0 && len(got) == 0 {
					t.Fatalf("Take = nothing of %v", avail)
				}
				if b.More != len(avail)-len(got) {
					t.Fatalf("More = %d, want %d", b.More, len(avail)-len(got))
				}
				if len(got) > 0 {
					if b.Number <= batches {
						t.Fatalf("batch number %d after %d", b.Number, batches)
					}
					batches = b.Number
				}
				for _, id := range got {
					m.parked[id] = m.held[id]
					delete(m.waiting, id)
					delete(m.held, id)
					m.offered[id] = b.Number
				}
			},
			"decline": func(t *rapid.T) {
				n := rapid.IntRange(0, batches+1).Draw(t, "batch")
				m.desk.Decline(n)
				back(func(b int) bool { return b == n }, false)
			},
			"fail": func(t *rapid.T) {
				n := rapid.IntRange(0, batches+1).Draw(t, "batch")
				m.desk.Fail(n, m.now)
				back(func(b int) bool { return b == n }, true)
			},
			"end": func(t *rapid.T) {
				aborted := rapid.Bool().Draw(t, "aborted")
				m.desk.RunEnded(aborted, 0, m.now, m.now)
				back(func(int) bool { return true }, true)
				m.stopped = time.Time{}
				if aborted {
					m.stopped = m.now
					for id := range m.waiting {
						m.held[id] = true
					}
				}
				m.now = m.now.Add(2 * time.Minute) // past every back-off
			},
			"context": func(t *rapid.T) {
				id := m.anyID(t)
				m.desk.MarkInContext([]string{id})
				if _, there := m.inbox[id]; there && !m.settled[id] {
					m.context[id] = true
					delete(m.waiting, id)
					delete(m.held, id)
				}
			},
			"settle": func(t *rapid.T) {
				id := m.anyID(t)
				_, there := m.inbox[id]
				want := there && !m.settled[id]
				if got := m.desk.Settle([]string{id}); (len(got) == 1) != want {
					t.Fatalf("Settle(%s) = %v, want it: %v", id, got, want)
				}
				m.settled[id] = true
				msg := m.inbox[id]
				m.forget(id)
				if there && rapid.Bool().Draw(t, "file could not be removed") {
					m.inbox[id] = msg // it comes again and again
				}
			},
			"vanish": func(t *rapid.T) {
				m.forget(m.anyID(t))
				m.desk.Sync(m.inboxNow())
			},
			"restart": func(t *rapid.T) {
				memory := throughJSON(t, m.desk.Memory())
				m.desk, m.stopped = new(Desk), time.Time{}
				var all []string
				for id := range m.settled {
					all = append(all, id) // the session's file is searched on start
				}
				m.desk.Settle(all)
				m.desk.Sync(m.inboxNow())
				m.desk.Restore(memory, m.now)
				m.now = m.now.Add(2 * time.Minute)
				batches = 0
				for id := range m.inbox {
					if !m.settled[id] {
						m.waiting[id] = true
					}
				}
				clear(m.offered)
				clear(m.context)
			},
			"": func(t *rapid.T) {
				var want []string
				wakes := false
				for id, msg := range m.inbox {
					if m.settled[id] {
						continue
					}
					if !m.context[id] {
						want = append(want, id)
					}
					if m.waiting[id] && !m.held[id] && msg.Hops <= MaxHops {
						wakes = true
					}
				}
				slices.Sort(want)
				if got := idsOf(m.desk.Waiting()); got != strings.Join(want, " ") {
					t.Fatalf("Waiting = %s, want %v", got, want)
				}
				if got := m.desk.WakeDue(m.now.Add(time.Minute)); got != wakes {
					t.Fatalf("WakeDue = %v, want %v (waiting %v, held %v)", got, wakes, m.waiting, m.held)
				}
			},
		})
		// In the end, all that nobody has said to have arrived comes once more.
		m.desk.RunEnded(false, 0, m.now, m.now)
		back(func(int) bool { return true }, true)
		want := m.available()
		if got := m.desk.Take(everything).IDs(); !slices.Equal(got, want) {
			t.Fatalf("in the end Take = %v, want %v", got, want)
		}
	})
}
