package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf16"

	"switchboard/internal/delivery"
	"switchboard/internal/exchange"
	"switchboard/internal/lifecycle"
	"switchboard/internal/phonebook"
	"switchboard/internal/team"
)

// Touchtone is the name of the tool that finds and calls sessions.
const Touchtone = "touchtone"

// dial is what the model passes to touchtone.
type dial struct {
	Action    string   `json:"action"`
	To        locators `json:"to"` // one, says the tool; a list is understood
	Selectors locators `json:"selectors"`
	Message   string   `json:"message"`
}

// locator takes a number for the string it stands for: models write process
// ids without quotes.
type locator string

func (l *locator) UnmarshalJSON(data []byte) error {
	var s string
	if json.Unmarshal(data, &s) == nil {
		*l = locator(s)
		return nil
	}
	var n json.Number
	if json.Unmarshal(data, &n) == nil {
		*l = locator(n)
		return nil
	}
	if string(data) == "null" {
		return nil
	}
	return fmt.Errorf("a locator is a string, not %s", delivery.Line(string(data), 40))
}

// locators takes a single locator for a list of one: models mix them up.
type locators []locator

func (ls *locators) UnmarshalJSON(data []byte) error {
	var many []locator
	if json.Unmarshal(data, &many) == nil {
		*ls = many
		return nil
	}
	var one locator
	if err := one.UnmarshalJSON(data); err != nil {
		return err
	}
	*ls = locators{one}
	return nil
}

// all is to and selectors as one list.
func (d dial) all() []string {
	var out []string
	for _, l := range slices.Concat(d.To, d.Selectors) {
		out = append(out, string(l))
	}
	return out
}

// call is a send whose message is being written.
type call struct {
	to      phonebook.Entry
	session exchange.Session
	message string
	hops    int
	example string // for a refusal: the same call, or one that works better
}

// callDetails is what the screen knows of a touchtone call.
type callDetails struct {
	Action    string            `json:"action"`
	Sessions  []phonebook.Entry `json:"sessions,omitempty"` // of list
	Unmatched []string          `json:"unmatched,omitempty"`
	ID        string            `json:"id,omitempty"` // of the sent message
	To        *phonebook.Entry  `json:"to,omitempty"`
	Message   string            `json:"message,omitempty"`
	Error     string            `json:"error,omitempty"`
}

// toolCalled answers a call of one of our tools.
func (a *Agent) toolCalled(ev ToolCalled, now time.Time) []Effect {
	if ev.Tool == Telecom {
		return a.telecomCalled(ev, now)
	}
	var d dial
	if err := json.Unmarshal(ev.Params, &d); err != nil {
		return []Effect{Reply{ev.Req, refuse(d, "the parameters can't be read: "+unreadable(err), exampleList)}}
	}
	if ev.Tool != Touchtone {
		return []Effect{Reply{ev.Req, refuse(d, fmt.Sprintf("there is no tool %q here", ev.Tool), exampleList)}}
	}
	if off := a.off(); off != "" {
		return []Effect{Reply{ev.Req, refuse(d, off, exampleList)}}
	}
	book := a.Book(ev.Roster)
	switch d.Action {
	case "list":
		return []Effect{Reply{ev.Req, list(book, d)}}
	case "send":
		return a.send(ev, d, book, now)
	case "broadcast":
		return a.broadcast(ev, d, book, now)
	case "":
		return []Effect{Reply{ev.Req, refuse(d, "action is missing: list, send or broadcast", exampleList)}}
	}
	return []Effect{Reply{ev.Req, refuse(d, fmt.Sprintf("there is no action %q: list, send or broadcast", delivery.Line(d.Action, 40)), exampleList)}}
}

// unreadable words an error of JSON for a model.
func unreadable(err error) string {
	var mismatch *json.UnmarshalTypeError
	switch {
	case errors.As(err, &mismatch) && mismatch.Field != "":
		return mismatch.Field + " is a string"
	case errors.As(err, &mismatch):
		return "they are an object"
	}
	return err.Error()
}

// Book makes a phonebook of a roster, with this session marked as itself.
func (a *Agent) Book(roster []exchange.Session) phonebook.Book {
	book := make(phonebook.Book, 0, len(roster))
	for _, s := range roster {
		e := BookEntry(s)
		if s.Key == a.session.Key {
			e.Self = true
			e.State = string(a.life.State())
		}
		book = append(book, e)
	}
	// A callsign means the own team's, if there is one there.
	own := make(map[string]bool)
	for _, s := range roster {
		if s.Team != "" && s.Team == a.place.Team {
			own[s.Callsign] = true
		}
	}
	for i, s := range roster {
		if s.Team != a.place.Team && own[s.Callsign] {
			delete(book[i].Values, "callsign")
		}
	}
	return book
}

