package dirstore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"switchboard/internal/atomicfile"
	"switchboard/internal/delivery"
	"switchboard/internal/exchange"
)

// Problem is something in the exchange that was left alone, and why.
type Problem struct {
	Path string `json:"path"` // below the root
	What string `json:"what"`
}

// Problems lists, by path, what readers skip: files of other programs, of newer
// versions, and damaged ones. Temporary files are Sweep's. Nothing is changed.
func (s *Store) Problems() ([]Problem, error) {
	var out []Problem
	for dir, judge := range map[string]judge{
		".":         judgeFolder,
		sessionsDir: s.judgeRecord,
		inboxesDir:  judgeInbox,
		journalsDir: judgeJournal,
		ownersDir:   judgeOwner,
		memoryDir:   judgeMemory,
		bellsDir:    judgeBell,
	} {
		found, err := s.problemsIn(dir, judge)
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	boxes, err := s.list(inboxesDir)
	if err != nil {
		return nil, err
	}
	for _, box := range boxes {
		if !box.IsDir() {
			continue
		}
		dir := filepath.Join(inboxesDir, box.Name())
		found, err := s.problemsIn(dir, func(e os.DirEntry) string { return s.judgeMessage(box.Name(), e) })
		if err != nil {
			found = []Problem{{dir, "cannot be read: " + cause(err)}}
		}
		out = append(out, found...)
	}
	about, err := s.list(metadataDir)
	if err != nil {
		return nil, err
	}
	for _, session := range about {
		if !session.IsDir() {
			continue
		}
		dir := filepath.Join(metadataDir, session.Name())
		if x, err := s.session(session.Name()); err != nil || x.Presence == exchange.Gone {
			out = append(out, Problem{dir, "about a session that is not there; skipped"})
			continue
		}
		found, err := s.problemsIn(dir, func(e os.DirEntry) string { return s.judgeMetadata(session.Name(), e) })
		if err == nil {
			out = append(out, found...)
		}
	}
	slices.SortFunc(out, func(a, b Problem) int { return strings.Compare(a.Path, b.Path) })
	return out, nil
}

// judge says what is wrong with an entry of a folder, "" if nothing is.
type judge func(e os.DirEntry) string

func (s *Store) problemsIn(dir string, what judge) ([]Problem, error) {
	entries, err := s.list(dir)
	if err != nil {
		return nil, err
	}
	var out []Problem
	for _, e := range entries {
		if atomicfile.IsTemp(e.Name()) {
			continue
		}
		if w := what(e); w != "" {
			out = append(out, Problem{filepath.Join(dir, e.Name()), w})
		}
	}
	return out, nil
}

func judgeFolder(e os.DirEntry) string {
	if slices.Contains(folders, e.Name()) {
		return ""
	}
	return "not Switchboard's; left alone"
}

func (s *Store) judgeRecord(e os.DirEntry) string {
	slug, ok := jsonName(e)
	if !ok {
		return "not a session record; left alone"
	}
	_, err := s.readRecord(slug)
	version, probeErr := versionOf(s.recordPath(slug), maxRecord)
	switch {
	case err == nil || errors.Is(err, fs.ErrNotExist):
		return ""
	case probeErr != nil:
		return "cannot be read as JSON (" + cause(err) + "); left alone"
	case version > exchange.Version:
		return newer(version) + "; left alone"
	}
	return "another program's record; left alone"
}

func judgeInbox(e os.DirEntry) string {
	if e.IsDir() {
		return ""
	}
	return "not an inbox; left alone"
}

func (s *Store) judgeMessage(slug string, e os.DirEntry) string {
	id, ok := jsonName(e)
	if !ok || !validID(id) {
		return "not a message of ours; left alone"
	}
	m, err := s.readEnvelope(slug, id)
	version, _ := versionOf(s.envelopePath(slug, id), delivery.MaxMessage)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return ""
	case errors.Is(err, atomicfile.ErrTooLarge):
		return fmt.Sprintf("message over %d KB; kept, not delivered", delivery.MaxMessage>>10)
	case version > exchange.Version:
		return newer(version) + "; kept, not delivered"
	case err != nil:
		return "damaged message; kept, not delivered"
	case !m.Kind.Known():
		return fmt.Sprintf("message of a kind this version does not know (%s); kept, not delivered", delivery.Line(string(m.Kind), 40))
	}
	return ""
}

func judgeJournal(e os.DirEntry) string {
	ext := filepath.Ext(e.Name())
	team := exchange.TeamID(strings.TrimSuffix(e.Name(), ext))
	if e.Type().IsRegular() && team.Valid() && (ext == ".jsonl" || ext == ".lock") {
		return ""
	}
	return "not a team's journal; left alone"
}

// plainSlug is what every slug is made of.
var plainSlug = regexp.MustCompile(`^[A-Za-z0-9._~-]+$`)

func judgeOwner(e os.DirEntry) string {
	ext := filepath.Ext(e.Name())
	slug := strings.TrimSuffix(e.Name(), ext)
	if e.Type().IsRegular() && plainSlug.MatchString(slug) && (ext == ".lock" || ext == ".beat") {
		return ""
	}
	return "not an owner's lock or heartbeat; left alone"
}

func judgeMemory(e os.DirEntry) string {
	if slug, ok := jsonName(e); ok && plainSlug.MatchString(slug) {
		return ""
	}
	return "not a session's memory; left alone"
}

func judgeBell(e os.DirEntry) string {
	generation := strings.ToUpper(strings.TrimSuffix(e.Name(), ".sock"))
	if e.Type() == fs.ModeSocket && validID(generation) && bellName(generation) == e.Name() {
		return ""
	}
	return "not a bell; left alone"
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
