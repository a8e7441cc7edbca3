package pihost

import (
	"time"

	"switchboard/internal/lifecycle"
)

// moment is a time in milliseconds since 1970; 0 is no time.
func moment(ms int64) time.Time {
	if ms <= 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

// facts translates one of Pi's events into what it means for the lifecycle.
// Pi's names and orders are in the package documentation of lifecycle's tests.
func (s *server) facts(e hostEvent) []lifecycle.Event {
	retry, again := s.retry.see(e)
	switch e.Type {
	case "before_agent_start", "agent_start", "turn_start":
		return []lifecycle.Event{lifecycle.RunBegan{}}
	case "agent_end":
		return []lifecycle.Event{lifecycle.AttemptEnded{Failed: e.Error}}
	case "agent_settled":
		// Whether it is idle shows once this event is over, and the look after it
		// tells: a compaction may have ended the run, and what other extensions
		// send meanwhile starts another.
		return []lifecycle.Event{lifecycle.Settled{Aborted: e.Aborted, At: moment(e.At)}}
	case "session_before_compact":
		return []lifecycle.Event{lifecycle.CompactionBegan{Reason: lifecycle.Reason(e.Reason), WillRetry: e.WillRetry}}
	case "session_compact", "session_compact_failed":
		return []lifecycle.Event{lifecycle.CompactionEnded{WillRetry: e.WillRetry, Failed: e.Type == "session_compact_failed"}}
	case "session_before_tree":
		if e.Summary {
			return []lifecycle.Event{lifecycle.SummaryBegan{}}
		}
	case "session_tree":
		return []lifecycle.Event{lifecycle.SummaryEnded{}}
	case "tool_execution_start":
		return []lifecycle.Event{lifecycle.ToolBegan{CallID: e.CallID, Tool: e.Tool}}
	case "tool_execution_end":
		return []lifecycle.Event{lifecycle.ToolEnded{CallID: e.CallID}}
	case "ui_prompt_start":
		return []lifecycle.Event{lifecycle.DialogOpened{}}
	case "ui_prompt_end":
		return []lifecycle.Event{lifecycle.DialogClosed{}}
	case "look":
		if again {
			return []lifecycle.Event{retry}
		}
		return []lifecycle.Event{lifecycle.Looked{Idle: e.Idle}}
	}
	return nil // an event of a newer extension
}
