package dirstore

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"switchboard/internal/atomicfile"
	"switchboard/internal/bell"
	"switchboard/internal/exchange"
	"switchboard/internal/filelock"
)

// staleTemp is when a temporary file must be a dead writer's.
const staleTemp = time.Hour

// Sweep removes what nobody needs any more: records of dead sessions, mail
// and memory older than exchange.KeepMail, half-written files and bells of
// dead processes. It touches nothing that isn't Switchboard's.
func (s *Store) Sweep() error {
	live := make(map[string]bool)
	sessions, err := s.Sessions() // prunes the dead
	if err != nil {
		return err
	}
	for _, r := range sessions {
		live[r.Key.Slug()] = true
	}
	inboxes, err := os.ReadDir(s.path(inboxesDir))
	if err != nil {
		return err
	}
	for _, e := range inboxes {
		if e.IsDir() {
			s.sweepInbox(e.Name(), live[e.Name()])
		}
	}
	s.sweepFolder(memoryDir, func(f fs.FileInfo, age time.Duration) bool {
		slug, ok := strings.CutSuffix(f.Name(), ".json")
		return ok && f.Mode().IsRegular() && age > exchange.KeepMail && !live[slug]
	})
	s.sweepFolder(sessionsDir, nil)
	s.sweepFolder(ownersDir, nil)
	s.sweepFolder(journalsDir, nil)
	s.sweepFolder(bellsDir, func(f fs.FileInfo, age time.Duration) bool {
		return f.Mode().Type() == fs.ModeSocket && age > time.Minute && errors.Is(bell.Ring(s.path(bellsDir, f.Name())), bell.ErrNobody)
	})
	return nil
}

// sweepFolder removes old temporary files, and those that remove picks.
func (s *Store) sweepFolder(dir string, remove func(f fs.FileInfo, age time.Duration) bool) {
	entries, err := os.ReadDir(s.path(dir))
	if err != nil {
		return
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || e.IsDir() {
			continue
		}
		age := time.Since(info.ModTime())
		if atomicfile.IsTemp(e.Name()) && age > staleTemp || remove != nil && remove(info, age) {
			_ = os.Remove(s.path(dir, e.Name()))
		}
	}
}

// sweepInbox drops what dead writers left, and expired mail of a session that
// is not there.
func (s *Store) sweepInbox(slug string, live bool) {
	dir := s.inboxPath(slug)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		id, ok := jsonName(e)
		if ok && validID(id) && !live && time.Since(sentAt(id)) > exchange.KeepMail {
			if _, err := s.readEnvelope(slug, id); err == nil {
				_ = os.Remove(filepath.Join(dir, e.Name()))
			}
		} else if atomicfile.IsTemp(e.Name()) {
			if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > staleTemp {
				_ = os.Remove(filepath.Join(dir, e.Name()))
			}
		}
	}
	if live {
		return
	}
	// A session may have come since it was seen to be gone: it makes its inbox
	// while it holds its lock.
	lock, err := filelock.TryLock(s.lockPath(slug))
	if err != nil {
		return
	}
	defer lock.Unlock()
	_ = os.Remove(dir) // stays while anything is in it
}
