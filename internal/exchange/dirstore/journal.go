package dirstore

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/oklog/ulid/v2"

	"switchboard/internal/atomicfile"
	"switchboard/internal/exchange"
	"switchboard/internal/filelock"
	"switchboard/internal/proc"
)

const (
	// lockWait is how long an append waits for the journal: a stopped process
	// may hold it, and then we must not stand still with it.
	lockWait = 2 * time.Second
	// maxJournal bounds what is read of one journal, in bytes.
	maxJournal = 256 << 20
	// maxSeq is far above any real number; a line that claims more is not ours.
	maxSeq = 1 << 62
)

// header is the first line of a journal. Its epoch changes with each rewrite,
// so that readers know when their offset is worth nothing.
type header struct {
	Version int    `json:"v"`
	Epoch   string `json:"epoch"`
	Base    uint64 `json:"base"` // last number given before this epoch
}

// line is an entry as written. The system may cut the write of a dying process
// at any page, so that only the first entries of an append are there: Last
// tells them from a whole one.
type line struct {
	exchange.Entry
	Last uint64 `json:"last,omitempty"` // number of the last entry of the same append, if it is another
}

// unfinished reports whether a line at the end of a journal waits for others.
// base is the last number of an earlier epoch, whose appends are all whole.
func (l line) unfinished(base uint64) bool { return l.Last > max(l.Seq, base) }

// tail is where a journal ends, as of our last append.
type tail struct {
	epoch string
	size  int64
	seq   uint64
	boot  string
	at    time.Duration
}

// end is a journal that was read to its end.
type end struct {
	cursor exchange.Cursor
	info   fs.FileInfo
}

func (s *Store) journalPath(team exchange.TeamID) string {
	return s.path(journalsDir, string(team)+".jsonl")
}

// errNoKind is a bug of the caller: readers skip an entry without a kind.
var errNoKind = errors.New("journal entry without a kind")

// lockJournal takes a team's journal for writing.
func (s *Store) lockJournal(team exchange.TeamID) (*filelock.Lock, error) {
	if !team.Valid() {
		return nil, fmt.Errorf("team id %q cannot name a journal", team)
	}
	lock, err := filelock.LockUntil(s.path(journalsDir, string(team)+".lock"), time.Now().Add(lockWait))
	if errors.Is(err, filelock.ErrHeld) {
		return nil, exchange.ErrBusy
	}
	return lock, err
}

// Append implements exchange.Exchange.
func (s *Store) Append(team exchange.TeamID, entries ...exchange.Entry) ([]exchange.Entry, error) {
	if len(entries) == 0 {
		return nil, nil
	}
	lock, err := s.lockJournal(team)
	if err != nil {
		return nil, err
	}
	defer lock.Unlock()
	// Opened after locking: a rewrite may just have replaced the file.
	f, err := openRegular(s.journalPath(team), os.O_RDWR|os.O_CREATE)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	s.mu.Lock()
	last := s.tails[team]
	s.mu.Unlock()
	last, err = findTail(f, last)
	if err != nil {
		return nil, err
	}
	var buf bytes.Buffer
	if last.size == 0 {
		last.epoch = ulid.Make().String()
		writeLine(&buf, header{Version: exchange.Version, Epoch: last.epoch, Base: last.seq})
	}
	boot, wall := proc.BootID(), now()
	at := proc.BootClock()
	if last.boot == boot && at < last.at {
		at = last.at
	}
	stamped := make([]exchange.Entry, len(entries))
	through := last.seq + uint64(len(entries))
	if through > maxSeq {
		return nil, fmt.Errorf("journal of team %s: a line claims the number %d", team, last.seq)
	}
	for i, e := range entries {
		if e.Kind == "" {
			return nil, errNoKind
		}
		last.seq++
		e.Version, e.Seq, e.Boot, e.At, e.Wall = exchange.Version, last.seq, boot, at, wall
		l := line{Entry: e}
		if e.Seq < through {
			l.Last = through
		}
		if err := writeLine(&buf, l); err != nil {
			return nil, err
		}
		stamped[i] = e
	}
	if last.size+int64(buf.Len()) > maxJournal {
		return nil, fmt.Errorf("journal of team %s is full: %d MB", team, maxJournal>>20)
	}
	// One write, so that a reader sees all of it or a line without an end.
	if n, err := f.WriteAt(buf.Bytes(), last.size); err != nil {
		if n > 0 {
			_ = f.Truncate(last.size)
		}
		return nil, err
	}
	last.size += int64(buf.Len())
	last.boot, last.at = boot, at
	s.mu.Lock()
	s.tails[team] = last
	s.mu.Unlock()
	return stamped, nil
}

