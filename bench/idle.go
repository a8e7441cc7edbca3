package main

import (
	"fmt"
	"os/exec"
	"time"
)

// waiter starts a Go program that waits for the end of its input.
func (l *lab) waiter() (*child, error) {
	return startChild(exec.CommandContext(l.ctx, l.programs.empty, "wait"))
}

// idleMemory: what a sidecar holds two seconds after its session came to rest.
func idleMemory(l *lab) ([]figure, error) {
	n := l.rounds(10, 2)
	root, err := l.folder()
	if err != nil {
		return nil, err
	}
	all, err := l.crowd(root, n)
	if err != nil {
		return nil, err
	}
	defer all.leave()
	resident := figure{what: "sidecar, resident memory", unit: "MB", budget: []limit{worstUnder(16, "MB")}}
	private := figure{what: "  of it private", unit: "MB"}
	var waiters []*child
	for range n {
		w, err := l.waiter()
		if err != nil {
			return nil, err
		}
		defer w.end()
		waiters = append(waiters, w)
	}
	if err := l.sleep(2 * time.Second); err != nil {
		return nil, err
	}
	for i := range n {
		o, err := memoryOf(all[i].cmd.Process.Pid)
		if err != nil {
			return nil, err
		}
		f, err := memoryOf(waiters[i].cmd.Process.Pid)
		if err != nil {
			return nil, err
		}
		resident.ours, resident.floor = append(resident.ours, o.resident), append(resident.floor, f.resident)
		private.ours, private.floor = append(private.ours, o.private), append(private.floor, f.private)
	}
	return []figure{resident, private}, nil
}

// idleCPU: what each of many sidecars in one exchange costs while nothing
// happens. Each shows a beacon of its own, heartbeats included.
func idleCPU(l *lab) ([]figure, error) {
	l.teams = true
	defer func() { l.teams = false }()
	peers := l.rounds(100, 20)
	span := time.Duration(l.rounds(20, 3)) * time.Second
	root, err := l.folder()
	if err != nil {
		return nil, err
	}
	all, err := l.crowd(root, peers+1)
	if err != nil {
		return nil, err
	}
	defer all.leave()
	waiter, err := l.waiter()
	if err != nil {
		return nil, err
	}
	defer waiter.end()
	// What happens once after the start is not the cost of being idle.
	if err := l.sleep(2 * time.Second); err != nil {
		return nil, err
	}

	pids := []int{waiter.cmd.Process.Pid}
	for _, s := range all {
		pids = append(pids, s.cmd.Process.Pid)
	}
	before, err := cpuOf(pids)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	if err := l.sleep(span); err != nil {
		return nil, err
	}
	after, err := cpuOf(pids)
	if err != nil {
		return nil, err
	}
	took := time.Since(began)
	share := func(i int) float64 { return 100 * float64(after[i]-before[i]) / float64(took) }
	f := figure{
		what: fmt.Sprintf("sidecar with beacon, idle CPU, %d peers", peers), unit: "%",
		floor: samples{share(0)}, budget: []limit{under(0.1, "%")},
	}
	for i := range all {
		f.ours = append(f.ours, share(i+1))
	}
	return []figure{f}, nil
}

func cpuOf(pids []int) ([]time.Duration, error) {
	out := make([]time.Duration, len(pids))
	for i, pid := range pids {
		var err error
		if out[i], err = cpuTime(pid); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (l *lab) sleep(d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-l.ctx.Done():
		return l.ctx.Err()
	}
}