// BookEntry is a session as the phonebook shows it. What others wrote is
// flattened; locators keep their spelling, or they would not dial.
func BookEntry(s exchange.Session) phonebook.Entry {
	e := phonebook.Entry{
		ID: s.Key.ID, Name: delivery.CleanText(s.Name), PID: s.Agent.PID, Cwd: delivery.CleanText(s.Cwd),
		Model: delivery.Line(s.Model, maxName), State: delivery.Line(s.State, 20),
	}
	if s.Presence == exchange.Unresponsive {
		e.Note = "unresponsive"
	}
	core := s.Handles.Values()
	if word, ok := team.Callsign(s.Callsign); ok {
		core["callsign"] = []string{word}
	}
	e.Values = exchange.Merge(map[string]exchange.Values{"0": core, "1": s.Values})
	return e
}

func list(book phonebook.Book, d dial) ToolResult {
	matches := book.Look(d.all())
	found, unmatched := book, []string(nil)
	if len(matches) > 0 {
		found, unmatched = book.Filter(matches)
	}
	var out strings.Builder
	fmt.Fprintf(&out, "📒 Phonebook: %d live %s", len(found), plural(len(found), "session", "sessions"))
	if len(matches) > 0 {
		fmt.Fprintf(&out, " of %d", len(book))
	}
	for _, e := range found {
		out.WriteString("\n\n• " + e.Label())
		if e.State != "" {
			out.WriteString(" [" + phonebook.Show(e.State) + "]")
		}
		if e.Note != "" {
			out.WriteString(" (" + e.Note + ")")
		}
		if e.Self {
			out.WriteString(" (this session)")
		}
		fmt.Fprintf(&out, "\n  id %s  pid %d", phonebook.Show(e.ID), e.PID)
		if e.Model != "" {
			out.WriteString("  model " + phonebook.Show(e.Model))
		}
		out.WriteString("\n  cwd " + phonebook.Show(e.Cwd))
		if values := e.Shown(); values != "" {
			out.WriteString("\n  " + values)
		}
		out.WriteString("\n  selectors " + plainJSON(e.Selectors()))
	}
	for _, l := range unmatched {
		fmt.Fprintf(&out, "\n\nNo live session matches %q.", l)
	}
	if len(found) == 0 && len(matches) > 0 {
		fmt.Fprintf(&out, "\nFor everybody: %s", exampleList)
	}
	return ToolResult{Text: out.String(), Details: callDetails{Action: "list", Sessions: found, Unmatched: unmatched}}
}

func (a *Agent) send(ev ToolCalled, d dial, book phonebook.Book, now time.Time) []Effect {
	example := exampleSend(book, d)
	fail := func(problem string) []Effect { return []Effect{Reply{ev.Req, refuse(d, problem, example)}} }
	text, err := delivery.Prepare(d.Message)
	if err != nil {
		return fail(unsendable(err))
	}
	to, err := book.One(d.all())
	var several *phonebook.SeveralError
	switch {
	case errors.Is(err, phonebook.ErrNoLocator):
		return fail("no destination: put one locator into to; list shows them")
	case errors.As(err, &several):
		example = exampleOne(several, book, d)
		return fail(err.Error() + "; send reaches one session: name it by its id, or call broadcast to reach them all")
	case err != nil:
		return fail(err.Error())
	case to.Self:
		return fail(to.Label() + " is this session itself")
	}
	var target exchange.Session
	for _, s := range ev.Roster {
		if s.Key.ID == to.ID {
			target = s
		}
	}
	hops, after := delivery.Lineage(a.lineage)
	a.calls[ev.Req] = call{to: to, session: target, message: text, hops: hops, example: example}
	return []Effect{Post{Req: ev.Req, To: target.Key, Message: delivery.Message{
		Kind: delivery.Call, From: a.sender(), Text: text, Sent: now.UTC(), Hops: hops, After: after,
	}}}
}

// sender is this session as its messages name it.
func (a *Agent) sender() delivery.Sender {
	return delivery.Sender{Session: a.session.Key.ID, Name: a.session.Name, PID: a.session.PID, Cwd: a.session.Cwd}
}

func (a *Agent) posted(ev Posted, now time.Time) []Effect {
	c, ok := a.calls[ev.Req]
	if !ok {
		return a.cast(ev)
	}
	delete(a.calls, ev.Req)
	d := dial{Action: "send", Message: c.message}
	switch {
	case errors.Is(ev.Err, exchange.ErrTooLarge):
		return []Effect{Reply{ev.Req, refuse(d, unsendable(&delivery.TooLongError{Size: len(c.message), Stored: true}), c.example)}}
	case ev.Err != nil: // a disk that is full will not take the same call again
		return []Effect{Reply{ev.Req, refuse(d, "the message could not be written: "+ev.Err.Error(), exampleList)}}
	case ev.Gone: // no success for a target that is gone
		return []Effect{Reply{ev.Req, refuse(d, c.to.Label()+" left at this very moment; the message waits seven days for its resume", exampleList)}}
	}
	text := fmt.Sprintf("📞 Sent to %s (session %s). %s", c.to.Label(), phonebook.Show(c.to.ID), Receipt(c.session, c.hops, now))
	return []Effect{Reply{ev.Req, ToolResult{Text: text, Details: callDetails{Action: "send", ID: ev.ID, To: &c.to, Message: c.message}}}}
}

