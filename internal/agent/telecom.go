package agent

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"switchboard/internal/brief"
	"switchboard/internal/delivery"
	"switchboard/internal/exchange"
	"switchboard/internal/lifecycle"
	"switchboard/internal/phonebook"
	"switchboard/internal/team"
)

// Telecom is the name of the tool for the team in one's repository.
const Telecom = "telecom"

// radio is what the model passes to telecom.
type radio struct {
	Action  string   `json:"action"`
	Message string   `json:"message"`
	Scope   string   `json:"scope"`
	Paths   locators `json:"paths"`
}

// radioDetails is what the screen knows of a telecom call.
type radioDetails struct {
	Action string `json:"action"`
	Error  string `json:"error,omitempty"`
}

const (
	exampleBoard  = `telecom({ action: "board" })`
	exampleStatus = `telecom({ action: "status", message: "write the session migration" })`
)

// telecomCalled answers a call of telecom.
func (a *Agent) telecomCalled(ev ToolCalled, now time.Time) []Effect {
	var r radio
	answer := func(text string) []Effect {
		return []Effect{Reply{ev.Req, ToolResult{Text: text, Details: radioDetails{Action: r.Action}}}}
	}
	fail := func(problem, example string) []Effect {
		text := fmt.Sprintf("Not done: %s.\nExample of a call that works: %s", strings.TrimRight(problem, "."), example)
		return []Effect{Reply{ev.Req, ToolResult{Text: text, Details: radioDetails{r.Action, problem}, IsError: true}}}
	}
	if err := json.Unmarshal(ev.Params, &r); err != nil {
		return fail("the parameters can't be read: "+unreadable(err), exampleBoard)
	}
	if off := a.off(); off != "" {
		return fail(off, exampleBoard)
	}
	me, in := a.crew.team.Member(a.session.Key.ID)
	switch {
	case a.teamOff():
		return fail("telecom is off in this session, by its human's wish; touchtone still works", exampleList)
	case r.Action == "board" && r.Scope == "machine":
		return answer(Board(a.boardOf(ev.Roster, now), "", "", a.saysIn, now))
	case !in:
		return fail("still joining the team; try again in a second", exampleBoard)
	case r.Action == "board" && (r.Scope == "" || r.Scope == "team"):
		return answer(Board(a.boardOf(ev.Roster, now), a.place.Team, "", a.saysIn, now))
	case r.Action == "board":
		return fail(fmt.Sprintf("scope is %q or left out, not %q", "machine", delivery.Line(r.Scope, 40)), `telecom({ action: "board", scope: "machine" })`)
	case r.Action == "status":
		task := delivery.Line(r.Message, team.MaxTask)
		if task == "" {
			return fail("status needs a message: what you work on, in one line", exampleStatus)
		}
		out := answer(fmt.Sprintf("📡 Your team sees: %s [working on] %s", me.Callsign, task))
		return append([]Effect{Append{Entries: []exchange.Entry{a.entry(team.Tasked, team.Tasking{Text: task, Set: true})}}}, out...)
	case r.Action == "log":
		return answer(a.logText(r.Paths, now))
	}
	return fail(fmt.Sprintf("there is no action %q; the actions are board, status and log", delivery.Line(r.Action, 40)), exampleBoard)
}

// off says why there is no exchange to work with; empty if there is.
func (a *Agent) off() string {
	switch a.standing {
	case elsewhere:
		return "this session is also open in " + a.openIn() + ", and all goes through there until it ends"
	case unavailable:
		return "switchboard is off: " + a.trouble
	case joining:
		return "still connecting; try again in a second"
	}
	return ""
}

// boardOf joins what the roster and the journal say.
func (a *Agent) boardOf(roster []exchange.Session, now time.Time) []Row {
	rows := Rows(roster, func(exchange.TeamID) *team.Team { return &a.crew.team })
	for i := range rows {
		if rows[i].Session.Key == a.session.Key {
			rows[i].Self = true
			rows[i].Session.Record = a.record(now)
		}
	}
	return rows
}

