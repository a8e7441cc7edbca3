package lifecycle

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

var t0 = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)

// step is one fact and the state that must follow it.
type step struct {
	ev   Event
	want State
}

// The orders of events are those that pi-notes recorded, section by section.
var orders = []struct {
	name  string
	steps []step
}{
	{"plain prompt (4.1)", []step{
		{RunBegan{}, Working}, // before_agent_start
		{RunBegan{}, Working}, // agent_start
		{RunBegan{}, Working}, // turn_start
		{AttemptEnded{}, Working},
		{Settled{Idle: true}, Idle},
	}},
	{"two parallel tools, then an edit (4.2)", []step{
		{RunBegan{}, Working},
		{ToolBegan{"1", "read"}, Working},
		{ToolBegan{"2", "bash"}, Working},
		{ToolEnded{"1"}, Working},
		{ToolEnded{"2"}, Working},
		{RunBegan{}, Working},
		{ToolBegan{"3", "edit"}, Working},
		{ToolEnded{"3"}, Working},
		{AttemptEnded{}, Working},
		{Settled{Idle: true}, Idle},
	}},
	{"retried twice, then done (4.3)", []step{
		{RunBegan{}, Working},
		{AttemptEnded{Failed: true}, Working},
		{RetryScheduled{Attempt: 1, Max: 3, Delay: 300 * time.Millisecond}, Retrying},
		{RunBegan{}, Working},
		{AttemptEnded{Failed: true}, Working},
		{RetryScheduled{Attempt: 2, Max: 3, Delay: 600 * time.Millisecond}, Retrying},
		{RunBegan{}, Working},
		{AttemptEnded{}, Working},
		{Settled{Idle: true}, Idle},
	}},
	{"retries exhausted (4.3)", []step{
		{RunBegan{}, Working},
		{AttemptEnded{Failed: true}, Working},
		{RetryScheduled{Attempt: 1, Max: 1}, Retrying},
		{RunBegan{}, Working},
		{AttemptEnded{Failed: true}, Working},
		{Settled{Idle: true}, Idle},
	}},
	{"an error that is not retried (4.3)", []step{
		{RunBegan{}, Working},
		{AttemptEnded{Failed: true}, Working},
		{Settled{Idle: true}, Idle},
	}},
	{"abort during back-off (4.3)", []step{
		{RunBegan{}, Working},
		{AttemptEnded{Failed: true}, Working},
		{RetryScheduled{Attempt: 1, Max: 3}, Retrying},
		{Settled{Aborted: true, Idle: true}, Idle},
	}},
	{"the same, looked at after the event (4.3)", []step{
		{RunBegan{}, Working},
		{AttemptEnded{Failed: true}, Working},
		{RetryScheduled{Attempt: 1, Max: 3}, Retrying},
		{Settled{Aborted: true}, Retrying},
		{Looked{Idle: true}, Idle},
	}},
	{"manual compaction (4.4)", []step{
		{CompactionBegan{Reason: Manual}, Compacting},
		{CompactionEnded{}, Working}, // isIdle() is still false inside it
		{Looked{Idle: true}, Idle},
	}},
	{"manual compaction while busy (4.4)", []step{
		{RunBegan{}, Working},
		{AttemptEnded{}, Working},
		{Settled{Aborted: true, Idle: false}, Working}, // the host is not idle: the compaction comes next
		{CompactionBegan{Reason: Manual}, Compacting},
		{CompactionEnded{}, Working},
		{Looked{Idle: true}, Idle},
	}},
	{"manual compaction that overlaps the settling (4.4)", []step{
		{RunBegan{}, Working},
		{CompactionBegan{Reason: Manual}, Compacting},
		{Settled{Aborted: true, Idle: false}, Compacting},
		{CompactionEnded{}, Working},
		{Looked{Idle: true}, Idle},
	}},
	{"threshold, after the last turn (4.4)", []step{
		{RunBegan{}, Working},
		{AttemptEnded{}, Working},
		{CompactionBegan{Reason: Threshold}, Compacting},
		{CompactionEnded{}, Working},
		{Settled{Idle: true}, Idle},
	}},
	{"threshold, between turns (4.4)", []step{
		{RunBegan{}, Working},
		{CompactionBegan{Reason: Threshold}, Compacting},
		{CompactionEnded{}, Working},
		{RunBegan{}, Working},
		{AttemptEnded{}, Working},
		{Settled{Idle: true}, Idle},
	}},
	{"threshold, before a prompt (4.4)", []step{
		{CompactionBegan{Reason: Threshold}, Compacting},
		{CompactionEnded{}, Working},
		{RunBegan{}, Working},
		{AttemptEnded{}, Working},
		{Settled{Idle: true}, Idle},
	}},
	{"overflow with recovery (4.4)", []step{
		{RunBegan{}, Working},
		{AttemptEnded{Failed: true}, Working},
		{CompactionBegan{Reason: Overflow, WillRetry: true}, Compacting},
		{CompactionEnded{WillRetry: true}, Working},
		{RunBegan{}, Working},
		{AttemptEnded{}, Working},
		{Settled{Idle: true}, Idle},
	}},
	{"overflow twice: an end without a beginning (4.4)", []step{
		{RunBegan{}, Working},
		{AttemptEnded{Failed: true}, Working},
		{CompactionBegan{Reason: Overflow, WillRetry: true}, Compacting},
		{CompactionEnded{WillRetry: true}, Working},
		{RunBegan{}, Working},
		{AttemptEnded{Failed: true}, Working},
		{CompactionEnded{}, Working},
		{Settled{Idle: true}, Idle},
	}},
	{"compaction aborted inside a run (4.4)", []step{
		{RunBegan{}, Working},
		{CompactionBegan{Reason: Threshold}, Compacting},
		{CompactionEnded{}, Working},
		{Settled{Aborted: true, Idle: true}, Idle},
	}},
	{"manual compaction fails (4.4)", []step{
		{CompactionBegan{Reason: Manual}, Compacting},
		{CompactionEnded{}, Working},
		{Looked{Idle: true}, Idle},
	}},
	{"nothing to compact: an end without a beginning, no run (4.4)", []step{
		{CompactionEnded{}, Idle},
		{Looked{Idle: true}, Idle},
	}},
	{"compaction whose end is never heard", []step{
		{CompactionBegan{Reason: Manual}, Compacting},
		{Looked{Idle: false}, Compacting},
		{Looked{Idle: true}, Idle},
	}},
	{"a compaction ends a pending retry", []step{
		{RunBegan{}, Working},
		{RetryScheduled{Attempt: 1}, Retrying},
		{CompactionBegan{Reason: Overflow}, Compacting},
		{CompactionEnded{}, Working},
	}},
	{"branch summary (4.5)", []step{
		{SummaryBegan{}, Working},
		{Looked{Idle: false}, Working},
		{SummaryEnded{}, Idle},
	}},
	{"branch summary fails and is closed by a look (4.5)", []step{
		{SummaryBegan{}, Working},
		{Looked{Idle: false}, Working},
		{Looked{Idle: true}, Idle},
	}},
	{"abort while streaming (4.6)", []step{
		{RunBegan{}, Working},
		{AttemptEnded{}, Working},
		{Settled{Aborted: true, Idle: true}, Idle},
	}},
	{"abort in a tool (4.6)", []step{
		{RunBegan{}, Working},
		{ToolBegan{"1", "bash"}, Working},
		{ToolEnded{"1"}, Working},
		{RunBegan{}, Working},
		{AttemptEnded{}, Working},
		{Settled{Aborted: true, Idle: true}, Idle},
	}},
	{"queued user messages go on in the same run (4.7)", []step{
		{RunBegan{}, Working},
		{RunBegan{}, Working},
		{AttemptEnded{}, Working},
		{Settled{Idle: true}, Idle},
	}},
	{"a dialog is no state", []step{
		{DialogOpened{}, Idle},
		{DialogClosed{}, Idle},
		{RunBegan{}, Working},
		{DialogOpened{}, Working},
		{DialogClosed{}, Working},
	}},
	{"a look opens what began unheard", []step{
		{Looked{Idle: true}, Idle},
		{Looked{Idle: false}, Working},
		{Looked{Idle: true}, Idle},
	}},
	{"a look while retrying changes nothing", []step{
		{RunBegan{}, Working},
		{RetryScheduled{Attempt: 1}, Retrying},
		{Looked{Idle: false}, Retrying},
	}},
}

