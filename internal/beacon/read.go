package beacon

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
	if d.Schema != Schema {
		return d, fmt.Errorf("read %s: schema %q is not %s", filepath.Base(path), d.Schema, Schema)
	}
	return d, nil
}

// List reads the documents of running instances, by their start. What cannot
// be read, or belongs to a dead process, is left out.
func List(dir string) []Document {
	var out []Document
	for pid, path := range files(dir, ".json") {
		if !running(pid) {
			continue
		}
		if d, err := read(path); err == nil && d.PID == pid {
			out = append(out, d)
		}
	}
	slices.SortFunc(out, func(a, b Document) int {
		if a.StartedAt != b.StartedAt {
			return int(a.StartedAt - b.StartedAt)
		}
		return a.PID - b.PID
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

// sweep removes what dead instances left.
func sweep(dir string) {
	for _, ending := range []string{".json", ".sock"} {
		for pid, path := range files(dir, ending) {
			if !running(pid) {
				_ = os.Remove(path)
			}
		}
	}
}

// Query asks a beacon's socket for a fresh document.
func Query(ctx context.Context, socket string) (Document, error) {
	line, err := ask(ctx, socket, "get_state")
	if err != nil {
		return Document{}, err
	}
	defer line.conn.Close()
	return line.answer()
}

// Subscription is a connection that hears of each transition.
type Subscription struct{ line *line }

// Subscribe asks a beacon for its transitions and returns the document as of
// this moment: nothing between it and the first Next is missed.
func Subscribe(ctx context.Context, socket string) (*Subscription, Document, error) {
	line, err := ask(ctx, socket, "subscribe")
	if err != nil {
		return nil, Document{}, err
	}
	doc, err := line.answer()
	if err != nil {
		line.conn.Close()
		return nil, Document{}, err
	}
	_ = line.conn.SetDeadline(time.Time{})
	return &Subscription{line}, doc, nil
}

// Next waits for the next transition. An error means that the instance, or its
// helper, is gone.
func (s *Subscription) Next() (Document, error) {
	var p push
	err := s.line.decode(&p)
	return p.Data, err
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

func ask(ctx context.Context, socket, command string) (*line, error) {
	ctx, cancel := context.WithTimeout(ctx, queryTime)
	defer cancel()
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", socket)
	if err != nil {
		return nil, err
	}
	_ = conn.SetDeadline(time.Now().Add(queryTime))
	if _, err := fmt.Fprintf(conn, "{\"type\":%q}\n", command); err != nil {
		conn.Close()
		return nil, err
	}
	return &line{conn: conn, in: bufio.NewReaderSize(conn, maxDocument)}, nil
}

func (l *line) answer() (Document, error) {
	var r response
	if err := l.decode(&r); err != nil {
		return Document{}, err
	}
	if !r.Success || r.Data == nil {
		return Document{}, errors.New(r.Error)
	}
	return *r.Data, nil
}

func (l *line) decode(v any) error {
	text, err := l.in.ReadSlice('\n')
	if err != nil {
		return err
	}
	return json.Unmarshal(text, v)
}
