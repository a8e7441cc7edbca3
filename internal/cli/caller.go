package cli

import (
	"os"

	"switchboard/internal/delivery"
	"switchboard/internal/exchange"
	"switchboard/internal/proc"
)

// caller is what is known about who runs this program.
type caller struct {
	pid   int
	cwd   string
	id    string             // the session whose shell this is, as Pi tells the commands of its bash tool
	agent bool               // some agent started this, as Pi tells all its children
	above []exchange.Session // live sessions whose process started this one, nearest first
	// terminal: somebody may sit there. Scripts and cron have none, nor have
	// the commands of an agent, though they leave their parents and clean
	// their environment.
	terminal bool
}

func (a *app) caller(roster []exchange.Session) caller {
	cwd, _ := os.Getwd() // a folder that was removed has no name
	return caller{
		pid: os.Getpid(), cwd: cwd,
		id: a.getenv("PI_SESSION_ID"), agent: a.getenv("PI_CODING_AGENT") != "",
		above: above(roster, os.Getpid()), terminal: proc.HasTerminal(),
	}
}

// above finds the sessions among a process's ancestors. A command can empty its
// environment, but not easily choose its parents.
func above(roster []exchange.Session, pid int) []exchange.Session {
	var out []exchange.Session
	for range 64 { // deeper than any shell, and an end in any case
		parent, err := proc.Parent(pid)
		if err != nil || parent == pid {
			return out
		}
		pid = parent
		for _, s := range roster {
			if s.Agent.PID != pid {
				continue
			}
			if st := proc.State(s.Agent); st == proc.Alive || st == proc.Stopped {
				out = append(out, s)
			}
		}
	}
	return out
}

// sender says whose message it is. Who is run by an agent is that session, if
// that can be told for sure, else a program. A human is who is at a terminal
// with no agent in between: a model could otherwise speak for its human
// through its shell. One that makes itself a terminal still can, as it can
// write the file by itself.
func (c caller) sender(roster []exchange.Session) delivery.Sender {
	if c.terminal && !c.agent && c.id == "" && len(c.above) == 0 {
		return delivery.Sender{Human: true, PID: c.pid, Cwd: c.cwd}
	}
	if s, ok := c.session(roster); ok {
		return delivery.Sender{Session: s.Key.ID, Name: s.Name, PID: s.Agent.PID, Cwd: s.Cwd}
	}
	return delivery.Sender{Name: "a program in " + c.cwd, PID: c.pid, Cwd: c.cwd}
}

// session is the live session that runs us.
func (c caller) session(roster []exchange.Session) (exchange.Session, bool) {
	candidates := c.above
	if len(c.above) == 0 {
		candidates = roster // in a container of its own a shell can't see its agent
	}
	var found []exchange.Session
	for _, s := range candidates {
		switch {
		case c.id != "" && s.Key.ID == c.id:
			return s, true
		// Without a name only the nearest process counts, and several
		// sessions in it could each have been it.
		case c.id == "" && len(c.above) > 0 && s.Agent.PID == c.above[0].Agent.PID:
			found = append(found, s)
		}
	}
	if len(found) == 1 {
		return found[0], true
	}
	return exchange.Session{}, false
}