// Row is one session on the board.
type Row struct {
	Session exchange.Session
	Self    bool
	ID      string // short, unique among the rows
	Task    string
	Tasked  time.Time // when the task began
	Changed []team.Edit
}

// Rows makes the rows of a board. Tasks and changes are what the fold of a
// session's team knows of it; of others there is only what their records say.
func Rows(roster []exchange.Session, fold func(exchange.TeamID) *team.Team) []Row {
	ids := make([]string, len(roster))
	for i, s := range roster {
		ids[i] = s.Key.ID
	}
	var rows []Row
	for i, s := range roster {
		r := Row{Session: s, ID: shortID(i, ids)}
		t := fold(s.Team)
		if m, ok := t.Member(s.Key.ID); ok && m.Incarnation == s.Incarnation {
			r.Task, r.Tasked = m.Task, m.TaskSince
			r.Changed = t.EditsBy(s.Key.ID)
		}
		rows = append(rows, r)
	}
	slices.SortStableFunc(rows, func(x, y Row) int {
		return team.CompareCallsigns(x.Session.Callsign, y.Session.Callsign)
	})
	return rows
}

// shortID is the end of an id, as much of it as tells it from the others: the
// beginnings of ids that are made one after another are the same.
func shortID(i int, ids []string) string {
	id := ids[i]
	for n := 8; n < len(id); n++ {
		end := id[len(id)-n:]
		if !slices.ContainsFunc(ids, func(o string) bool { return o != id && strings.HasSuffix(o, end) }) {
			return end
		}
	}
	return id
}

// maxChanged is how many changed files a board lists (spec: telecom, Callsigns
// and presence).
const maxChanged = 12

// Board writes the sessions of one team, or of the whole machine if there is
// none, as text. Nobody but the session itself is a board too; without any row
// that is Self, it is a board for a person. home is the checkout where its reader
// is, if no row is; says is how a changed file is named.
func Board(rows []Row, of exchange.TeamID, home string, says func(team.Path) string, now time.Time) string {
	var out strings.Builder
	others, nobody, other := 0, "No agent", ""
	for _, r := range rows {
		switch {
		case of != "" && r.Session.Team != of:
		case r.Self:
			home, nobody, other = r.Session.Root, "Nobody else", "other "
			fmt.Fprintf(&out, "📡 You are %s%s.", name(r), place(r, home))
		default:
			others++
		}
	}
	where := "in this repository"
	if of == "" {
		where = "on this machine"
	}
	if out.Len() > 0 {
		out.WriteString(" ")
	} else {
		out.WriteString("📡 ")
	}
	switch others {
	case 0:
		out.WriteString(nobody + " works " + where + ".")
	case 1:
		fmt.Fprintf(&out, "1 %sagent works %s:", other, where)
	default:
		fmt.Fprintf(&out, "%d %sagents work %s:", others, other, where)
	}
	for _, r := range rows {
		if r.Self || of != "" && r.Session.Team != of {
			continue
		}
		out.WriteString("\n" + entryText(r, home, says, now))
	}
	for _, r := range rows {
		if r.Self && r.Task != "" {
			fmt.Fprintf(&out, "\nYour task: %s (%s)", r.Task, ago(now, r.Tasked))
		}
	}
	return out.String()
}

func entryText(r Row, home string, says func(team.Path) string, now time.Time) string {
	var out strings.Builder
	fmt.Fprintf(&out, "• %s [%s]%s  id %s", name(r), StateText(r.Session, now), place(r, home), phonebook.Show(r.ID))
	if r.Task != "" {
		fmt.Fprintf(&out, "\n    task: %s (%s)", r.Task, ago(now, r.Tasked))
	}
	if len(r.Changed) > 0 {
		out.WriteString("\n    recently changed: ")
		for i, e := range r.Changed[:min(len(r.Changed), maxChanged)] {
			if i > 0 {
				out.WriteString(", ")
			}
			fmt.Fprintf(&out, "%s (%s)", delivery.Line(says(e.Path), 200), ago(now, e.At))
		}
	}
	return out.String()
}

