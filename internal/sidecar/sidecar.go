// Package sidecar keeps one session in the exchange: it owns the session's
// record and inbox, feeds its agent with what happens, and carries out what
// the agent decides. One goroutine owns all state.
package sidecar

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"switchboard/internal/agent"
	"switchboard/internal/exchange"
	"switchboard/internal/lifecycle"
	"switchboard/internal/proc"
)

// Host is the program that runs the agent, as far as a sidecar needs it.
// Implementations are called from the sidecar's goroutine and must not block.
type Host interface {
	// Wake asks to start a turn with a handover. What came of it arrives as
	// agent.WakeAnswered, in its place among the events.
	Wake(h agent.Handover)
	// Tell shows the human one line; bad means that something is wrong.
	Tell(text string, bad bool)
	// Status sets the line at the foot of the screen; empty clears it.
	Status(text string)
	// Show publishes what the session is doing.
	Show(v agent.View)
	// Deck says how many messages wait for the model, once at the start and
	// whenever that changes.
	Deck(count int)
	// Siblings says which other sessions run in the same process. It is called
	// once this one's place is known, and when that changes.
	Siblings(others []exchange.Session)
	// Hold says that the answer to a call takes up to max, since another
	// session is at the same file.
	Hold(callID string, max time.Duration)
	// Transcript returns the ids of messages that the session's file holds
	// and that it has not returned before.
	Transcript() []string
}

// Config says what a sidecar works for.
type Config struct {
	Exchange exchange.Exchange // nil when there is none: the session is only shown
	Host     Host
	Session  agent.Session
	Agent    proc.ID       // the process that runs the agent
	Facts    []agent.Event // what is known already; told before anything else
	Log      *slog.Logger
}

// Sidecar is a running sidecar. Make one with Start.
type Sidecar struct {
	cfg   Config
	jobs  chan job
	leave chan bool
	done  chan struct{}

	// The rest belongs to the loop.
	brain    *agent.Agent
	events   []agent.Event // that the agent has not dealt with; the first is being dealt with
	place    agent.Place
	worksIn  string             // the checkout that the session was seen to work in
	cursor   exchange.Cursor    // how far the team's journal was read
	lines    int                // entries read since it was thought of making it shorter
	before   map[string]content // files before an edit, by its call
	asked    int                // the member that was looked up last
	lease    exchange.Lease
	record   exchange.Record // last published
	waiters  map[agent.Request]chan any
	nextReq  agent.Request
	began    time.Time
	lastBeat time.Time
	lastHunt time.Time
	swept    time.Time
	scanned  bool               // the transcript was read from its beginning
	siblings []exchange.Session // nil until looked for
	waiting  int                // how many messages wait for the model
	onDeck   int                // the same as last published; -1 before
	peek     bool               // look for siblings at the next tick
	peeked   time.Time          // when that was done last
	trouble  bool               // the record could not be written
	status   string             // the agent's line at the foot of the screen
	work     sync.WaitGroup
	ctx      context.Context
	cancel   context.CancelFunc
}

// job is one event for the loop, with a reply channel when somebody waits.
type job struct {
	ctx   context.Context
	event func(agent.Request) agent.Event
	reply chan any // nil when nobody waits
}

// Times of the loop.
const (
	look     = time.Second           // how often it looks without a ring
	huntSlow = time.Second           // how often it asks for a session that is open elsewhere
	huntFast = 10 * time.Millisecond // the same while its own predecessor is leaving
	overlap  = 5 * time.Second       // how long a predecessor may take to leave
	sweep    = time.Hour
	// peekEvery is how often it looks for siblings without a ring.
	peekEvery = time.Minute
	peekSoon  = 2 * time.Second // the same after a ring that had another reason
)

// Start starts a sidecar. Stop it with Leave.
func Start(cfg Config) *Sidecar {
	ctx, cancel := context.WithCancel(context.Background())
	s := &Sidecar{
		cfg: cfg, jobs: make(chan job, 64), leave: make(chan bool), done: make(chan struct{}),
		brain: agent.New(), waiters: make(map[agent.Request]chan any), began: time.Now(),
		before: make(map[string]content),
		ctx:    ctx, cancel: cancel,
	}
	go s.loop()
	return s
}

// Event tells the agent something. Events arrive in the order of the calls.
func (s *Sidecar) Event(ev agent.Event) {
	s.put(job{ctx: s.ctx, event: func(agent.Request) agent.Event { return ev }})
}

// ErrGone says that the sidecar has left.
var ErrGone = errors.New("the sidecar has left")

// Ask tells the agent something that it answers, and returns the answer: the
// Value of an agent.Reply. A request that is taken up only after ctx is done
// is dropped, since nobody waits for it any more.
func (s *Sidecar) Ask(ctx context.Context, event func(agent.Request) agent.Event) (any, error) {
	return s.ask(ctx, ctx, event)
}

