package dirstore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"switchboard/internal/atomicfile"
	"switchboard/internal/bell"
	"switchboard/internal/delivery"
	"switchboard/internal/exchange"
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
		sent, err := ulid.ParseStrict(id)
		if ok && err == nil && !live && time.Since(sent.Timestamp()) > exchange.KeepMail {
			if _, err := s.readEnvelope(slug, id); err == nil {
				_ = os.Remove(filepath.Join(dir, e.Name()))
			}
		} else if atomicfile.IsTemp(e.Name()) {
			if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > staleTemp {
				_ = os.Remove(filepath.Join(dir, e.Name()))
			}
		}
	}
	if !live {
		_ = os.Remove(dir) // stays while anything is in it
	}
}

// Problem is something in the exchange that was left alone, and why.
type Problem struct {
	Path string `json:"path"` // below the root
	What string `json:"what"`
}

// Problems lists what readers skip: files of other programs, of newer
// versions, and damaged ones. Nothing is changed.
func (s *Store) Problems() ([]Problem, error) {
	var out []Problem
	note := func(what string, parts ...string) {
		out = append(out, Problem{Path: filepath.Join(parts...), What: what})
	}
	top, err := os.ReadDir(s.root)
	if err != nil {
		return nil, err
	}
	known := map[string]bool{"on-deck": true}
	for _, f := range folders {
		known[f] = true
	}
	for _, e := range top {
		if !known[e.Name()] {
			note("not Switchboard's; left alone", e.Name())
		}
	}
	entries, err := os.ReadDir(s.path(sessionsDir))
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		slug, ok := jsonName(e)
		if atomicfile.IsTemp(e.Name()) {
			continue
		}
		if !ok {
			note("not a session record; left alone", sessionsDir, e.Name())
			continue
		}
		_, err := s.readRecord(slug)
		version, probeErr := versionOf(s.recordPath(slug), maxRecord)
		switch {
		case err == nil || errors.Is(err, fs.ErrNotExist):
		case probeErr != nil:
			note("cannot be read as JSON ("+cause(err)+"); left alone", sessionsDir, e.Name())
		case version > exchange.Version:
			note(newer(version)+"; left alone", sessionsDir, e.Name())
		default:
			note("another program's record; left alone", sessionsDir, e.Name())
		}
	}
	inboxes, err := os.ReadDir(s.path(inboxesDir))
	if err != nil {
		return nil, err
	}
	for _, box := range inboxes {
		if !box.IsDir() {
			note("not an inbox; left alone", inboxesDir, box.Name())
			continue
		}
		mail, err := os.ReadDir(s.inboxPath(box.Name()))
		if err != nil {
			note("cannot be read: "+cause(err), inboxesDir, box.Name())
			continue
		}
		for _, e := range mail {
			id, ok := jsonName(e)
			switch {
			case atomicfile.IsTemp(e.Name()):
			case !ok || !validID(id):
				note("not a message of ours; left alone", inboxesDir, box.Name(), e.Name())
			default:
				m, err := s.readEnvelope(box.Name(), id)
				version, _ := versionOf(s.envelopePath(box.Name(), id), delivery.MaxMessage)
				switch {
				case errors.Is(err, fs.ErrNotExist):
				case errors.Is(err, atomicfile.ErrTooLarge):
					note(fmt.Sprintf("message over %d KB; kept, not delivered", delivery.MaxMessage>>10), inboxesDir, box.Name(), e.Name())
				case version > exchange.Version:
					note(newer(version)+"; kept, not delivered", inboxesDir, box.Name(), e.Name())
				case err != nil:
					note("damaged message; kept, not delivered", inboxesDir, box.Name(), e.Name())
				case !m.Kind.Known():
					note(fmt.Sprintf("message of a kind this version does not know (%s); kept, not delivered", delivery.Line(string(m.Kind), 40)), inboxesDir, box.Name(), e.Name())
				}
			}
		}
	}
	return out, nil
}

// versionOf reads what format a file claims to have.
func versionOf(path string, limit int64) (int, error) {
	var probe struct {
		Version int `json:"v"`
	}
	err := readJSON(path, limit, &probe)
	return probe.Version, err
}

func newer(version int) string {
	return fmt.Sprintf("written by a newer Switchboard (format %d, this one reads %d)", version, exchange.Version)
}