func writeLine(buf *bytes.Buffer, v any) error {
	enc := json.NewEncoder(buf) // ends the line
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// findTail says where the journal ends, starting from what was known of it.
// It cuts off what a dying process left unfinished: nobody was told that it
// was written.
func findTail(f *os.File, known tail) (tail, error) {
	info, err := f.Stat()
	if err != nil {
		return tail{}, err
	}
	size := info.Size()
	if size > maxJournal {
		return tail{}, fmt.Errorf("journal is %d MB, more than %d", size>>20, maxJournal>>20)
	}
	h, err := readHeader(f)
	if err != nil {
		return tail{}, err
	}
	if known.epoch != "" && known.epoch == h.Epoch && known.size == size {
		return known, nil
	}
	// The last block nearly always holds the last entry.
	for block := int64(64 << 10); ; block *= 16 {
		start := max(size-block, 0)
		data := make([]byte, size-start)
		if _, err := f.ReadAt(data, start); err != nil && !errors.Is(err, io.EOF) {
			return tail{}, err
		}
		end := bytes.LastIndexByte(data, '\n') + 1
		if end == 0 && start > 0 {
			continue
		}
		e, at, ok := lastEntry(data[:end], start, h)
		for ok && e.unfinished(h.Base) {
			end = at
			e, at, ok = lastEntry(data[:end], start, h)
		}
		if !ok && start > 0 {
			continue
		}
		t := tail{epoch: h.Epoch, size: start + int64(end), seq: h.Base}
		if ok {
			t.seq, t.boot, t.at = max(e.Seq, h.Base), e.Boot, e.At
		}
		if t.size < size {
			if err := f.Truncate(t.size); err != nil {
				return tail{}, err
			}
		}
		return t, nil
	}
}

// lastEntry finds the last readable entry in whole lines, which lie at start in
// the journal, and where it begins.
func lastEntry(data []byte, start int64, h header) (l line, at int, ok bool) {
	for len(data) > 0 {
		data = bytes.TrimSuffix(data, []byte("\n"))
		at = bytes.LastIndexByte(data, '\n') + 1
		if l, ok = parseEntry(data[at:]); ok && h.gave(l.Seq, start+int64(len(data))) {
			return l, at, true
		}
		data = data[:at]
	}
	return line{}, 0, false
}

// gave reports whether an append may have given a number to the entry whose line
// ends at end: they grow by one with each line since Base. Where Base is not
// known, no number is refused.
func (h header) gave(seq uint64, end int64) bool {
	return h.Epoch == "" || seq <= h.Base+uint64(end)
}

func parseEntry(data []byte) (line, bool) {
	var l line
	if json.Unmarshal(data, &l) != nil || l.Version < 1 || l.Seq == 0 || l.Seq > maxSeq || l.Kind == "" {
		return l, false
	}
	return l, true
}

// placed is an entry and where its line lies in what was read.
type placed struct {
	line
	from, to int
}

// readable lists the entries of whole lines, which lie at start in the journal,
// with numbers that grow from after, and how many bytes they and the lines
// between them take. Entries at the end that wait for others of their append
// are not there yet.
func readable(data []byte, start int64, h header, after uint64) (out []placed, size int) {
	for text := range bytes.Lines(data) {
		from := size
		size += len(text)
		// A number that doesn't grow was not given by an append.
		if l, ok := parseEntry(text); ok && l.Seq > after && h.gave(l.Seq, start+int64(size)) {
			after = l.Seq
			out = append(out, placed{l, from, size})
		}
	}
	for n := len(out); n > 0 && out[n-1].unfinished(h.Base); n = len(out) {
		out, size = out[:n-1], out[n-1].from
	}
	return out, size
}

// readHeader reads a journal's first line; an empty or headless journal has a
// zero header.
func readHeader(f *os.File) (header, error) {
	buf := make([]byte, 512)
	n, err := f.ReadAt(buf, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return header{}, err
	}
	return parseHeader(buf[:n]), nil
}

func parseHeader(data []byte) header {
	var h header
	if i := bytes.IndexByte(data, '\n'); i >= 0 {
		if json.Unmarshal(data[:i], &h) != nil || h.Base > maxSeq {
			return header{}
		}
	}
	return h
}

// openRegular opens a file that must be a regular one: no link that leads
// elsewhere, no pipe that blocks.
func openRegular(path string, flag int) (*os.File, error) {
	f, err := os.OpenFile(path, flag|noFollow, 0o600)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: path, Err: errors.New("not a regular file")}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// Read implements exchange.Exchange.
func (s *Store) Read(team exchange.TeamID, after exchange.Cursor) ([]exchange.Entry, exchange.Cursor, error) {
	if !team.Valid() {
		return nil, after, fmt.Errorf("team id %q cannot name a journal", team)
	}
	if s.readToEnd(team, after) {
		return nil, after, nil
	}
	f, err := openRegular(s.journalPath(team), os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, after, nil
	}
	if err != nil {
		return nil, after, err
	}
	defer f.Close()
	h, err := readHeader(f)
	if err != nil {
		return nil, after, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, after, err
	}
	start := after.Offset
	if after.Epoch != h.Epoch || start > info.Size() {
		start = 0
	}
	if start == info.Size() {
		s.mu.Lock()
		s.ends[team] = end{after, info}
		s.mu.Unlock()
		return nil, after, nil
	}
	data, err := io.ReadAll(io.NewSectionReader(f, start, min(info.Size()-start, maxJournal)))
	if err != nil {
		return nil, after, err
	}
	data = data[:bytes.LastIndexByte(data, '\n')+1]
	lines, size := readable(data, start, h, after.Seq)
	next := exchange.Cursor{Seq: after.Seq, Epoch: h.Epoch, Offset: start + int64(size)}
	var out []exchange.Entry
	for _, l := range lines {
		next.Seq = l.Seq
		out = append(out, l.Entry)
	}
	return out, next, nil
}

// readToEnd reports whether a journal is still the file that was read to its end
// up to a cursor. An append makes it longer, a rewrite makes it another.
func (s *Store) readToEnd(team exchange.TeamID, after exchange.Cursor) bool {
	s.mu.Lock()
	e, ok := s.ends[team]
	s.mu.Unlock()
	if !ok || e.cursor != after {
		return false
	}
	info, err := os.Lstat(s.journalPath(team))
	return err == nil && os.SameFile(info, e.info) && info.Size() == e.info.Size() && info.ModTime().Equal(e.info.ModTime())
}

// Rewrite implements exchange.Exchange. The work is done on what the journal
// holds at first, without the lock, which others would wait for: what is appended
// meanwhile is put behind it.
func (s *Store) Rewrite(team exchange.TeamID, keep func([]exchange.Entry) []exchange.Entry) error {
	if !team.Valid() {
		return fmt.Errorf("team id %q cannot name a journal", team)
	}
	data, err := atomicfile.ReadCapped(s.journalPath(team), maxJournal)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	h := parseHeader(data)
	kept, err := shortened(data, h, keep)
	if err != nil {
		return err
	}
	lock, err := s.lockJournal(team)
	if err != nil {
		return err
	}
	defer lock.Unlock()
	if data, err = atomicfile.ReadCapped(s.journalPath(team), maxJournal); err != nil {
		return err
	}
	if now := parseHeader(data); now != h || h.Epoch == "" || len(data) < kept.size {
		// Another rewrite came first, or nothing tells whether one did.
		if kept, err = shortened(data, now, keep); err != nil {
			return err
		}
		h = now
	}
	data = data[kept.size : bytes.LastIndexByte(data[kept.size:], '\n')+1+kept.size]
	fresh, size := readable(data, int64(kept.size), h, kept.last)
	base := max(h.Base, kept.last) // beyond what an earlier rewrite kept
	if len(fresh) > 0 {
		base = fresh[len(fresh)-1].Seq
	}
	var buf bytes.Buffer
	if err := writeLine(&buf, header{Version: exchange.Version, Epoch: ulid.Make().String(), Base: base}); err != nil {
		return err
	}
	buf.Write(kept.text)
	buf.Write(data[:size])
	return atomicfile.Write(s.journalPath(team), buf.Bytes())
}

// keeping is what a rewrite keeps of a journal.
type keeping struct {
	text []byte
	last uint64 // number of the last entry that was there
	size int    // of the journal up to there
}

// shortened puts the entries of a journal before keep.
func shortened(data []byte, h header, keep func([]exchange.Entry) []exchange.Entry) (keeping, error) {
	read, size := readable(data[:bytes.LastIndexByte(data, '\n')+1], 0, h, 0)
	k := keeping{size: size}
	entries := make([]exchange.Entry, len(read))
	lines := make(map[uint64][]byte) // as written: fields that we don't know stay
	bodies := make(map[uint64]json.RawMessage)
	for i, l := range read {
		entries[i] = l.Entry
		lines[l.Seq], bodies[l.Seq] = data[l.from:l.to], l.Body
		k.last = l.Seq
	}
	var buf bytes.Buffer
	for _, e := range keep(entries) {
		line, ok := lines[e.Seq]
		if !ok {
			return keeping{}, fmt.Errorf("rewrite journal: entry %d was not in it (this is a bug)", e.Seq)
		}
		if bytes.Equal(e.Body, bodies[e.Seq]) {
			buf.Write(line)
		} else if err := writeLine(&buf, e); err != nil {
			return keeping{}, err
		}
	}
	k.text = buf.Bytes()
	return k, nil
}
