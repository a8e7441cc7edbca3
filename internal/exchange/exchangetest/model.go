package exchangetest

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"switchboard/internal/delivery"
	"switchboard/internal/exchange"
)

// model is an exchange said plainly, and the handles and leases on the real
// one.
type model struct {
	Subject
	handles []exchange.Exchange

	leases    map[exchange.SessionKey]exchange.Lease
	published map[exchange.SessionKey]string // name on the record; gone from here when gone from the roster
	memory    map[exchange.SessionKey]string
	mail      map[exchange.SessionKey][]delivery.Message
	unseen    map[exchange.SessionKey]bool // posted since the owner last looked

	journal []exchange.Entry
	seq     uint64
	readers []exchange.Cursor
}

var modelKeys = []exchange.SessionKey{key("a"), key("b"), {Host: "codex", ID: "a"}}

// testModel does anything in any order, and compares.
func testModel(outer *testing.T, New func(t *testing.T) Subject) {
	rapid.Check(outer, func(t *rapid.T) {
		s := New(outer)
		m := &model{
			Subject: s, handles: []exchange.Exchange{s.Store, s.Reopen()},
			leases:    make(map[exchange.SessionKey]exchange.Lease),
			published: make(map[exchange.SessionKey]string),
			memory:    make(map[exchange.SessionKey]string),
			mail:      make(map[exchange.SessionKey][]delivery.Message),
			unseen:    make(map[exchange.SessionKey]bool),
			readers:   make([]exchange.Cursor, 3),
		}
		defer func() {
			for _, l := range m.leases {
				l.Release(false)
			}
		}()
		t.Repeat(map[string]func(*rapid.T){
			"own":      m.own,
			"end":      m.end,
			"publish":  m.publish,
			"remember": m.remember,
			"post":     m.post,
			"repost":   m.repost,
			"settle":   m.settle,
			"look":     m.look,
			"append":   m.append,
			"read":     m.read,
			"rewrite":  m.rewrite,
			"":         m.check,
		})
	})
}

func (m *model) handle(t *rapid.T) exchange.Exchange {
	return m.handles[rapid.IntRange(0, len(m.handles)-1).Draw(t, "handle")]
}

func anyKey(t *rapid.T) exchange.SessionKey { return rapid.SampledFrom(modelKeys).Draw(t, "key") }

// owned draws a session that has an owner, or skips.
func (m *model) owned(t *rapid.T) (exchange.SessionKey, exchange.Lease) {
	k := anyKey(t)
	if m.leases[k] == nil {
		t.Skip("nobody owns it")
	}
	return k, m.leases[k]
}