// name is the callsign, or what else the session is called.
func name(r Row) string {
	switch {
	case r.Session.Callsign != "":
		return delivery.Line(r.Session.Callsign, 40)
	case r.Session.Name != "":
		return phonebook.Show(delivery.Line(r.Session.Name, 60))
	}
	return "a session in " + delivery.Line(path.Base(r.Session.Cwd), 60)
}

// place is where a session works, as far as that is not the same place as home.
func place(r Row, home string) string {
	s := ""
	if r.Session.Branch != "" {
		s = " on " + delivery.Line(r.Session.Branch, 80)
	}
	if r.Session.Root != home && r.Session.Root != "" {
		s += "  in " + delivery.Line(r.Session.Root, 200)
	}
	return s
}

// StateText says what a session does and for how long.
func StateText(s exchange.Session, now time.Time) string { return activity(s).Text(now) }

// activity is what a session's record says that it does.
func activity(s exchange.Session) brief.Activity {
	return brief.Activity{
		State: lifecycle.State(s.State), Since: s.Since, Tool: s.Tool.Name, ToolSince: s.Tool.Since,
		Unresponsive: s.Presence == exchange.Unresponsive,
	}
}

func ago(now, t time.Time) string { return delivery.Age(now.Sub(t)) + " ago" }

// logText is the team log, as far as it is about some files if any are named.
func (a *Agent) logText(paths locators, now time.Time) string {
	if len(paths) > 0 {
		return a.fileLog(paths, now)
	}
	lines := a.crew.team.Log(now)
	if len(lines) == 0 {
		return "📡 Nothing in the team's log."
	}
	return "📡 Team log, oldest first:\n" + LogText(lines, now)
}

// maxLogLines is how much of the log is shown at once.
const maxLogLines = 60

// LogText writes lines of the log, the latest if there are many.
func LogText(lines []team.Line, now time.Time) string {
	var out strings.Builder
	if n := len(lines) - maxLogLines; n > 0 {
		fmt.Fprintf(&out, "(%d earlier)\n", n)
		lines = lines[n:]
	}
	for i, l := range lines {
		if i > 0 {
			out.WriteString("\n")
		}
		fmt.Fprintf(&out, "%s: %s", ago(now, l.At), LineText(l))
	}
	return out.String()
}

// LineText says what one line of the log tells.
func LineText(l team.Line) string {
	switch l.What {
	case team.HasJoined:
		return l.Callsign + " joined"
	case team.HasLeft:
		return l.Callsign + " left"
	case team.WasRenamed:
		return l.Text + " is now called " + l.Callsign
	case team.HasTask:
		return l.Callsign + " works on: " + l.Text
	}
	return l.Callsign + " " + string(l.What)
}

// fileLog lists who changed some files.
func (a *Agent) fileLog(paths locators, now time.Time) string {
	var edits []team.Edit
	for _, made := range a.crew.team.ByAuthor() {
		for _, e := range made {
			if slices.ContainsFunc(paths, func(p locator) bool { return a.means(string(p), e.Path) }) {
				edits = append(edits, e)
			}
		}
	}
	if len(edits) == 0 {
		return "📡 Nothing in the team's log about these files."
	}
	slices.SortFunc(edits, func(x, y team.Edit) int { return cmp.Compare(x.Seq, y.Seq) })
	var out strings.Builder
	out.WriteString("📡 Team log about these files, oldest first:")
	for _, e := range edits {
		fmt.Fprintf(&out, "\n%s: %s", ago(now, e.At), EditText(e, a.saysIn(e.Path)))
	}
	return out.String()
}

// EditText says what one edit of a file did.
func EditText(e team.Edit, file string) string {
	return e.Callsign + " changed " + delivery.Line(file, 200)
}

// means reports whether a path, from a checkout's root or the session's folder,
// means a file: itself, or a folder above it.
func (a *Agent) means(p string, f team.Path) bool {
	p = path.Clean(strings.TrimPrefix(p, "@"))
	for _, own := range []string{path.Clean(a.path(f)), f.Rel, f.File} {
		if own == p || own != "" && strings.HasPrefix(own, strings.TrimSuffix(p, "/")+"/") {
			return true
		}
	}
	return p == "."
}
