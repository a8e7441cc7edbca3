package pihost

import (
	"time"

	"switchboard/internal/delivery"
	"switchboard/internal/lifecycle"
)

// retrySettings are Pi's, as far as its settings files say something.
type retrySettings struct {
	Enabled    *bool `json:"enabled,omitempty"`
	MaxRetries *int  `json:"maxRetries,omitempty"`
	BaseMS     *int  `json:"baseDelayMs,omitempty"`
	MaxDelayMS *int  `json:"maxAgentDelayMs,omitempty"`
}

// Pi's own defaults.
const (
	piMaxRetries = 3
	piBaseMS     = 2000
	piMaxDelayMS = 60_000
)

// retryWatch notices that Pi is about to repeat a failed request. Pi has no
// event for it. The sign is that right after a failed run has ended, and before
// anything else, the failed message was edited out of the context.
type retryWatch struct {
	settings retrySettings
	attempt  int
	failed   bool // the last thing heard was the end of a failed run
}

// see takes note of an event, and returns the retry that it announces.
func (w *retryWatch) see(e hostEvent) (lifecycle.RetryScheduled, bool) {
	failed := w.failed
	w.failed = false
	switch e.Type {
	case "agent_end":
		w.failed = e.Error
		if !e.Error {
			w.attempt = 0
		}
	case "agent_settled":
		w.attempt = 0
	case "look":
		if failed && e.After == "agent_end" && e.Leaf == "context_edit" {
			w.attempt++
			return w.scheduled(e.Message), true
		}
		// Any other look, and what it finds, is no sign of anything.
		w.failed = failed && e.After != "agent_end"
	case "tool_execution_end", "session_info_changed", "model_select", "ui_prompt_start", "ui_prompt_end":
		w.failed = failed
	}
	return lifecycle.RetryScheduled{}, false
}

// scheduled computes what Pi tells its RPC clients and no extension.
func (w *retryWatch) scheduled(message string) lifecycle.RetryScheduled {
	base := value(w.settings.BaseMS, piBaseMS)
	delay := min(base<<min(w.attempt-1, 20), value(w.settings.MaxDelayMS, piMaxDelayMS))
	return lifecycle.RetryScheduled{
		Attempt: w.attempt, Max: value(w.settings.MaxRetries, piMaxRetries),
		Delay: time.Duration(delay) * time.Millisecond, Error: delivery.Line(message, 300),
	}
}

func value(p *int, otherwise int) int {
	if p == nil || *p < 0 {
		return otherwise
	}
	return *p
}