// AskWithin is Ask for an answer that may take longer than the request may wait
// to be taken up: up to limit.
func (s *Sidecar) AskWithin(ctx context.Context, limit time.Duration, event func(agent.Request) agent.Event) (any, error) {
	long, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	return s.ask(ctx, long, event)
}

func (s *Sidecar) ask(taken, answered context.Context, event func(agent.Request) agent.Event) (any, error) {
	reply := make(chan any, 1)
	s.put(job{ctx: taken, event: event, reply: reply})
	select {
	case v := <-reply:
		if err, dropped := v.(error); dropped {
			return nil, err
		}
		return v, nil
	case <-answered.Done():
		return nil, answered.Err()
	case <-s.done:
		return nil, ErrGone
	}
}

func (s *Sidecar) put(j job) {
	select {
	case s.jobs <- j:
	case <-s.ctx.Done(): // it is leaving
	}
}

// Leave gives the session up and returns when all is quiet. With handOver a
// successor is expected: peers don't notice for exchange.LeaseTime.
func (s *Sidecar) Leave(handOver bool) {
	select {
	case s.leave <- handOver:
	case <-s.done:
	}
	<-s.done
}

func (s *Sidecar) loop() {
	defer close(s.done)
	defer s.work.Wait()
	defer s.cancel()
	tick := time.NewTicker(look)
	defer tick.Stop()
	s.handle(agent.Described{Session: s.cfg.Session})
	s.locate()
	for _, fact := range s.cfg.Facts {
		s.handle(fact)
	}
	if s.cfg.Exchange != nil {
		s.hunt()
	} else {
		s.lookForSiblings()
	}
	for {
		var rings <-chan struct{}
		var hunting <-chan time.Time
		if s.lease != nil {
			rings = s.lease.Rings()
		} else if s.cfg.Exchange != nil && time.Since(s.began) < overlap {
			hunting = time.After(huntFast)
		}
		select {
		case j := <-s.jobs:
			s.take(j)
		case <-rings:
			read := s.readJournal(false)
			if s.lease.Changed() {
				s.readInbox()
				read = true
			}
			if read {
				s.peek = true // there may have been another reason to ring
			} else {
				s.lookForSiblings()
			}
		case <-hunting:
			s.hunt()
		case <-tick.C:
			s.tick()
		case handOver := <-s.leave:
			if s.lease != nil {
				s.lookAtTranscript()
				if !handOver {
					s.handle(agent.Leaving{})
				}
				if err := s.lease.Release(handOver); err != nil {
					s.cfg.Log.Error("release", "err", err)
				}
				s.ringSiblings()
			}
			return
		}
	}
}

// take feeds one job to the agent.
func (s *Sidecar) take(j job) {
	if err := j.ctx.Err(); err != nil {
		if j.reply != nil {
			j.reply <- err
		}
		return
	}
	var req agent.Request
	if j.reply != nil {
		s.nextReq++
		req = s.nextReq
		s.waiters[req] = j.reply
	}
	ev := j.event(req)
	switch e := ev.(type) {
	case agent.Commanded:
		s.readJournal(false)
	case agent.ToolCalled:
		s.readJournal(false)
		e.Roster = s.roster()
		ev = e
	case agent.BoundaryReached:
		// What was handed over before is on disk by now, and what came in
		// since the last ring must not miss this boundary.
		s.readInbox()
		s.readJournal(false)
		if e.At == agent.BeforeRun {
			s.lookAtAllPeers()
		}
		s.lookAtTranscript()
	case agent.ToolAbout:
		if e.Op != "" {
			// The journal first: what it tells by then is in the file.
			s.readJournal(false)
			e.Hash = readContent(e.Path.File).hash
			ev = e
		}
	case agent.ToolDone:
		if e.Op != "" {
			s.readJournal(false)
			e.File = s.file(e.CallID, e.Path)
			ev = e
		}
	case agent.Lived:
		s.lookAtTranscript()
	}
	s.handle(ev)
	if s.brain.WorksIn() != s.worksIn {
		s.locate()
	}
	if e, ok := ev.(agent.Lived); ok {
		if end, ok := e.Fact.(lifecycle.ToolEnded); ok {
			delete(s.before, end.CallID) // a call that was refused has no other end
		}
	}
	s.deck()
}

