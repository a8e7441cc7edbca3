package sidecar

import (
	"cmp"
	"path/filepath"
	"time"

	"switchboard/internal/agent"
	"switchboard/internal/exchange"
	"switchboard/internal/repo"
	"switchboard/internal/team"
)

// locate looks where the session works: its checkout's branch may change.
func (s *Sidecar) locate() {
	c, err := repo.Find(s.cfg.Session.Cwd)
	if err != nil {
		s.cfg.Log.Debug("find checkout", "err", err)
		if c.Root == "" {
			return
		}
	}
	p := agent.Place{Team: exchange.TeamID(c.Key()), Checkout: checkout(c)}
	p.Below, p.Linked = below(c.Root, s.cfg.Session.Cwd)
	s.worksIn = s.brain.WorksIn()
	if s.worksIn != "" && s.worksIn != c.Root {
		if w, err := repo.Find(s.worksIn); err == nil && w.Key() == c.Key() {
			p.Work = checkout(w)
		}
	}
	if s.place.Team != "" {
		p.Team = s.place.Team // a repository that is made later counts from the next start
	}
	if p != s.place {
		s.place = p
		s.handle(agent.Placed{Place: p})
	}
}

// below is where a folder lies in its checkout, and whether a link led there.
func below(root, dir string) (path string, linked bool) {
	real, err := repo.Canonical(dir, ".")
	if err != nil {
		return "", true
	}
	if rel, err := filepath.Rel(root, real); err == nil && rel != "." && filepath.IsLocal(rel) {
		path = filepath.ToSlash(rel)
	}
	return path, real != filepath.Clean(dir)
}

func checkout(c repo.Checkout) agent.Checkout {
	return agent.Checkout{Root: c.Root, Branch: cmp.Or(c.Branch, c.Head)}
}

// readJournal tells the agent what is new in the team's journal, and reports
// whether anything is; with always the agent is also told that nothing is.
func (s *Sidecar) readJournal(always bool) bool {
	if s.lease == nil || !s.brain.InTeam() {
		return false
	}
	entries, cursor, err := s.cfg.Exchange.Read(s.place.Team, s.cursor)
	if err != nil {
		s.cfg.Log.Error("read journal", "err", err)
		return false
	}
	s.cursor = cursor
	s.lines += len(entries)
	if len(entries) > 0 || always {
		s.handle(agent.JournalRead{Entries: entries})
	}
	if s.lines > maxLines {
		s.shorten()
	}
	return len(entries) > 0
}

// catchUp learns who is in the team, and what they are doing: who is a member
// and was never looked up would pass for one that left.
func (s *Sidecar) catchUp() {
	s.readJournal(true)
	s.lookAtAllPeers()
}

// maxLines is how long a journal grows before it is made shorter.
const maxLines = 4000

// shorten makes the journal shorter. The first of the team does it, and the
// others count on.
func (s *Sidecar) shorten() {
	s.lines = maxLines / 2 // not at each entry from now on, whatever is left
	if !s.brain.First() {
		return
	}
	team := s.place.Team
	s.work.Go(func() { // verdicts don't wait for it
		err := s.cfg.Exchange.Rewrite(team, func(all []exchange.Entry) []exchange.Entry {
			kept := agent.Shorten(all, time.Now())
			s.cfg.Log.Info("shorten journal", "from", len(all), "to", len(kept))
			return kept
		})
		if err != nil {
			s.cfg.Log.Error("shorten journal", "err", err)
		}
	})
}

// append writes to the journal; quiet means that nobody else need hear of it now.
func (s *Sidecar) append(entries []exchange.Entry, quiet bool) {
	if s.place.Team == "" {
		return
	}
	_, err := s.cfg.Exchange.Append(s.place.Team, entries...)
	if err != nil {
		s.cfg.Log.Error("append", "err", err)
		s.handle(agent.AppendFailed{Err: err, Entries: entries})
		return
	}
	s.readJournal(false)
	if quiet {
		return
	}
	var all []string
	for _, m := range s.brain.Peers() {
		all = append(all, m.Session)
	}
	s.ring(all)
}

// ring wakes other members: there is something new that they must hear of.
func (s *Sidecar) ring(sessions []string) {
	var keys []exchange.SessionKey
	for _, id := range sessions {
		keys = append(keys, exchange.SessionKey{Host: exchange.PiHost, ID: id})
	}
	s.cfg.Exchange.Ring(keys...)
}

// lookPeers is how many members are looked up each second: whoever dies writes
// that down itself, unless its sidecar dies with it, and is missed in two rounds
// then. It is a number, so that large teams don't cost more.
const lookPeers = 2

// lookAtPeers looks some members up, another part each time.
func (s *Sidecar) lookAtPeers() {
	if s.lease == nil || !s.brain.InTeam() {
		return
	}
	peers := s.brain.Peers()
	s.lookAt(peers, min(len(peers), lookPeers))
}

// lookAtAllPeers looks them all up: the model is about to be told of them.
func (s *Sidecar) lookAtAllPeers() {
	if s.lease == nil || !s.brain.InTeam() {
		return
	}
	peers := s.brain.Peers()
	s.lookAt(peers, len(peers))
}

func (s *Sidecar) lookAt(peers []team.Member, n int) {
	for range n {
		s.asked++
		s.lookUp(peers[s.asked%len(peers)].Session)
	}
}

func (s *Sidecar) lookUp(session string) {
	r, err := s.cfg.Exchange.Session(exchange.SessionKey{Host: exchange.PiHost, ID: session})
	s.handle(agent.PeerSeen{Session: session, Gone: err != nil, Record: r})
}