func TestOrders(t *testing.T) {
	for _, o := range orders {
		var m Machine
		if m.State() != Idle {
			t.Fatalf("zero machine is %s, want idle", m.State())
		}
		for i, s := range o.steps {
			now := t0.Add(time.Duration(i) * time.Second)
			before, since := m.State(), m.Since()
			changed := m.Handle(s.ev, now)
			if got := m.State(); got != s.want {
				t.Errorf("%s: after step %d (%#v) %s, want %s", o.name, i, s.ev, got, s.want)
			}
			if changed != (m.State() != before) {
				t.Errorf("%s: step %d (%#v): changed = %v, but %s became %s", o.name, i, s.ev, changed, before, m.State())
			}
			want := since
			if changed || i == 0 {
				want = now
			}
			if !m.Since().Equal(want) {
				t.Errorf("%s: step %d: since %s, want %s", o.name, i, m.Since(), want)
			}
		}
	}
}

func TestRunOpen(t *testing.T) {
	var m Machine
	for _, s := range []struct {
		ev   Event
		want bool
	}{
		{SummaryBegan{}, false},
		{SummaryEnded{}, false},
		{RunBegan{}, true},
		{AttemptEnded{Failed: true}, true},
		{RetryScheduled{Attempt: 1}, true},
		{Settled{Idle: true}, false},
	} {
		m.Handle(s.ev, t0)
		if got := m.RunOpen(); got != s.want {
			t.Errorf("after %#v: RunOpen = %v, want %v", s.ev, got, s.want)
		}
	}
}