func must(t *rapid.T, what string, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

func (m *model) own(t *rapid.T) {
	k := anyKey(t)
	l, err := m.handle(t).Own(k)
	if m.leases[k] != nil {
		var owned *exchange.OwnedError
		if !errors.As(err, &owned) {
			t.Fatalf("Own(%s): %v, want an OwnedError", k, err)
		}
		return
	}
	must(t, "Own", err)
	m.leases[k], m.unseen[k] = l, true
	got, err := l.Recall()
	must(t, "Recall", err)
	if string(got) != m.memory[k] {
		t.Fatalf("Recall = %q, want %q", got, m.memory[k])
	}
}

func (m *model) end(t *rapid.T) {
	k, l := m.owned(t)
	switch rapid.SampledFrom([]string{"leave", "hand over", "die"}).Draw(t, "how") {
	case "leave":
		must(t, "Release", l.Release(false))
		if m.published[k] == l.Generation() {
			delete(m.published, k)
		}
	case "hand over":
		must(t, "Release", l.Release(true))
	case "die":
		m.Kill(k, l)
	}
	delete(m.leases, k)
}

func (m *model) publish(t *rapid.T) {
	k, l := m.owned(t)
	must(t, "Publish", l.Publish(record(k)))
	m.published[k] = l.Generation()
}

func (m *model) remember(t *rapid.T) {
	k, l := m.owned(t)
	data := rapid.StringN(1, 20, -1).Draw(t, "memory")
	must(t, "Remember", l.Remember([]byte(data)))
	m.memory[k] = data
}

func (m *model) post(t *rapid.T) {
	k, msg := anyKey(t), message(rapid.String().Draw(t, "text"))
	must(t, "Post", m.handle(t).Post(k, msg))
	m.mail[k] = append(m.mail[k], msg)
	m.unseen[k] = true
}

func (m *model) repost(t *rapid.T) {
	k := anyKey(t)
	if len(m.mail[k]) == 0 {
		t.Skip("no mail")
	}
	msg := rapid.SampledFrom(m.mail[k]).Draw(t, "message")
	msg.Text = "something else"
	must(t, "Post", m.handle(t).Post(k, msg))
}

func (m *model) settle(t *rapid.T) {
	k, l := m.owned(t)
	var ids []string
	m.mail[k] = slices.DeleteFunc(slices.Clone(m.mail[k]), func(msg delivery.Message) bool {
		if rapid.Bool().Draw(t, "this one") {
			ids = append(ids, msg.ID)
			return true
		}
		return false
	})
	ids = append(ids, message("").ID)
	must(t, "Settle", l.Settle(ids...))
}

func (m *model) look(t *rapid.T) {
	k, l := m.owned(t)
	if !l.Changed() && m.unseen[k] {
		t.Fatalf("Changed of %s is false after a message", k)
	}
	m.unseen[k] = false
}

func (m *model) append(t *rapid.T) {
	var es []exchange.Entry
	for i := range rapid.IntRange(1, 4).Draw(t, "entries") {
		es = append(es, entry(fmt.Sprint("entry ", m.seq+uint64(i)+1)))
	}
	out, err := m.handle(t).Append(team, es...)
	must(t, "Append", err)
	if len(out) != len(es) {
		t.Fatalf("Append of %d returned %d", len(es), len(out))
	}
	for _, e := range out {
		m.seq++
		if e.Seq != m.seq {
			t.Fatalf("Append gave number %d, want %d", e.Seq, m.seq)
		}
	}
	m.journal = append(m.journal, out...)
}

func (m *model) read(t *rapid.T) {
	i := rapid.IntRange(0, len(m.readers)-1).Draw(t, "reader")
	from := m.readers[i]
	got, next, err := m.handle(t).Read(team, from)
	must(t, "Read", err)
	var want []exchange.Entry
	for _, e := range m.journal {
		if e.Seq > from.Seq {
			want = append(want, e)
		}
	}
	if numbers(got) != numbers(want) {
		t.Fatalf("Read after %+v = %s, want %s", from, numbers(got), numbers(want))
	}
	if len(want) > 0 && next.Seq != want[len(want)-1].Seq || len(want) == 0 && next.Seq != from.Seq {
		t.Fatalf("cursor %+v after reading %s from %+v", next, numbers(got), from)
	}
	m.readers[i] = next
	if rapid.IntRange(0, 5).Draw(t, "start again") == 0 {
		m.readers[i] = exchange.Cursor{}
	}
}

func (m *model) rewrite(t *rapid.T) {
	every := rapid.Uint64Range(1, 4).Draw(t, "drop every")
	keep := func(es []exchange.Entry) []exchange.Entry {
		return slices.DeleteFunc(slices.Clone(es), func(e exchange.Entry) bool { return e.Seq%every == 0 })
	}
	given := ""
	must(t, "Rewrite", m.handle(t).Rewrite(team, func(es []exchange.Entry) []exchange.Entry {
		given = numbers(es)
		return keep(es)
	}))
	if want := numbers(m.journal); given != want && len(m.journal) > 0 {
		t.Fatalf("Rewrite was given %s, want %s", given, want)
	}
	m.journal = keep(m.journal)
}

func (m *model) check(t *rapid.T) {
	x := m.handle(t)
	for _, k := range modelKeys {
		got, err := x.Waiting(k)
		must(t, "Waiting", err)
		if diff := mailDiff(m.mail[k], got); diff != "" {
			t.Fatalf("Waiting(%s): %s", k, diff)
		}
		one, err := x.Session(k)
		if want := m.published[k]; want == "" && !errors.Is(err, exchange.ErrGone) || want != "" && (err != nil || one.Generation != want || one.Presence != exchange.Live) {
			t.Fatalf("Session(%s) = %+v, %v; want the record of %q", k, one, err, want)
		}
		if l := m.leases[k]; l != nil && l.Published() != (m.published[k] == l.Generation()) {
			t.Fatalf("Published of %s = %v, want the other", k, l.Published())
		}
	}
	all, err := x.Sessions()
	must(t, "Sessions", err)
	if len(all) != len(m.published) {
		t.Fatalf("%d sessions, want %d", len(all), len(m.published))
	}
}
