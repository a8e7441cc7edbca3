package agent

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"switchboard/internal/delivery"
	"switchboard/internal/exchange"
	"switchboard/internal/lifecycle"
	"switchboard/internal/phonebook"
)

// cast is a broadcast whose messages are being written.
type cast struct {
	left    int // writes without an answer yet
	roster  map[exchange.SessionKey]exchange.Session
	hops    int
	details castDetails
}

// castDetails is what the screen knows of a broadcast.
type castDetails struct {
	Action        string       `json:"action"`
	Message       string       `json:"message"`
	Selectors     []string     `json:"selectors"`
	Matches       []matched    `json:"matches"`
	Delivered     []delivered  `json:"delivered"`
	Failed        []undelivery `json:"failed,omitempty"`
	Indeterminate []undelivery `json:"indeterminate,omitempty"`
	SelfExcluded  bool         `json:"selfExcluded,omitempty"`
}

// matched is how many sessions one selector means.
type matched struct {
	Selector string `json:"selector"`
	Count    int    `json:"count"`
}

// delivered is a session in whose inbox the message is.
type delivered struct {
	Entry phonebook.Entry `json:"entry"`
	ID    string          `json:"id"`             // of the message
	Left  bool            `json:"left,omitempty"` // it went meanwhile: the message waits for its resume
}

// undelivery is a session that a write failed for.
type undelivery struct {
	Entry phonebook.Entry `json:"entry"`
	Error string          `json:"error"`
}

// broadcast sends one message to every session that any of the selectors
// means, without this one. If one of them means nobody, nothing is sent (spec:
// touchtone, Party Line).
func (a *Agent) broadcast(ev ToolCalled, d dial, book phonebook.Book, now time.Time) []Effect {
	fail := func(problem string) []Effect {
		return []Effect{Reply{ev.Req, refuse(d, problem, exampleCast(book, d))}}
	}
	text, err := delivery.Prepare(d.Message)
	if err != nil {
		return fail(unsendable(err))
	}
	found, matches, err := book.Union(d.all())
	switch {
	case errors.Is(err, phonebook.ErrNoLocator):
		return fail("no destination: put locators into selectors; list shows them")
	case err != nil:
		return fail(err.Error() + ", so nothing was sent")
	}
	c := cast{roster: make(map[exchange.SessionKey]exchange.Session), details: castDetails{
		Action: "broadcast", Message: text, Delivered: []delivered{},
	}}
	for _, m := range matches {
		c.details.Selectors = append(c.details.Selectors, m.Locator)
		c.details.Matches = append(c.details.Matches, matched{m.Locator, len(m.Entries)})
	}
	var after []string
	c.hops, after = delivery.Lineage(a.lineage)
	var out []Effect
	for _, e := range found {
		if e.Self {
			c.details.SelfExcluded = true
			continue
		}
		for _, s := range ev.Roster {
			if s.Key.ID == e.ID {
				c.roster[s.Key] = s
				out = append(out, Post{Req: ev.Req, To: s.Key, Message: delivery.Message{
					Kind: delivery.PartyLine, From: a.sender(), Text: text, Sent: now.UTC(), Hops: c.hops, After: after,
					Selectors: c.details.Selectors,
				}})
			}
		}
	}
	if len(out) == 0 {
		return fail("the selectors mean only this session itself")
	}
	c.left = len(out)
	a.casts[ev.Req] = c
	return out
}

// cast takes note of one write of a broadcast, and answers with the last.
func (a *Agent) cast(ev Posted) []Effect {
	c, ok := a.casts[ev.Req]
	if !ok {
		return nil
	}
	entry := BookEntry(c.roster[ev.To])
	switch {
	case ev.Err == nil:
		c.details.Delivered = append(c.details.Delivered, delivered{entry, ev.ID, ev.Gone})
	case errors.Is(ev.Err, exchange.ErrIndeterminate):
		c.details.Indeterminate = append(c.details.Indeterminate, undelivery{entry, delivery.Line(ev.Err.Error(), 200)})
	default:
		c.details.Failed = append(c.details.Failed, undelivery{entry, delivery.Line(ev.Err.Error(), 200)})
	}
	if c.left--; c.left > 0 {
		a.casts[ev.Req] = c
		return nil
	}
	delete(a.casts, ev.Req)
	return []Effect{Reply{ev.Req, c.result()}}
}

// result says what is known: in whose inbox the message is, and in whose not.
func (c cast) result() ToolResult {
	d := c.details
	var out strings.Builder
	total := len(d.Delivered) + len(d.Failed) + len(d.Indeterminate)
	fmt.Fprintf(&out, "📣 Party line: in %d of %d %s.", len(d.Delivered), total, plural(total, "inbox", "inboxes"))
	var counts []string
	for _, m := range d.Matches {
		counts = append(counts, fmt.Sprintf("%q %d", m.Selector, m.Count))
	}
	fmt.Fprintf(&out, " Matches: %s.", strings.Join(counts, ", "))
	if d.SelfExcluded {
		out.WriteString(" This session matches too and was left out.")
	}
	for _, x := range d.Delivered {
		receipt := "left just now: the message waits seven days for its resume"
		if !x.Left {
			receipt = c.receipt(x.Entry.ID)
		}
		fmt.Fprintf(&out, "\n• %s (session %s): %s", x.Entry.Label(), phonebook.Show(x.Entry.ID), receipt)
	}
	for _, x := range d.Failed {
		fmt.Fprintf(&out, "\n• NOT sent to %s (session %s): %s", x.Entry.Label(), phonebook.Show(x.Entry.ID), x.Error)
	}
	for _, x := range d.Indeterminate {
		fmt.Fprintf(&out, "\n• perhaps sent to %s (session %s): %s", x.Entry.Label(), phonebook.Show(x.Entry.ID), x.Error)
	}
	return ToolResult{Text: out.String(), Details: d, IsError: len(d.Delivered) == 0}
}

func (c cast) receipt(id string) string {
	for key, s := range c.roster {
		if key.ID == id {
			return Outlook(s, c.hops)
		}
	}
	return "waits"
}

// Outlook is the short form of Receipt.
func Outlook(s exchange.Session, hops int) string {
	switch {
	case s.Presence == exchange.Unresponsive:
		return "does not respond at the moment"
	case hops > delivery.MaxHops:
		return "waits for their human's next prompt"
	case !s.Wakes:
		return "read at the next step of their run"
	case s.State == "idle":
		return "idle: starts a turn"
	case s.Tool.Name != "" && s.State == string(lifecycle.Working):
		return "read when its call of " + tool(s) + " ends"
	}
	return "read when their turn ends"
}

// exampleCast is a broadcast that works, or list where none does.
func exampleCast(book phonebook.Book, d dial) string {
	found, unmatched := book.Filter(book.Look(d.all()))
	for _, e := range found {
		if to, ok := book.Dial(e); ok && !e.Self && len(unmatched) == 0 {
			return fmt.Sprintf(`touchtone {"action":"broadcast","selectors":%s,"message":%q}`, plainJSON(phonebook.List([]string{to})), exampleText(d.Message))
		}
	}
	return exampleList
}
