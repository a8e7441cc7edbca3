package delivery

import (
	"slices"
	"time"
)

// Status is where a waiting message stands.
type Status string

// The statuses. They are written to the session's memory and must not change.
const (
	// Waiting: due at the next boundary, and it may wake an idle session.
	Waiting Status = "waiting"
	// Held: its human stopped the run, so it wakes nobody by itself. It goes
	// with the next prompt, or with the next message that wakes.
	Held Status = "held"
	// Offered: handed to the host, not yet seen in the transcript.
	Offered Status = "offered"
	// InContext: the host's conversation holds it, the session file does not
	// yet. It must not be offered again while this process lives.
	InContext Status = "in-context"
)

// Desk holds the messages that wait for one session and decides when they are
// handed over. The zero Desk is empty and ready.
type Desk struct {
	items   map[string]*item
	seen    map[string]bool // ids that the session's file holds
	known   map[string]bool // ids that the conversation in memory holds
	stopped time.Time       // when its human stopped the latest run; zero if nobody did
	batches int
}

type item struct {
	msg    Message
	status Status
	batch  int       // the batch it was last offered in
	was    Status    // before it was offered
	tries  int       // offers that came to nothing
	due    time.Time // earliest next wake: back-off after a failed offer
}

// Batch is what is handed over at one moment: it becomes one message to the
// model, whatever the number of senders.
type Batch struct {
	Number   int       // names the batch in later calls; 0 is no batch
	Messages []Message // oldest first
	More     int       // how many wait for the next boundary because of their size
}

// Empty reports whether there is nothing to hand over.
func (b Batch) Empty() bool { return len(b.Messages) == 0 }

// IDs lists the ids of the batch's messages.
func (b Batch) IDs() []string {
	ids := make([]string, len(b.Messages))
	for i, m := range b.Messages {
		ids[i] = m.ID
	}
	return ids
}

// Sync takes note of what the inbox holds now, and forgets what it no longer
// holds. It reports whether something new came in.
func (d *Desk) Sync(inbox []Message) (arrived bool) {
	if d.items == nil {
		d.items = make(map[string]*item)
	}
	still := make(map[string]bool, len(inbox))
	for _, m := range inbox {
		still[m.ID] = true
		if d.items[m.ID] == nil && !d.seen[m.ID] && m.Kind.Known() {
			d.items[m.ID] = &item{msg: m, status: Waiting}
			switch {
			case d.known[m.ID]:
				d.items[m.ID].status = InContext
			case !d.stopped.IsZero() && !m.Sent.After(d.stopped): // it was in the inbox by then, unread
				d.items[m.ID].status = Held
			}
			arrived = true
		}
	}
	for id := range d.items {
		if !still[id] {
			delete(d.items, id)
		}
	}
	return arrived
}

// Settle is told ids that the session's file holds. It forgets those on the
// desk and returns them: their inbox files can go. It remembers them all, so
// that a message which comes a second time is not handed over a second time.
func (d *Desk) Settle(ids []string) (settled []string) {
	if d.seen == nil {
		d.seen = make(map[string]bool)
	}
	for _, id := range ids {
		d.seen[id] = true
		if d.items[id] != nil {
			delete(d.items, id)
			settled = append(settled, id)
		}
	}
	return settled
}

// Repeated lists the messages in the inbox that the session's file holds
// already.
func (d *Desk) Repeated(inbox []Message) (ids []string) {
	for _, m := range inbox {
		if d.seen[m.ID] {
			ids = append(ids, m.ID)
		}
	}
	return ids
}

// MarkInContext notes messages that the conversation already holds in memory,
// whether they have been read from the inbox yet or not.
func (d *Desk) MarkInContext(ids []string) {
	if d.known == nil {
		d.known = make(map[string]bool)
	}
	for _, id := range ids {
		d.known[id] = true
		if it := d.items[id]; it != nil {
			it.status = InContext
		}
	}
}

// Room is how many bytes of text may be handed over at one moment: a quarter
// of the context that is left, at three bytes a token so that dense text errs
// on the safe side. Unknown sizes (0) get a fixed share.
func Room(tokens, window int) int {
	const unknown = 96 << 10
	if window <= 0 {
		return unknown
	}
	left := max(window-tokens, 0)
	return left / 4 * 3
}

// Take removes from the desk's waiting messages what fits into room bytes,
// oldest first and at least one, and marks it offered. At a boundary
// everything that waits is due; see WakeDue for starting a turn.
func (d *Desk) Take(room int) Batch {
	waiting := d.list(func(it *item) bool { return it.status == Waiting || it.status == Held })
	if len(waiting) == 0 {
		return Batch{}
	}
	d.batches++
	b := Batch{Number: d.batches}
	used := 0
	for _, it := range waiting {
		cost := cost(it.msg)
		if len(b.Messages) > 0 && used+cost > room {
			break
		}
		used += cost
		it.was, it.status, it.batch = it.status, Offered, b.Number
		b.Messages = append(b.Messages, it.msg)
	}
	b.More = len(waiting) - len(b.Messages)
	return b
}