// unsendable words what delivery.Prepare refused, with what to do about it.
func unsendable(err error) string {
	var long *delivery.TooLongError
	if errors.As(err, &long) {
		return err.Error() + ": " + delivery.Shorten
	}
	return err.Error()
}

// Receipt says what is known about a message with that many hops that waits in
// a session's inbox: when it will be read, never that it was.
func Receipt(s exchange.Session, hops int, now time.Time) string {
	switch {
	case s.Presence == exchange.Unresponsive:
		return "It waits in their inbox; their process does not respond at the moment."
	case hops > delivery.MaxHops:
		return fmt.Sprintf("It starts no turn, since agents woke each other %d times in a row: it waits in their inbox for their human's next prompt, or a turn that comes anyway.", delivery.MaxHops)
	case !s.Wakes:
		return "It waits in their inbox and is read at the next step of their run, if there is one."
	case s.State == "idle":
		return "It waits in their inbox; they are idle, so it starts a turn there."
	case s.State == string(lifecycle.Compacting):
		return "It waits in their inbox; they are compacting: it is read after that."
	case s.Tool.Name != "":
		return fmt.Sprintf("It waits in their inbox until the call of %s ends that they have been in for %s.", tool(s), delivery.Age(now.Sub(s.Tool.Since)))
	}
	return fmt.Sprintf("It waits in their inbox until their current turn ends (they are %s).", phonebook.Show(delivery.Line(s.State, 20)))
}

// tool names the tool that a session has been in for long.
func tool(s exchange.Session) string { return phonebook.Show(delivery.Line(s.Tool.Name, 40)) }

const exampleList = `touchtone {"action":"list"}`

// exampleSend is a call that works if it is made as written, and does no harm
// then: it goes to a session that was named, else it only lists.
func exampleSend(book phonebook.Book, d dial) string {
	found, unmatched := book.Filter(book.Look(d.all()))
	if len(unmatched) > 0 {
		return exampleList
	}
	for _, e := range found {
		if to, ok := book.Dial(e); ok && !e.Self {
			return "touchtone " + toJSON(map[string]string{"action": "send", "to": to, "message": exampleText(d.Message)})
		}
	}
	return exampleList
}

// exampleOne is exampleSend for locators that mean several sessions: to the one
// that more of them mean than any other.
func exampleOne(several *phonebook.SeveralError, book phonebook.Book, d dial) string {
	votes := make(map[string]int)
	for _, m := range several.Matches {
		for _, e := range m.Entries {
			votes[e.ID]++
		}
	}
	for _, e := range several.Found {
		alone := !slices.ContainsFunc(several.Found, func(o phonebook.Entry) bool { return o.ID != e.ID && votes[o.ID] >= votes[e.ID] })
		if to, ok := book.Dial(e); ok && alone && !e.Self {
			return "touchtone " + toJSON(map[string]string{"action": "send", "to": to, "message": exampleText(d.Message)})
		}
	}
	return exampleSend(book, d)
}

// exampleText is the message that was meant, or another where that can't be
// shown whole and plain: half of it would be worse than none.
func exampleText(message string) string {
	const longest = 60
	text, err := delivery.Prepare(message)
	if err != nil || text != delivery.Line(text, longest) || strings.ContainsAny(text, `"\`) {
		return "The parser is ready."
	}
	return text
}

// toJSON writes a flat object on one line, keys in the order that reads best.
func toJSON(fields map[string]string) string {
	var parts []string
	for _, key := range []string{"action", "to", "message"} {
		if v, ok := fields[key]; ok {
			var b strings.Builder
			enc := json.NewEncoder(&b)
			enc.SetEscapeHTML(false)
			_ = enc.Encode(v) // strings always encode
			parts = append(parts, fmt.Sprintf("%q:%s", key, plainJSON(strings.TrimSpace(b.String()))))
		}
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// plainJSON escapes what JSON may hold as it is and a screen should not: C1
// controls, DEL, direction characters. It still says the same.
func plainJSON(text string) string {
	var b strings.Builder
	for _, r := range text {
		if s := string(r); s == delivery.CleanText(s) {
			b.WriteString(s)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&b, `\u%04x`, unit)
		}
	}
	return b.String()
}

// refuse is the answer to a call that did nothing: what was wrong, and one
// that works.
func refuse(d dial, problem, example string) ToolResult {
	what := "Not done"
	if d.Action == "send" || d.Action == "broadcast" {
		what = "Not sent"
	}
	return ToolResult{
		Text:    fmt.Sprintf("%s: %s.\nExample of a call that works: %s", what, strings.TrimRight(problem, "."), example),
		Details: callDetails{Action: d.Action, Message: d.Message, Error: problem},
		IsError: true,
	}
}
