// Package lifecycle tells the true state of one agent from the events of its
// host. It is pure; the rules are spec/beacon's, the event orders those that
// pi-notes records. No state is guessed from silence.
package lifecycle

import (
	"slices"
	"time"
)

// State is what an agent is doing (spec: beacon, state).
type State string

// The states.
const (
	// Idle: settled. It will not go on by itself.
	Idle State = "idle"
	// Working: a run is open, or something else keeps the host busy.
	Working State = "working"
	// Compacting: the context is being compacted.
	Compacting State = "compacting"
	// Retrying: waiting to repeat a failed request.
	Retrying State = "retrying"
)

// Reason says what a compaction is for.
type Reason string

// The reasons that hosts give.
const (
	Manual    Reason = "manual"
	Threshold Reason = "threshold"
	Overflow  Reason = "overflow"
)

// Event is one fact from the host.
type Event interface{ isEvent() }

// The facts.
type (
	// RunBegan: a prompt is being prepared, a run or one of its turns began.
	RunBegan struct{}
	// AttemptEnded: a run came to its end; more may follow until Settled.
	AttemptEnded struct{ Failed bool }
	// RetryScheduled: the failed attempt will be repeated after Delay.
	RetryScheduled struct {
		Attempt, Max int
		Delay        time.Duration
		Error        string // one line
	}
	// Settled: the host says that it will not go on by itself. Idle is what
	// it answers when asked in that moment: another operation may be open.
	// False if it was not asked; a look must follow.
	Settled struct {
		Aborted, Idle bool
		At            time.Time // when, by the host's word; zero means just now
	}
	// CompactionBegan and CompactionEnded bracket a compaction. An end may
	// come without a beginning.
	CompactionBegan struct {
		Reason    Reason
		WillRetry bool
	}
	CompactionEnded struct {
		WillRetry bool
		Failed    bool // the context is what it was
	}
	// SummaryBegan and SummaryEnded bracket the summary of an abandoned
	// branch. The end is missing when the summary fails; Looked closes it.
	SummaryBegan struct{}
	SummaryEnded struct{}
	// Looked: the host was asked whether it is idle, outside of any event.
	Looked struct{ Idle bool }
	// ToolBegan and ToolEnded bracket one tool call.
	ToolBegan struct{ CallID, Tool string }
	ToolEnded struct{ CallID string }
	// DialogOpened and DialogClosed bracket waiting for the human.
	DialogOpened struct{}
	DialogClosed struct{}
)

func (RunBegan) isEvent()        {}
func (AttemptEnded) isEvent()    {}
func (RetryScheduled) isEvent()  {}
func (Settled) isEvent()         {}
func (CompactionBegan) isEvent() {}
func (CompactionEnded) isEvent() {}
func (SummaryBegan) isEvent()    {}
func (SummaryEnded) isEvent()    {}
func (Looked) isEvent()          {}
func (ToolBegan) isEvent()       {}
func (ToolEnded) isEvent()       {}
func (DialogOpened) isEvent()    {}
func (DialogClosed) isEvent()    {}

// Detail is what is known beside the state. Absent means unknown or not so.
type Detail struct {
	Compaction *CompactionBegan
	Retry      *RetryScheduled
	Tool       string    // the tool that has run longest of those running
	ToolSince  time.Time // when it began
	Dialog     bool
}

// Machine follows one agent. The zero Machine is idle.
type Machine struct {
	run        bool
	summary    bool
	compaction *CompactionBegan
	retry      *RetryScheduled
	dialog     bool
	tools      []tool // in order of their beginning
	since      time.Time
}

type tool struct {
	call, name string
	since      time.Time
}

// Handle takes note of a fact and reports whether the state changed.
func (m *Machine) Handle(ev Event, now time.Time) (changed bool) {
	if m.since.IsZero() {
		m.since = now
	}
	before := m.State()
	switch ev := ev.(type) {
	case RunBegan:
		m.run, m.retry = true, nil
	case AttemptEnded:
		m.tools = nil
	case RetryScheduled:
		m.run, m.retry = true, &ev
	case Settled:
		// If not idle, something is about to begin, such as the compaction that
		// ended this run, or the host was not asked: the next look closes it.
		m.tools = nil
		m.look(ev.Idle)
	case CompactionBegan:
		m.compaction, m.retry = &ev, nil
	case CompactionEnded:
		if m.compaction != nil {
			// Ended, yet the host is inside it until the next look: it may be
			// about to start the prompt that the compaction made room for.
			m.compaction, m.run = nil, true
		}
	case SummaryBegan:
		m.summary = true
	case SummaryEnded:
		m.summary = false
	case Looked:
		m.look(ev.Idle)
	case ToolBegan:
		// Once: a host may tell of a call when it asks and when it begins.
		if !slices.ContainsFunc(m.tools, func(t tool) bool { return t.call == ev.CallID }) {
			m.tools = append(m.tools, tool{ev.CallID, ev.Tool, now})
		}
	case ToolEnded:
		m.tools = slices.DeleteFunc(m.tools, func(t tool) bool { return t.call == ev.CallID })
	case DialogOpened:
		m.dialog = true
	case DialogClosed:
		m.dialog = false
	}
	if m.State() != before {
		m.since = now
		return true
	}
	return false
}

// look closes what ended unheard, and opens what began so.
func (m *Machine) look(idle bool) {
	if idle {
		*m = Machine{since: m.since, dialog: m.dialog}
	} else if m.State() == Idle {
		m.run = true
	}
}

// State is what the agent is doing.
func (m *Machine) State() State {
	switch {
	case m.compaction != nil:
		return Compacting
	case m.retry != nil:
		return Retrying
	case m.run || m.summary:
		return Working
	}
	return Idle
}

// Since is when the state began.
func (m *Machine) Since() time.Time { return m.since }

// RunOpen reports whether a run is open, so that a boundary of it will come.
func (m *Machine) RunOpen() bool { return m.run }

// Detail tells what else is known.
func (m *Machine) Detail() Detail {
	d := Detail{Compaction: m.compaction, Retry: m.retry, Dialog: m.dialog}
	if len(m.tools) > 0 {
		d.Tool, d.ToolSince = m.tools[0].name, m.tools[0].since
	}
	return d
}