// Number names a batch of something else that is handed over.
func (d *Desk) Number() int {
	d.batches++
	return d.batches
}

// cost is how many bytes a message takes in a batch, whenever that is written.
func cost(m Message) int { return len(block(m, m.Sent)) + len(", 59m ago") }

// WakeDue reports whether something waits that may start a turn by itself at
// now.
func (d *Desk) WakeDue(now time.Time) bool {
	return len(d.list(func(it *item) bool { return it.wakes() && !it.due.After(now) })) > 0
}

func (it *item) wakes() bool { return it.status == Waiting && it.msg.Hops <= MaxHops }

// Tired lists the messages that wait only because their chain of wakes grew
// too long.
func (d *Desk) Tired() []Message {
	return messages(d.list(func(it *item) bool { return it.status == Waiting && it.msg.Hops > MaxHops }))
}

// Holding reports whether something waits that wakes nobody by itself.
func (d *Desk) Holding() bool {
	return len(d.list(func(it *item) bool { return it.status == Held })) > 0
}

// Decline takes a batch back: the host did not use it. It costs no try, and
// what was held stays held.
func (d *Desk) Decline(batch int) {
	for _, it := range d.items {
		if it.status == Offered && it.batch == batch {
			it.status = it.was
		}
	}
}

// Fail takes a batch back that the host could not use though it was idle. It
// is offered again, later each time.
func (d *Desk) Fail(batch int, now time.Time) {
	for _, it := range d.items {
		if it.status == Offered && it.batch == batch {
			it.retry(now)
		}
	}
}

func (it *item) retry(now time.Time) {
	it.tries++
	it.status = Waiting
	it.due = now.Add(backoff(it.tries))
}

// RunEnded is told that the host came to rest after a whole run. What was
// offered and never showed up is offered again, later each time, so that a run
// that fails at once does not become a loop. After a human's abort all that was
// sent until then (at) is held; what was sent later may wake. pending is a batch
// whose handover is still under way, as an unanswered wake; 0 without one.
func (d *Desk) RunEnded(aborted bool, pending int, at, now time.Time) {
	d.stopped = time.Time{}
	if aborted {
		d.stopped = at
	}
	for _, it := range d.items {
		if it.status == Offered && (pending == 0 || it.batch != pending) {
			it.retry(now)
		}
		if aborted && it.status == Waiting && !it.msg.Sent.After(at) {
			it.status = Held
		}
	}
}

// backoff is the pause before the next wake after n offers that came to nothing.
func backoff(n int) time.Duration {
	return min(time.Second<<min(n-1, 6), time.Minute)
}

// Waiting lists what is not in the conversation yet, oldest first.
func (d *Desk) Waiting() []Message {
	return messages(d.list(func(it *item) bool { return it.status != InContext }))
}

// Expecting reports whether anything on the desk may turn up in the session's
// file: messages are also there after a crash, when nobody knows of a handover.
func (d *Desk) Expecting() bool { return len(d.items) > 0 }

// Memory is the part of a desk that a new sidecar needs to go on.
type Memory struct {
	Held  []string       `json:"held,omitempty"`
	Tries map[string]int `json:"tries,omitempty"`
}

// Memory returns what must survive this process.
func (d *Desk) Memory() Memory {
	var m Memory
	for _, it := range d.list(func(*item) bool { return true }) {
		if it.status == Held {
			m.Held = append(m.Held, it.msg.ID)
		}
		if it.tries > 0 {
			if m.Tries == nil {
				m.Tries = make(map[string]int)
			}
			m.Tries[it.msg.ID] = it.tries
		}
	}
	return m
}

// Restore applies what an earlier process remembered to the messages that are
// on the desk now.
func (d *Desk) Restore(m Memory, now time.Time) {
	for _, id := range m.Held {
		if it := d.items[id]; it != nil && it.status == Waiting {
			it.status = Held
		}
	}
	for id, n := range m.Tries {
		if it := d.items[id]; it != nil && n > 0 {
			it.tries = n
			it.due = now.Add(backoff(n))
		}
	}
}

// list returns the items that pass, in sending order.
func (d *Desk) list(pass func(*item) bool) []*item {
	var out []*item
	for _, it := range d.items {
		if pass(it) {
			out = append(out, it)
		}
	}
	slices.SortFunc(out, func(a, b *item) int {
		switch {
		case a.msg.ID < b.msg.ID:
			return -1
		case a.msg.ID > b.msg.ID:
			return 1
		}
		return 0
	})
	return out
}

func messages(items []*item) []Message {
	out := make([]Message, len(items))
	for i, it := range items {
		out[i] = it.msg
	}
	return out
}

// Lineage says what a message sent now descends from: one hop more than the
// longest chain among the messages that this run was handed.
func Lineage(handed []Message) (hops int, after []string) {
	for _, m := range handed {
		hops = max(hops, m.Hops+1)
		after = append(after, m.ID)
	}
	if len(after) > maxAfter {
		after = after[len(after)-maxAfter:]
	}
	return hops, after
}
