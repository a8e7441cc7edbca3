package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	brain "switchboard/internal/agent"
	"switchboard/internal/brief"
	"switchboard/internal/exchange"
	"switchboard/internal/exchange/dirstore"
	"switchboard/internal/lifecycle"
	"switchboard/internal/repo"
	"switchboard/internal/team"
)

// Sizes that the design names.
const (
	teamPeers   = 50
	teamEntries = 10_000
)

// past writes the journal of a team that has been busy.
func past(root string) error {
	store, err := dirstore.Open(root, "bench")
	if err != nil {
		return err
	}
	c, err := repo.Find(root)
	if err != nil {
		return err
	}
	all := history(root)
	for len(all) > 0 {
		n := min(len(all), 500)
		if _, err := store.Append(exchange.TeamID(c.Key()), all[:n]...); err != nil {
			return err
		}
		all = all[n:]
	}
	return nil
}

// history is teamEntries changes by teamPeers sessions.
func history(root string) []exchange.Entry {
	var out []exchange.Entry
	for i := range teamEntries {
		session := fmt.Sprintf("peer-%02d", i%teamPeers)
		e := exchange.Entry{Seq: uint64(i + 1), Wall: time.Now(), Session: session, Incarnation: session, Kind: string(team.Joined), Body: team.Encode(team.Joining{})}
		if i >= teamPeers {
			rel := fmt.Sprintf("src/f%04d.go", i%3000)
			e.Kind, e.Body = string(team.EditDone), team.Encode(team.Done{
				ID: fmt.Sprint("c", i), Path: team.Path{File: filepath.Join(root, rel), Root: root, Rel: rel},
				Hash: "0123456789abcdef0123456789abcdef", Edits: 1, First: 3, Lines: []string{"-old line", "+new line"},
			})
		}
		out = append(out, e)
	}
	return out
}

// guardInTeam: the verdict on a write, with peers and a history.
func guardInTeam(l *lab) ([]figure, error) {
	l.teams = true
	defer func() { l.teams = false }()
	root, err := l.folder()
	if err != nil {
		return nil, err
	}
	if err := past(root); err != nil {
		return nil, err
	}
	for i := range l.rounds(teamPeers, 3) {
		peer, err := l.attach(root, fmt.Sprintf("live-%02d", i))
		if err != nil {
			return nil, err
		}
		defer peer.leave()
	}
	s, err := l.attach(root, "one")
	if err != nil {
		return nil, err
	}
	defer s.leave()
	echo, err := startChild(exec.CommandContext(l.ctx, l.programs.echo))
	if err != nil {
		return nil, err
	}
	defer echo.end()
	file := filepath.Join(root, "mine.txt")
	if err := os.WriteFile(file, []byte("one\n"), 0o600); err != nil {
		return nil, err
	}
	n := 0
	verdict := func() (float64, error) {
		n++
		call := map[string]any{"tool": "write", "callId": fmt.Sprintf("call_%d", n), "path": file}
		took, err := s.verdict(call)
		if err != nil {
			return 0, err
		}
		if _, err := s.call("toolDone", timed(call)); err != nil {
			return 0, err
		}
		return took, s.event("tool_execution_end", map[string]any{"callId": call["callId"]})
	}
	o, f, err := l.inTurns(l.rounds(1000, 50), verdict, echo.echoed)
	if err != nil {
		return nil, err
	}
	return []figure{{
		what: fmt.Sprintf("guard, %d peers, %d entries", l.rounds(teamPeers, 3), teamEntries), unit: "ms", ours: o, floor: f,
		budget: []limit{p50Within(5)},
	}}, nil
}

// folding: a journal into a team, beside reading its lines as JSON.
func folding(l *lab) ([]figure, error) {
	all := history("/repo")
	lines := make([][]byte, len(all))
	for i, e := range all {
		var err error
		if lines[i], err = json.Marshal(e); err != nil {
			return nil, err
		}
	}
	fold := func() (float64, error) {
		began := time.Now()
		var t team.Team
		brain.Fold(&t, all)
		return ms(time.Since(began)), nil
	}
	parse := func() (float64, error) {
		began := time.Now()
		for _, line := range lines {
			var e exchange.Entry
			if err := json.Unmarshal(line, &e); err != nil {
				return 0, err
			}
		}
		return ms(time.Since(began)), nil
	}
	o, f, err := l.inTurns(l.rounds(30, 3), fold, parse)
	if err != nil {
		return nil, err
	}
	return []figure{{what: fmt.Sprintf("fold of %d entries", teamEntries), unit: "ms", ours: o, floor: f}}, nil
}

// briefing: a full brief of a large team, beside writing its peers as JSON.
func briefing(l *lab) ([]figure, error) {
	now := time.Now()
	var peers []brief.Peer
	for i := range teamPeers {
		p := brief.Peer{
			Session: fmt.Sprint(i), Callsign: fmt.Sprintf("peer%d", i), ID: "01234567", Task: "write the session migration", TaskSince: now,
			Doing: brief.Activity{State: lifecycle.Working, Since: now}, Branch: "main", Messages: i%5 == 0,
		}
		for j := range 12 {
			p.Changed = append(p.Changed, brief.Change{Path: fmt.Sprintf("src/f%d-%d.go", i, j), At: now})
		}
		peers = append(peers, p)
	}
	full := func() (float64, error) {
		began := time.Now()
		brief.Full(brief.Me{Callsign: "alpha", Log: true}, peers, now)
		return ms(time.Since(began)), nil
	}
	encode := func() (float64, error) {
		began := time.Now()
		_, err := json.Marshal(peers)
		return ms(time.Since(began)), err
	}
	o, f, err := l.inTurns(l.rounds(300, 10), full, encode)
	if err != nil {
		return nil, err
	}
	return []figure{{what: fmt.Sprintf("a brief of %d peers", teamPeers), unit: "ms", ours: o, floor: f}}, nil
}