// tick is what happens once a second, rung or not.
func (s *Sidecar) tick() {
	if s.cfg.Exchange == nil {
		s.handle(agent.Ticked{})
		return
	}
	if s.lease == nil {
		if time.Since(s.lastHunt) >= huntSlow {
			s.hunt()
		}
		return
	}
	if s.lease.Lost() {
		// A clean-up took the exchange away. Whoever is first owns it anew.
		s.cfg.Log.Error("lost session", "session", s.cfg.Session.Key.ID)
		s.lease, s.scanned = nil, false
		s.hunt()
		return
	}
	gone := s.record.Key.ID != "" && !s.lease.Published()
	if gone || time.Since(s.lastBeat) >= exchange.BeatEvery {
		s.lastBeat = time.Now()
		if err := s.lease.Beat(); err != nil {
			s.troubled(err) // only the record itself shows that it is over
		}
		s.locate()
	}
	if gone {
		s.publish(s.record)
	}
	if s.lease.Changed() {
		s.readInbox()
	}
	// A lost ring costs a while; one that had another reason too, a moment.
	if since := time.Since(s.peeked); s.peek && (len(s.siblings) > 0 || since > peekSoon) || since > peekEvery {
		s.lookForSiblings()
	}
	s.lookAtTranscript()
	s.readJournal(false)
	s.lookAtPeers()
	s.sweep()
	s.handle(agent.Ticked{})
}

// hunt tries to become the session's owner.
func (s *Sidecar) hunt() {
	s.lastHunt = time.Now()
	before, err := s.cfg.Exchange.Session(s.cfg.Session.Key)
	there := err == nil
	if there && before.Agent != s.cfg.Agent {
		// Another process has it, even while its sidecar is being replaced.
		s.yield(agent.OwnedElsewhere{By: before.Record})
		s.lookForSiblings() // nobody rings here
		return
	}
	lease, err := s.cfg.Exchange.Own(s.cfg.Session.Key)
	var owned *exchange.OwnedError
	switch {
	case errors.As(err, &owned):
		// Our own predecessor, or one whose record can't be seen yet, gets
		// time to go before the human is troubled.
		if time.Since(s.began) >= overlap {
			stuck := proc.State(owned.By.Agent) == proc.Gone
			s.yield(agent.OwnedElsewhere{By: owned.By, Stuck: stuck})
			s.lookForSiblings()
		}
		return
	case err != nil:
		s.troubled(err) // and asked for again
		s.lookForSiblings()
		return
	}
	memory, err := lease.Recall()
	if err != nil {
		s.cfg.Log.Error("recall", "err", err) // it starts without
	}
	s.lease, s.lastBeat, s.onDeck = lease, time.Now(), -1
	s.cfg.Log.Info("own session", "session", s.cfg.Session.Key.ID, "generation", lease.Generation(), "continues", there)
	s.handle(agent.Owned{Memory: memory, Continues: there, Incarnation: exchange.NewID(time.Now())})
	// Only now that the record is out: of two that join at once, the second to
	// look sees the first, and rings it.
	s.lookForSiblings()
	s.ringSiblings()
	s.catchUp()
	s.readInbox()
}

// yield tells the agent who has the session: there is no record to be troubled
// about then.
func (s *Sidecar) yield(ev agent.OwnedElsewhere) {
	s.trouble = false
	s.handle(ev)
}

func (s *Sidecar) readInbox() {
	if s.lease == nil {
		return
	}
	s.lease.Changed() // from here on
	messages, err := s.cfg.Exchange.Waiting(s.cfg.Session.Key)
	if err != nil {
		s.cfg.Log.Error("read inbox", "err", err)
		return
	}
	if len(messages) > 0 && !s.scanned {
		// Before anything is handed over: a process that died may have got
		// some of it into the transcript.
		s.scanned = true
		s.handle(agent.InTranscript{IDs: s.cfg.Host.Transcript()})
	}
	s.handle(agent.InboxRead{Messages: messages})
	s.deck()
}

func (s *Sidecar) lookAtTranscript() {
	if s.lease == nil || !s.brain.Expecting() {
		return
	}
	if ids := s.cfg.Host.Transcript(); len(ids) > 0 {
		s.handle(agent.InTranscript{IDs: ids})
		s.deck()
	}
}

// sweep cleans up after the dead, at leisure and at the first of these hours.
func (s *Sidecar) sweep() {
	sweeper, ok := s.cfg.Exchange.(interface{ Sweep() error })
	if !ok || time.Since(s.swept) < sweep {
		return
	}
	s.swept = time.Now()
	s.work.Go(func() {
		if err := sweeper.Sweep(); err != nil {
			s.cfg.Log.Error("sweep", "err", err)
		}
	})
}

// handle feeds one event to the agent and carries out what follows. Events that
// come of it are fed after that, in order: what the agent decided later must not
// be overtaken by what it decided before.
func (s *Sidecar) handle(ev agent.Event) {
	s.events = append(s.events, ev)
	if len(s.events) > 1 {
		return // the caller below us goes on
	}
	for len(s.events) > 0 {
		for _, effect := range s.brain.Handle(s.events[0], time.Now()) {
			s.do(effect)
		}
		s.events = s.events[1:]
	}
}

