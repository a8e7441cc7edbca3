package team

import (
	"strings"

	"switchboard/internal/delivery"
)

// MaxTask bounds a task that others see, in bytes.
const MaxTask = 200

// Rules for the task that a prompt gives (spec: telecom, Callsigns and
// presence).
const (
	fewWords      = 2  // a prompt of fewer never becomes the task
	replacesSet   = 10 // words of a prompt that replaces a task which was set
	shortQuestion = 5  // words of a question that replaces no task
)

// FromPrompt returns the task that a session has after its human's prompt, and
// whether that is another than before. set says that the task was set by the
// session's model.
func FromPrompt(prompt, task string, set bool) (string, bool) {
	words := len(strings.Fields(prompt))
	switch {
	case words < fewWords:
		return task, false
	case task != "" && set && words < replacesSet:
		return task, false
	case task != "" && words <= shortQuestion && strings.HasSuffix(strings.TrimSpace(prompt), "?"):
		return task, false
	}
	line := delivery.Line(firstLine(prompt), MaxTask)
	return line, line != task
}

// firstLine is the first line of a text that says something.
func firstLine(s string) string {
	for line := range strings.Lines(s) {
		if line = strings.TrimSpace(line); line != "" {
			return line
		}
	}
	return ""
}
