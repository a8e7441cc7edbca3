package pihost

import (
	"context"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"switchboard/internal/agent"
	"switchboard/internal/beacon"
	"switchboard/internal/delivery"
	"switchboard/internal/exchange"
	"switchboard/internal/lifecycle"
)

// light is the beacon of one session: what it shows, and whether it is the one
// of its process that does. Sessions that share a process share a document.
type light struct {
	dir      string
	ask      func(context.Context) (snapshot, error) // asks Pi
	tell     func(text string)
	log      *slog.Logger
	instance string
	started  int64 // of Pi, milliseconds since 1970
	limits   string

	asking   sync.Mutex // held while Pi is asked; guards the next two, taken before mu
	asked    time.Time  // when Pi was last asked
	answered bool       // and whether it answered

	mu        sync.Mutex // guards all below
	session   agent.Session
	view      agent.View
	joined    time.Time // as on the roster; zero until it is there
	now       snapshot
	siblings  []exchange.Session
	looked    bool // siblings are known
	publisher *beacon.Publisher
	failed    time.Time // the last attempt to publish
	off       bool
	ceding    bool // our own publisher before is still on its way out
	closing   sync.WaitGroup
}

// snapshot is what Pi says of itself when asked.
type snapshot struct {
	Pending bool         `json:"pending"` // texts of the human's wait in Pi's own queue
	Usage   beacon.Usage `json:"usage"`
}

// BeaconDir is where beacons lie below Pi's agent folder (spec: beacon).
func BeaconDir(agentDir string) string { return filepath.Join(agentDir, "beacon") }

// Describe takes note of what the session is called.
func (l *light) Describe(s agent.Session) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.session = s
	l.refresh()
}

// Show takes note of what the session does.
func (l *light) Show(v agent.View) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.view = v
	if !v.Joined.IsZero() {
		l.joined = v.Joined
	}
	l.refresh()
}

// Siblings takes note of the other sessions in the process.
func (l *light) Siblings(others []exchange.Session) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.siblings, l.looked = others, true
	l.refresh()
}

// Note takes note of what Pi said of itself.
func (l *light) Note(s snapshot) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.now = s
	l.refresh()
}

// Off ends it. With remove the files go: the process ends, or has ended.
func (l *light) Off(remove bool) {
	l.closing.Wait() // what is being ceded may be ours again after that
	l.mu.Lock()
	p := l.publisher
	l.publisher, l.off = nil, true
	l.mu.Unlock()
	if p != nil {
		p.Close(remove) // not under the lock: a query may be waiting for it
	}
	l.closing.Wait()
}

// refresh publishes the document if this session is the one to do so.
func (l *light) refresh() {
	if l.off || !l.looked || l.view.State == "" {
		return
	}
	if l.ceding {
		return // two of ours must not write one file; looked at again after it
	}
	if !l.first() {
		if p := l.publisher; p != nil {
			l.publisher, l.ceding = nil, true
			l.closing.Go(func() {
				p.Close(false) // a query may want the lock that we hold
				l.mu.Lock()
				defer l.mu.Unlock()
				l.ceding = false
				l.refresh()
			})
		}
		return
	}
	if l.publisher != nil {
		l.publisher.Update(l.document())
		return
	}
	if time.Since(l.failed) < beacon.Heartbeat {
		return
	}
	p, err := beacon.Open(beacon.Config{Dir: l.dir, PID: l.session.PID, Log: l.log, Fresh: l.fresh}, l.document())
	if err != nil {
		if l.failed.IsZero() {
			l.tell("switchboard: no beacon for this session: " + err.Error())
		}
		l.failed = time.Now()
		l.log.Error("open beacon", "err", err)
		return
	}
	l.publisher = p
}

// first reports whether this is the process's top-level session: one with a
// human before one without, else the one that came first. Siblings compare what
// is on the roster, so that they agree.
func (l *light) first() bool {
	for _, o := range l.siblings {
		switch {
		case o.Wakes != l.session.Wakes:
			if o.Wakes {
				return false
			}
		case l.joined.IsZero() || o.Joined.Before(l.joined):
			return false
		case o.Joined.Equal(l.joined) && o.Key.ID < l.session.Key.ID:
			return false
		}
	}
	return true
}

// fresh asks Pi and builds a document of this moment. Many queries at once
// cost Pi one question, and a Pi that doesn't answer is waited for once.
func (l *light) fresh(ctx context.Context) (beacon.Document, bool) {
	l.asking.Lock()
	defer l.asking.Unlock()
	if time.Since(l.asked) >= snapshotAge {
		ctx, cancel := context.WithTimeout(ctx, snapshotWait)
		defer cancel()
		s, err := l.ask(ctx)
		l.asked, l.answered = time.Now(), err == nil
		if err == nil {
			l.mu.Lock()
			l.now = s
			l.mu.Unlock()
		}
	}
	if !l.answered {
		return beacon.Document{}, false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.document(), true
}

const (
	snapshotAge  = 50 * time.Millisecond  // an answer of Pi's serves that long
	snapshotWait = 250 * time.Millisecond // a busy Pi is not waited for longer
)

// document says all that is known now.
func (l *light) document() beacon.Document {
	d := beacon.Document{
		Schema: beacon.Schema, PID: l.session.PID, State: l.view.State, Detail: l.detail(),
		Model: known(l.session.Model), SessionFile: known(l.session.File), SessionID: l.session.Key.ID,
		SessionName: known(l.session.Name), Cwd: l.session.Cwd, ContextUsage: l.now.Usage,
		StartedAt: l.started, Since: l.view.Since.UnixMilli(), Instance: l.instance, Limits: l.limits,
	}
	for _, o := range l.siblings {
		d.Sessions = append(d.Sessions, beacon.Other{ID: o.Key.ID, Name: o.Name, State: o.State})
	}
	return d
}

// detail translates the lifecycle's detail (spec: beacon, and its readings).
func (l *light) detail() beacon.Detail {
	v := l.view
	d := beacon.Detail{
		PendingMessages: l.now.Pending || v.Waiting > 0, PendingCount: v.Waiting,
		Tool: delivery.Line(v.Detail.Tool, 100), WaitingForUser: v.Detail.Dialog,
	}
	if d.Tool != "" {
		d.ToolSince = v.Detail.ToolSince.UnixMilli()
	}
	if c := v.Detail.Compaction; v.State == lifecycle.Compacting && c != nil {
		d.CompactionReason, d.WillRetry = c.Reason, &c.WillRetry
	}
	if r := v.Detail.Retry; v.State == lifecycle.Retrying && r != nil {
		ms := r.Delay.Milliseconds()
		d.Attempt, d.MaxAttempts, d.DelayMS, d.Error = r.Attempt, r.Max, &ms, r.Error
	}
	return d
}

// known turns what was not said into null.
func known(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
