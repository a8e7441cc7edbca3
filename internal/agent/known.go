package agent

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"switchboard/internal/guard"
	"switchboard/internal/team"
)

// mark is what a call showed the session of a file.
type mark struct {
	guard.Mark
	Call  string    `json:"call"`            // that made it
	At    time.Time `json:"at"`              // when it was made
	Off   bool      `json:"off,omitempty"`   // it was made on another branch of the conversation
	Told  bool      `json:"told,omitempty"`  // of a change since
	Stale bool      `json:"stale,omitempty"` // from before a compaction
}

// block counts how often one change blocked.
type block struct {
	Change uint64 `json:"change"` // number of the edit that was not read
	Times  int    `json:"times"`
}

// Bounds of what is remembered.
const (
	maxMarks  = 500 // files
	maxTrail  = 3   // marks of one file, for going back in the conversation
	maxLanded = 5
	maxAlone  = 100 // edits, one of each file
)

// learn notes what the session knows of a file since a call.
func (a *Agent) learn(p team.Path, call string, m guard.Mark, now time.Time) {
	trail := append([]mark{{Mark: m, Call: call, At: now.UTC()}}, a.edits.marks[p.File]...)
	a.edits.marks[p.File], a.edits.changed = trail[:min(len(trail), maxTrail)], true
	delete(a.edits.blocks, p.File)
	if len(a.edits.marks) <= maxMarks {
		return
	}
	oldest := slices.MinFunc(slices.Collect(maps.Keys(a.edits.marks)), func(x, y string) int {
		return cmp.Or(a.edits.marks[x][0].At.Compare(a.edits.marks[y][0].At), cmp.Compare(x, y))
	})
	delete(a.edits.marks, oldest)
}

// known is what the session knows of a file on this branch of its conversation.
func (e *edits) known(p team.Path) (mark, bool) {
	for _, m := range e.marks[p.File] {
		if !m.Off {
			return m, true
		}
	}
	return mark{}, false
}

// hear notes that the session is told of a change since it knew a file.
func (e *edits) hear(p team.Path) {
	for i, m := range e.marks[p.File] {
		if !m.Off {
			e.marks[p.File][i].Told, e.changed = true, true
			return
		}
	}
}

func (e *edits) block(p team.Path, b block) { e.blocks[p.File], e.changed = b, true }
func (e *edits) tell(of string)             { e.copies[of], e.changed = true, true }

func (e *edits) land(p team.Path) {
	if p.Root == "" {
		return
	}
	e.landed, e.changed = append(e.landed, p.Root), true
	e.landed = e.landed[max(0, len(e.landed)-maxLanded):]
}

// WorksIn is the checkout that most of the session's last edits were in, the
// latest if there are several; empty before the first edit.
func (a *Agent) WorksIn() (root string) {
	times := make(map[string]int, maxLanded)
	for _, r := range a.edits.landed {
		if times[r]++; times[r] >= times[root] {
			root = r
		}
	}
	return root
}

// compacted notes that what was read is no longer in the context.
func (e *edits) compacted() {
	for _, trail := range e.marks {
		for i := range trail {
			trail[i].Stale = trail[i].Stale || !trail[i].Off
		}
	}
	e.changed = true
}

// rewound takes as known what the calls on this branch of the conversation
// read and wrote. What another branch was refused counts for nothing here.
func (e *edits) rewound(calls []string) {
	here := make(map[string]bool, len(calls))
	for _, c := range calls {
		here[c] = true
	}
	for _, trail := range e.marks {
		for i := range trail {
			trail[i].Off = !here[trail[i].Call]
		}
	}
	clear(e.blocks)
	e.changed = true
}

// keepAlone remembers an edit that nobody is there to hear of.
func (e *edits) keepAlone(d team.Done) {
	e.alone = slices.DeleteFunc(e.alone, func(o team.Done) bool { return o.Path.File == d.Path.File })
	e.alone = append(e.alone, d)
	e.alone, e.changed = e.alone[max(0, len(e.alone)-maxAlone):], true
}

// editsMemory is what survives the process.
type editsMemory struct {
	Marks  map[string][]mark `json:"marks,omitempty"`
	Blocks map[string]block  `json:"blocks,omitempty"`
	Copies []string          `json:"copies,omitempty"`
	Landed []string          `json:"landed,omitempty"`
	Alone  []team.Done       `json:"alone,omitempty"`
}

func (e *edits) memory() json.RawMessage {
	data, err := json.Marshal(editsMemory{Marks: e.marks, Blocks: e.blocks, Copies: slices.Sorted(maps.Keys(e.copies)), Landed: e.landed, Alone: e.alone})
	if err != nil {
		return nil // plain values always encode
	}
	return data
}

func (e *edits) restore(data json.RawMessage) {
	var m editsMemory
	if json.Unmarshal(data, &m) != nil {
		return
	}
	for file, trail := range m.Marks {
		if len(trail) > 0 {
			e.marks[file] = trail
		}
	}
	if m.Blocks != nil {
		e.blocks = m.Blocks
	}
	e.landed, e.alone = m.Landed, m.Alone
	for _, c := range m.Copies {
		e.copies[c] = true
	}
}
