package main

import (
	"context"
	"fmt"
	"io"
	"os"
)

// lab is what the rows measure with.
type lab struct {
	ctx      context.Context
	dir      string // for temporary folders; removed at the end
	programs programs
	quick    bool
	teams    bool // sessions are in teams
	log      io.Writer
}

// row is one thing to measure. It may yield several figures.
type row struct {
	name    string
	measure func(*lab) ([]figure, error)
}

// rows are in the order of the design's budget.
var rows = []row{
	{"message/sidecar", messageBetweenSidecars},
	{"message/pi", messageInPi},
	{"hook/pi", hookInPi},
	{"hook/sidecar", hookInSidecar},
	{"guard/team", guardInTeam},
	{"team/fold", folding},
	{"team/brief", briefing},
	{"beacon/transition", beaconTransition},
	{"beacon/query", beaconQuery},
	{"idle/memory", idleMemory},
	{"idle/cpu", idleCPU},
	{"start/pi", startOfPi},
	{"command", commands},
	{"crowd", crowdListed},
}

// rounds is how often to measure.
func (l *lab) rounds(full, quick int) int {
	if l.quick {
		return quick
	}
	return full
}

// folder makes a folder that lasts as long as the run.
func (l *lab) folder() (string, error) { return os.MkdirTemp(l.dir, "") }

// inTurns measures ours and the floor n times each, in turns, so that both
// meet the same machine: whatever else it does at the time.
func (l *lab) inTurns(n int, ours, floor func() (float64, error)) (o, f samples, err error) {
	for range n {
		if err := l.ctx.Err(); err != nil {
			return nil, nil, err
		}
		v, err := ours()
		if err != nil {
			return nil, nil, err
		}
		o = append(o, v)
		if v, err = floor(); err != nil {
			return nil, nil, fmt.Errorf("floor: %w", err)
		}
		f = append(f, v)
	}
	return o, f, nil
}

// skipped says why a row can't be measured here.
type skipped struct{ why string }

func (s *skipped) Error() string { return "skipped: " + s.why }
