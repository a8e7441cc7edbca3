// Package dirstore is the exchange in one private directory: whole files
// replaced by rename, one file per waiting message, one append-only file per
// team. It needs no server, and any process may die in it at any moment.
// docs/protocol.md lists what lies where.
package dirstore

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"switchboard/internal/atomicfile"
	"switchboard/internal/bell"
	"switchboard/internal/exchange"
)

// Store is an exchange on a directory. Its methods may be called from several
// goroutines.
type Store struct {
	root    string
	program string // version, for records

	mu    sync.Mutex // guards tails and ends
	tails map[exchange.TeamID]tail
	ends  map[exchange.TeamID]end

	records kept[exchange.Record]
	beats   kept[beat]
}

var _ exchange.Exchange = (*Store)(nil)

// Open opens the exchange in root, which is created and made private when
// need be. program is the version of Switchboard that this process runs. The
// error is a *RootError that says what to do.
func Open(root, program string) (*Store, error) {
	real, err := prepare(root)
	if err != nil {
		return nil, err
	}
	return newStoreAt(real, program), nil
}

func newStoreAt(real, program string) *Store {
	return &Store{root: real, program: program, tails: make(map[exchange.TeamID]tail), ends: make(map[exchange.TeamID]end)}
}

// Root is the directory, symbolic links resolved.
func (s *Store) Root() string { return s.root }

func (s *Store) path(parts ...string) string {
	return filepath.Join(append([]string{s.root}, parts...)...)
}

func (s *Store) recordPath(slug string) string { return s.path(sessionsDir, slug+".json") }
func (s *Store) lockPath(slug string) string   { return s.path(ownersDir, slug+".lock") }
func (s *Store) beatPath(slug string) string   { return s.path(ownersDir, slug+".beat") }
func (s *Store) onDeckPath(slug string) string { return s.path(onDeckDir, slug+".json") }
func (s *Store) memoryPath(slug string) string { return s.path(memoryDir, slug+".json") }
func (s *Store) inboxPath(slug string) string  { return s.path(inboxesDir, slug) }

// maxRecord bounds the files that describe one session, in bytes.
const maxRecord = 64 << 10

// readJSON reads a file that another process may be writing, or may have
// filled with anything.
func readJSON(path string, limit int64, v any) error {
	data, err := atomicfile.ReadCapped(path, limit)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("read %s: %w", filepath.Base(path), err)
	}
	return nil
}

func writeJSON(path string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return atomicfile.Write(path, append(data, '\n'))
}

// list reads one of the store's folders. In one that isn't there is nothing.
func (s *Store) list(parts ...string) ([]os.DirEntry, error) {
	entries, err := os.ReadDir(s.path(parts...))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return entries, err
}

// jsonName returns the name of a JSON file without its ending, and whether the
// entry is one that may be ours at all.
func jsonName(e os.DirEntry) (string, bool) {
	name, ok := strings.CutSuffix(e.Name(), ".json")
	return name, ok && !atomicfile.IsTemp(e.Name()) && e.Type().IsRegular()
}

// bellPath is where a session's owner listens. It has a name per generation,
// since an old and a new owner overlap.
func (s *Store) bellPath(generation string) (string, error) {
	return bell.Path(s.path(bellsDir), bellName(generation))
}

func bellName(generation string) string { return strings.ToLower(generation) + ".sock" }

// Ring wakes the owners of sessions.
func (s *Store) Ring(keys ...exchange.SessionKey) {
	for _, key := range keys {
		if r, err := s.records.read(s.recordPath(key.Slug()), maxRecord); err == nil && r.Bell != "" {
			_ = bell.Ring(r.Bell) // a lost ring costs the recipient a second
		}
	}
}

// now is the wall clock as the store writes it.
func now() time.Time { return time.Now().UTC() }
