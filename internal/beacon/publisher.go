package beacon

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"switchboard/internal/atomicfile"
	"switchboard/internal/bell"
)

// Pauses between two writes of the document: what changed beside the state
// can wait a little, a transition hardly.
const (
	detailPause     = 400 * time.Millisecond
	transitionPause = 50 * time.Millisecond
)

// Publisher publishes the beacon of one process: the document and the socket.
// Make one with Open.
type Publisher struct {
	path   string
	log    *slog.Logger
	fresh  func(context.Context) (Document, bool)
	server *server

	mu      sync.Mutex // guards all below
	doc     Document
	dirty   bool // doc differs from the file
	urgent  bool // by a transition
	written time.Time
	wake    chan struct{}

	cancel context.CancelFunc
	done   chan struct{}
}

// Config says what to publish and where.
type Config struct {
	Dir string // the beacon folder; created if missing
	PID int
	Log *slog.Logger
	// Fresh builds a document for a query: what the host says now. False means
	// that it did not answer, and the last known document will do.
	Fresh func(context.Context) (Document, bool)
}

// Path is where the document of a process lies.
func Path(dir string, pid int) string { return filepath.Join(dir, strconv.Itoa(pid)+".json") }

// Open starts to publish doc. Files that another instance left under the same
// process id are taken over; those of dead processes are removed.
func Open(cfg Config, doc Document) (*Publisher, error) {
	if err := private(cfg.Dir); err != nil {
		return nil, err
	}
	sweep(cfg.Dir)
	socket, err := bell.Path(cfg.Dir, strconv.Itoa(cfg.PID)+".sock")
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	p := &Publisher{
		path: Path(cfg.Dir, cfg.PID), log: cfg.Log, fresh: cfg.Fresh,
		wake: make(chan struct{}, 1), cancel: cancel, done: make(chan struct{}),
	}
	doc.Socket = socket
	p.doc, p.dirty, p.urgent = doc, true, true
	p.server, err = listen(socket, p, cfg.Log)
	if err != nil {
		cancel()
		return nil, err
	}
	p.flush()
	go p.loop(ctx)
	return p, nil
}

// private makes the beacon folder, for its owner alone. Pi's own folder above
// it keeps its mode.
func private(dir string) error {
	makeErr := os.MkdirAll(dir, 0o700)
	info, err := os.Lstat(dir)
	switch {
	case err == nil && !info.IsDir(): // first: clearer than what making it says
		return errors.New(dir + " is in the way and not a folder")
	case makeErr != nil:
		return makeErr
	case err != nil:
		return err
	}
	if info.Mode().Perm()&0o077 != 0 {
		return os.Chmod(dir, 0o700)
	}
	return nil
}

// Update replaces what is published. Subscribers hear of a transition at once,
// the file within 50 ms; other changes reach the file a little later.
func (p *Publisher) Update(doc Document) {
	p.server.mu.Lock()
	p.mu.Lock()
	doc.Socket = p.doc.Socket
	transition := doc.State != p.doc.State
	p.doc, p.dirty = doc, true
	p.urgent = p.urgent || transition
	p.mu.Unlock()
	if transition {
		p.server.broadcastLocked(stamp(doc))
	}
	p.server.mu.Unlock()
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// Close stops publishing. With remove the files go, unless another instance
// has taken them over; without, a successor is expected.
func (p *Publisher) Close(remove bool) {
	p.cancel()
	<-p.done
	p.server.close(remove)
	if d, err := read(p.path); err != nil || d.Instance != p.doc.Instance {
		return // taken over already
	}
	if remove {
		_ = os.Remove(p.path)
		return
	}
	p.mu.Lock()
	p.dirty = true
	p.mu.Unlock()
	p.flush()
}

func (p *Publisher) loop(ctx context.Context) {
	defer close(p.done)
	heartbeat := time.NewTicker(Heartbeat)
	defer heartbeat.Stop()
	var due <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.wake:
			due = time.After(p.pause())
		case <-due:
			due = nil
			p.flush()
		case <-heartbeat.C:
			p.mu.Lock()
			p.dirty = true
			p.mu.Unlock()
			p.flush()
		}
	}
}

// pause is how long the next write has to wait for the last.
func (p *Publisher) pause() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	pause := detailPause
	if p.urgent {
		pause = transitionPause
	}
	return max(time.Until(p.written.Add(pause)), 0)
}

// flush writes the document if it differs from the file. Nobody waits for the
// disk meanwhile; only one goroutine at a time calls it.
func (p *Publisher) flush() {
	p.mu.Lock()
	if !p.dirty {
		p.mu.Unlock()
		return
	}
	data, err := json.Marshal(stamp(p.doc))
	p.dirty, p.urgent, p.written = false, false, time.Now()
	p.mu.Unlock()
	if err == nil {
		err = atomicfile.Write(p.path, append(data, '\n'))
	}
	if err != nil {
		p.log.Error("write beacon", "err", err) // the heartbeat tries again
	}
}

// stamp says that the document is of this moment.
func stamp(d Document) Document {
	d.UpdatedAt = time.Now().UnixMilli()
	return d
}

// current is the document for a query: fresh if the host answers.
func (p *Publisher) current(ctx context.Context) Document {
	if p.fresh != nil {
		if d, ok := p.fresh(ctx); ok {
			p.mu.Lock()
			d.Socket = p.doc.Socket
			p.mu.Unlock()
			return stamp(d)
		}
	}
	return p.known()
}

// known is the document as of the last event.
func (p *Publisher) known() Document {
	p.mu.Lock()
	defer p.mu.Unlock()
	return stamp(p.doc)
}