// deck publishes how many messages wait, once the inbox has been read: after a
// reload the row on the screen goes on where it was.
func (s *Sidecar) deck() {
	if s.lease == nil || s.waiting == s.onDeck {
		return
	}
	s.onDeck = s.waiting
	s.cfg.Host.Deck(s.onDeck)
	if err := s.lease.OnDeck(s.onDeck); err != nil {
		s.cfg.Log.Error("on deck", "err", err)
	}
}

func (s *Sidecar) do(effect agent.Effect) {
	switch e := effect.(type) {
	case agent.Reply:
		if reply, ok := s.waiters[e.Req]; ok {
			delete(s.waiters, e.Req)
			reply <- e.Value
		}
	case agent.Post:
		e.Message.ID = exchange.NewID(time.Now())
		err := s.cfg.Exchange.Post(e.To, e.Message)
		s.cfg.Log.Info("post", "msg", e.Message.ID, "to", e.To.ID, "err", err)
		_, there := s.cfg.Exchange.Session(e.To)
		s.handle(agent.Posted{Req: e.Req, To: e.To, ID: e.Message.ID, Err: err, Gone: errors.Is(there, exchange.ErrGone)})
	case agent.Wake:
		s.cfg.Log.Info("wake", "msg", e.Handover.Details.IDs)
		s.cfg.Host.Wake(e.Handover)
	case agent.Settle:
		s.cfg.Log.Info("settle", "msg", e.IDs)
		if err := s.lease.Settle(e.IDs...); err != nil {
			s.cfg.Log.Error("settle", "err", err) // the file stays and is settled after the next start
		}
	case agent.Publish:
		s.publish(e.Record)
	case agent.Remember:
		if err := s.lease.Remember(e.Memory); err != nil {
			s.cfg.Log.Error("remember", "err", err)
		}
	case agent.Tell:
		s.cfg.Host.Tell(e.Text, e.Bad)
	case agent.Status:
		s.status = e.Text
		if !s.trouble {
			s.cfg.Host.Status(e.Text)
		}
	case agent.Show:
		s.cfg.Host.Show(e.View)
		s.waiting = e.View.Waiting
	case agent.Append:
		s.append(e.Entries, e.Quiet)
	case agent.LookUp:
		s.lookUp(e.Session)
	case agent.Ring:
		s.ring(e.Sessions)
	case agent.Check:
		s.handle(agent.Checked{CallID: e.CallID, Hash: s.keep(e.CallID, e.Path)})
	case agent.Inspect:
		s.handle(agent.Inspected{CallID: e.CallID, Session: e.Session, Path: e.Path, File: s.file(e.CallID, e.Path)})
	case agent.Hold:
		s.cfg.Host.Hold(e.CallID, e.Max)
	case agent.Next:
		s.handle(e.Event)
	case agent.CatchUp:
		s.catchUp()
	case agent.Alarm:
		time.AfterFunc(e.After, func() { s.Event(agent.Ticked{}) })
	}
}

func (s *Sidecar) publish(r exchange.Record) {
	r.Agent = s.cfg.Agent
	s.record = r
	s.troubled(s.lease.Publish(r)) // the tick sees when it isn't there
	s.ringSiblings()
}

// troubled notes whether the session could say that it is there. The human is
// told when that begins and sees when it ends.
func (s *Sidecar) troubled(err error) {
	switch {
	case err != nil && !s.trouble:
		s.trouble = true
		s.cfg.Log.Error("publish", "err", err)
		s.cfg.Host.Tell("switchboard: this session can't be found by others, its record can't be written: "+err.Error(), true)
		s.cfg.Host.Status("📞 off (record can't be written)")
	case err == nil && s.trouble:
		s.trouble = false
		s.cfg.Host.Status(s.status)
	}
}

func (s *Sidecar) roster() []exchange.Session {
	if s.cfg.Exchange == nil {
		return nil
	}
	roster, err := s.cfg.Exchange.Sessions()
	if err != nil {
		s.cfg.Log.Error("read roster", "err", err)
	}
	return roster
}

// lookForSiblings finds the other sessions of this process. Whoever comes,
// changes or goes rings its siblings, so that nobody looks without a reason.
func (s *Sidecar) lookForSiblings() {
	s.peek, s.peeked = false, time.Now()
	found := []exchange.Session{}
	for _, r := range s.roster() {
		if r.Agent == s.cfg.Agent && r.Key != s.cfg.Session.Key {
			found = append(found, r)
		}
	}
	same := func(a, b exchange.Session) bool { return a.Record == b.Record }
	if s.siblings == nil || !slices.EqualFunc(found, s.siblings, same) {
		s.siblings = found
		s.cfg.Host.Siblings(found)
	}
}

func (s *Sidecar) ringSiblings() {
	for _, r := range s.siblings {
		s.cfg.Exchange.Ring(r.Key)
	}
}
