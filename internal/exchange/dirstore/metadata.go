package dirstore

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"switchboard/internal/atomicfile"
	"switchboard/internal/exchange"
)

// maxPublishers bounds how many files about one session are read.
const maxPublishers = 64

// values reads what other programs contribute about a session. Files that are
// malformed or too large contribute nothing; Problems lists them.
func (s *Store) values(slug string) exchange.Values {
	entries, err := os.ReadDir(s.path(metadataDir, slug))
	if err != nil {
		return nil // nobody contributes
	}
	by := make(map[string]exchange.Values)
	for _, e := range entries {
		publisher, ok := jsonName(e)
		if !ok || len(by) == maxPublishers {
			continue
		}
		if v, err := s.contribution(slug, e.Name()); err == nil {
			by[publisher] = v
		}
	}
	return exchange.Merge(by)
}

func (s *Store) contribution(slug, file string) (exchange.Values, error) {
	data, err := atomicfile.ReadCapped(s.path(metadataDir, slug, file), exchange.MaxContribution)
	if err != nil {
		return nil, err
	}
	return exchange.ParseContribution(data)
}

// Contribute implements exchange.Exchange.
func (s *Store) Contribute(key exchange.SessionKey, publisher string, values exchange.Values) error {
	if !exchange.ValidPublisher(publisher) {
		return fmt.Errorf("publisher %q: letters, digits, '.', '_' and '-', at most 64", publisher)
	}
	dir := s.path(metadataDir, key.Slug())
	path := filepath.Join(dir, publisher+".json")
	if len(values) == 0 {
		err := os.Remove(path)
		_ = os.Remove(dir) // stays while others contribute
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	data, err := json.MarshalIndent(values, "", "  ")
	if err != nil {
		return err
	}
	if len(data) >= exchange.MaxContribution {
		return fmt.Errorf("%d KB of values, at most %d KB", len(data)>>10, exchange.MaxContribution>>10)
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return atomicfile.Write(path, append(data, '\n'))
}

// judgeMetadata says why a file about a session contributes nothing.
func (s *Store) judgeMetadata(slug string, e os.DirEntry) string {
	if _, ok := jsonName(e); !ok {
		return "not a publisher's JSON file; left alone"
	}
	_, err := s.contribution(slug, e.Name())
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil:
		return ""
	case errors.Is(err, atomicfile.ErrTooLarge):
		return fmt.Sprintf("larger than %d KB; skipped", exchange.MaxContribution>>10)
	}
	return "malformed (" + cause(err) + "); skipped"
}