func TestDetail(t *testing.T) {
	at := func(s int) time.Time { return t0.Add(time.Duration(s) * time.Second) }
	retry := RetryScheduled{Attempt: 2, Max: 3, Delay: time.Second, Error: "429"}
	compaction := CompactionBegan{Reason: Overflow, WillRetry: true}
	tests := []struct {
		name   string
		events []Event
		want   Detail
	}{
		{"nothing", nil, Detail{}},
		{"retry", []Event{RunBegan{}, retry}, Detail{Retry: &retry}},
		{"retry is over", []Event{RunBegan{}, retry, RunBegan{}}, Detail{}},
		{"retry was aborted", []Event{RunBegan{}, retry, Settled{Aborted: true, Idle: true}}, Detail{}},
		{"compaction", []Event{RunBegan{}, compaction}, Detail{Compaction: &compaction}},
		{"compaction is over", []Event{RunBegan{}, compaction, CompactionEnded{}}, Detail{}},
		{"the oldest tool", []Event{RunBegan{}, ToolBegan{"1", "read"}, ToolBegan{"2", "bash"}}, Detail{Tool: "read", ToolSince: at(1)}},
		{"the oldest that still runs", []Event{RunBegan{}, ToolBegan{"1", "read"}, ToolBegan{"2", "bash"}, ToolBegan{"3", "edit"}, ToolEnded{"1"}}, Detail{Tool: "bash", ToolSince: at(2)}},
		{"told of twice", []Event{RunBegan{}, ToolBegan{"1", "read"}, ToolBegan{"1", "read"}, ToolBegan{"2", "bash"}, ToolEnded{"1"}}, Detail{Tool: "bash", ToolSince: at(3)}},
		{"an unknown end", []Event{ToolBegan{"1", "read"}, ToolEnded{"9"}}, Detail{Tool: "read", ToolSince: at(0)}},
		{"no tool outlives its run", []Event{RunBegan{}, ToolBegan{"1", "read"}, AttemptEnded{}}, Detail{}},
		{"nor a settled host", []Event{RunBegan{}, ToolBegan{"1", "read"}, Settled{Idle: true}}, Detail{}},
		{"dialog", []Event{DialogOpened{}}, Detail{Dialog: true}},
		{"a dialog outlives a look", []Event{DialogOpened{}, Looked{Idle: true}}, Detail{Dialog: true}},
		{"dialog closed", []Event{DialogOpened{}, DialogClosed{}}, Detail{}},
	}
	for _, tt := range tests {
		var m Machine
		for i, ev := range tt.events {
			m.Handle(ev, at(i))
		}
		if diff := cmp.Diff(tt.want, m.Detail()); diff != "" {
			t.Errorf("%s: Detail (-want +got):\n%s", tt.name, diff)
		}
	}
}

// anyEvent draws from every kind of fact.
func anyEvent() *rapid.Generator[Event] {
	call := rapid.SampledFrom([]string{"1", "2", "3"})
	return rapid.Custom(func(t *rapid.T) Event {
		switch rapid.IntRange(0, 12).Draw(t, "kind") {
		case 0:
			return RunBegan{}
		case 1:
			return AttemptEnded{Failed: rapid.Bool().Draw(t, "failed")}
		case 2:
			return RetryScheduled{Attempt: 1, Max: 3}
		case 3:
			return Settled{Aborted: rapid.Bool().Draw(t, "aborted"), Idle: rapid.Bool().Draw(t, "idle")}
		case 4:
			return CompactionBegan{Reason: Threshold}
		case 5:
			return CompactionEnded{}
		case 6:
			return SummaryBegan{}
		case 7:
			return SummaryEnded{}
		case 8:
			return Looked{Idle: rapid.Bool().Draw(t, "idle")}
		case 9:
			return ToolBegan{call.Draw(t, "call"), "bash"}
		case 10:
			return ToolEnded{call.Draw(t, "call")}
		case 11:
			return DialogOpened{}
		}
		return DialogClosed{}
	})
}

// Whatever came before: a host that says it is idle is idle, one that says it
// is not is not, and between the beginning of a run and its settling there is
// no moment of idleness.
func TestProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var m Machine
		now, open := t0, false
		for _, ev := range rapid.SliceOfN(anyEvent(), 1, 40).Draw(t, "events") {
			now = now.Add(time.Second)
			before := m.State()
			changed := m.Handle(ev, now)
			if changed != (m.State() != before) {
				t.Fatalf("%#v: changed = %v, but %s became %s", ev, changed, before, m.State())
			}
			switch ev := ev.(type) {
			case RunBegan:
				open = true
			case Settled:
				open = false
				if idle := m.State() == Idle; idle != ev.Idle {
					t.Fatalf("after %#v the state is %s", ev, m.State())
				}
			case Looked:
				if ev.Idle {
					open = false
				}
				if idle := m.State() == Idle; idle != ev.Idle {
					t.Fatalf("after %#v the state is %s", ev, m.State())
				}
			}
			if open && m.State() == Idle {
				t.Fatalf("idle after %#v, inside a run", ev)
			}
			if m.State() == Idle && m.RunOpen() {
				t.Fatalf("idle after %#v, with a run open", ev)
			}
			if m.Since().After(now) {
				t.Fatalf("since %s is after %s", m.Since(), now)
			}
		}
	})
}
