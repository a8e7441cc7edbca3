package beacon

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"switchboard/internal/atomicfile"
	"switchboard/internal/proc"
)

// maxDocument bounds a document that is read, in bytes.
const maxDocument = 256 << 10

// read reads one document file.
func read(path string) (Document, error) {
	var d Document
	data, err := atomicfile.ReadCapped(path, maxDocument)
	if err != nil {
		return d, err
	}
	if err := json.Unmarshal(data, &d); err != nil {
		return d, fmt.Errorf("read %s: %w", filepath.Base(path), err)
	}
	if err := d.check(); err != nil {
		return d, fmt.Errorf("read %s: %w", filepath.Base(path), err)
	}
	return d, nil
}

// check refuses what is another format's.
func (d Document) check() error {
	if d.Schema != Schema {
		return fmt.Errorf("schema %q is not %s", d.Schema, Schema)
	}
	return nil
}

// Read reads the document of one process, which may have ended. It is
// fs.ErrNotExist where there is none.
func Read(dir string, pid int) (Document, error) {
	path := Path(dir, pid)
	d, err := read(path)
	if err == nil && d.PID != pid {
		err = fmt.Errorf("read %s: it is about process %d", filepath.Base(path), d.PID)
	}
	if err != nil {
		return Document{}, err
	}
	if d.Socket == "" { // by another publisher: the place that the specification knows
		d.Socket = strings.TrimSuffix(path, ".json") + ".sock"
	}
	return d, nil
}

// List reads the documents of running instances, by their start. What cannot
// be read, or belongs to a dead process, is left out.
func List(dir string) []Document {
	var out []Document
	for pid := range files(dir, ".json") {
		if !running(pid) {
			continue
		}
		if d, err := Read(dir, pid); err == nil && !d.Orphaned() {
			out = append(out, d)
		}
	}
	slices.SortFunc(out, func(a, b Document) int {
		return cmp.Or(cmp.Compare(a.StartedAt, b.StartedAt), cmp.Compare(a.PID, b.PID))
	})
	return out
}

// files finds <pid><ending> in a beacon folder.
func files(dir, ending string) map[int]string {
	out := make(map[int]string)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return out // no folder, no beacons
	}
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ending)
		pid, err := strconv.Atoi(name)
		if ok && err == nil && pid > 0 && strconv.Itoa(pid) == name {
			out[pid] = filepath.Join(dir, e.Name())
		}
	}
	return out
}

// running reports whether a process exists, so far as can be told.
func running(pid int) bool {
	id, err := proc.Of(pid)
	if errors.Is(err, proc.ErrNoProcess) {
		return false
	}
	return err != nil || proc.State(id) != proc.Gone
}

// reuse is how much later than its document a process must have begun to be
// another one: clocks are read at different moments.
const reuse = 2 * time.Second

// Orphaned reports whether the document's process has ended and its number
// belongs to another by now. False where that can't be told.
func (d Document) Orphaned() bool {
	began, err := proc.Began(d.PID)
	last := d.UpdatedAt
	if last <= 0 || time.UnixMilli(last).After(time.Now().Add(Stale)) {
		last = d.StartedAt // it says nothing, or a clock was wrong
	}
	return err == nil && last > 0 && began.After(time.UnixMilli(last).Add(reuse))
}

// Old reports whether the instance was not heard of lately. A time that lies
// ahead says nothing.
func (d Document) Old(now time.Time) bool {
	age := now.Sub(time.UnixMilli(d.UpdatedAt))
	return age > Stale || age < -Stale
}

// sweep removes what dead instances left. A document that was written lately
// stays: a process of another container that shares the folder looks dead from
// here.
func sweep(dir string) {
	fresh, orphaned := make(map[int]bool), make(map[int]bool) // the documents come first
	for _, ending := range []string{".json", ".sock"} {
		for pid, path := range files(dir, ending) {
			var d Document
			err := fs.ErrInvalid // a socket says nothing by itself
			if ending == ".json" {
				d, err = read(path)
				d.PID = pid // a file stands for its name's process, whatever it says
			}
			orphaned[pid] = orphaned[pid] || err == nil && d.Orphaned()
			if !orphaned[pid] && (fresh[pid] || running(pid)) {
				continue
			}
			if err == nil && !orphaned[pid] && !d.Old(time.Now()) {
				fresh[pid] = true
				continue
			}
			_ = os.Remove(path)
		}
	}
}

// Query asks a beacon's socket for a fresh document.
func Query(ctx context.Context, socket string) (Document, error) {
	line, doc, err := ask(ctx, socket, "get_state")
	if err != nil {
		return Document{}, err
	}
	line.conn.Close()
	return doc, nil
}

// Subscription is a connection that hears of each transition.
type Subscription struct{ line *line }

// Subscribe asks a beacon for its transitions and returns the document as of
// this moment: nothing between it and the first Next is missed. The context
// counts until then. ErrNoPushes comes with the document of a beacon that can
// only be asked.
func Subscribe(ctx context.Context, socket string) (*Subscription, Document, error) {
	line, doc, err := ask(ctx, socket, "subscribe")
	if err == nil {
		return &Subscription{line}, doc, nil
	}
	if doc, asked := Query(ctx, socket); asked == nil {
		return nil, doc, ErrNoPushes
	}
	return nil, Document{}, err
}

// ErrNoPushes says that a beacon answers questions and tells nothing by itself,
// as the specification asks no more.
var ErrNoPushes = errors.New("it does not push transitions")

// Next waits for the next transition. An error means that the instance, or its
// helper, is gone.
func (s *Subscription) Next() (Document, error) {
	var p push
	if err := s.line.decode(&p); err != nil {
		return Document{}, err
	}
	return p.Data, p.Data.check()
}

// Close ends the subscription, also one that waits in Next.
func (s *Subscription) Close() { s.line.conn.Close() }

// line is a client's side of a connection.
type line struct {
	conn net.Conn
	in   *bufio.Reader
}

// queryTime bounds a query.
const queryTime = 5 * time.Second

// ask sends one command and returns the document that answers it, with the
// connection for what may follow.
func ask(ctx context.Context, socket, command string) (*line, Document, error) {
	ctx, cancel := context.WithTimeout(ctx, queryTime)
	defer cancel()
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", socket)
	if err != nil {
		return nil, Document{}, err
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	l := &line{conn: conn, in: bufio.NewReaderSize(conn, maxDocument)}
	doc, err := l.exchange(command)
	if !stop() {
		err = ctx.Err()
	}
	if err != nil {
		conn.Close()
		return nil, Document{}, err
	}
	if doc.Socket == "" { // by another publisher, which need not say
		doc.Socket = socket
	}
	return l, doc, nil
}

func (l *line) exchange(command string) (Document, error) {
	if _, err := fmt.Fprintf(l.conn, "{\"type\":%q}\n", command); err != nil {
		return Document{}, err
	}
	var r response
	if err := l.decode(&r); err != nil {
		return Document{}, err
	}
	if !r.Success || r.Data == nil {
		return Document{}, fmt.Errorf("%s: refused: %s", command, r.Error)
	}
	return *r.Data, r.Data.check()
}

func (l *line) decode(v any) error {
	text, err := l.in.ReadSlice('\n')
	if err != nil {
		return err
	}
	return json.Unmarshal(text, v)
}
