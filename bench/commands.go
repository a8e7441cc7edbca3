package main

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"time"
)

// commands: what a person waits for, from the start of the process to its end.
func commands(l *lab) ([]figure, error) {
	root, err := l.folder()
	if err != nil {
		return nil, err
	}
	few, err := l.crowd(root, 3)
	if err != nil {
		return nil, err
	}
	defer few.leave()
	var figures []figure
	for _, name := range []string{"list", "version"} {
		f, err := l.command(root, l.rounds(300, 10), name)
		if err != nil {
			return figures, err
		}
		f.what = "switchboard " + name
		f.budget = []limit{p50Within(4)}
		figures = append(figures, f)
	}
	return figures, nil
}

// crowdListed: how long the roster of a crowded machine takes.
func crowdListed(l *lab) ([]figure, error) {
	n := l.rounds(200, 50)
	root, err := l.folder()
	if err != nil {
		return nil, err
	}
	all, err := l.crowd(root, n)
	if err != nil {
		return nil, err
	}
	defer all.leave()
	out, err := l.program(root, "list", "--json").Output()
	if err != nil {
		return nil, err
	}
	var list struct{ Sessions []struct{ ID string } }
	if err := json.Unmarshal(out, &list); err != nil {
		return nil, err
	}
	if len(list.Sessions) != n {
		return nil, fmt.Errorf("%d sessions are listed, want %d", len(list.Sessions), n)
	}
	f, err := l.command(root, l.rounds(100, 10), "list", "--json")
	if err != nil {
		return nil, err
	}
	f.what = fmt.Sprintf("switchboard list --json, %d sessions", n)
	f.budget = []limit{under(50, "ms")}
	return []figure{f}, nil
}

// command measures a whole process beside an empty one.
func (l *lab) command(root string, n int, args ...string) (figure, error) {
	timed := func(command func() *exec.Cmd) func() (float64, error) {
		return func() (float64, error) {
			cmd := command()
			var said strings.Builder
			cmd.Stderr = &said
			began := time.Now()
			err := cmd.Run()
			took := ms(time.Since(began))
			if err != nil {
				err = fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, said.String())
			}
			return took, err
		}
	}
	o, f, err := l.inTurns(n,
		timed(func() *exec.Cmd { return l.program(root, args...) }),
		timed(func() *exec.Cmd { return exec.CommandContext(l.ctx, l.programs.empty) }))
	return figure{unit: "ms", ours: o, floor: f}, err
}
