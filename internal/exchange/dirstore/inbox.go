package dirstore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"switchboard/internal/atomicfile"
	"switchboard/internal/delivery"
	"switchboard/internal/exchange"
)

// validID reports whether a message id may be a file name: a ULID.
func validID(id string) bool {
	_, err := ulid.ParseStrict(id)
	return err == nil && strings.ToUpper(id) == id
}

func (s *Store) envelopePath(slug, id string) string {
	return filepath.Join(s.inboxPath(slug), id+".json")
}

// errBadID is a bug of the caller: ids are made by exchange.NewID.
var errBadID = errors.New("message id is not a ULID")

// Post implements exchange.Exchange.
func (s *Store) Post(to exchange.SessionKey, m delivery.Message) error {
	if !validID(m.ID) {
		return errBadID
	}
	data, err := exchange.EncodeEnvelope(m)
	if err != nil {
		return err
	}
	slug := to.Slug()
	path := s.envelopePath(slug, m.ID)
	for range 10 {
		err = atomicfile.Create(path, data)
		if !errors.Is(err, fs.ErrNotExist) {
			break
		}
		// The owner left, or has not come yet. It may leave again in between.
		_ = os.Mkdir(s.path(inboxesDir), 0o700) // somebody may have cleaned up
		if err := os.Mkdir(s.inboxPath(slug), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return unwritten(err)
		}
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		// It may be there all the same, if only what came after failed.
		switch _, look := os.Lstat(path); {
		case errors.Is(look, fs.ErrNotExist):
			return unwritten(err)
		case look != nil:
			return fmt.Errorf("%w: %w", exchange.ErrIndeterminate, unwritten(err))
		}
	}
	s.Ring(to)
	return nil
}

// unwritten says why an inbox could not be written, the cause first: its long
// path says nothing to a caller.
func unwritten(err error) error {
	var at *fs.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &at):
		return fmt.Errorf("%w (%s in their inbox)", at.Err, at.Op)
	case errors.As(err, &link):
		return fmt.Errorf("%w (%s in their inbox)", link.Err, link.Op)
	}
	return err
}

// readEnvelope reads one waiting message. The name of its file is its id; a
// file that says otherwise is not one of ours.
func (s *Store) readEnvelope(slug, id string) (delivery.Message, error) {
	var e exchange.Envelope
	if err := readJSON(s.envelopePath(slug, id), delivery.MaxMessage, &e); err != nil {
		return delivery.Message{}, err
	}
	if e.Version < 1 || e.Version > exchange.Version || e.ID != id || e.Kind == "" || len(e.Text) > delivery.MaxText {
		return delivery.Message{}, errForeign
	}
	return e.Message, nil
}

// Waiting implements exchange.Exchange.
func (s *Store) Waiting(key exchange.SessionKey) ([]delivery.Message, error) {
	out, _, err := s.Mail(key.Slug())
	return out, err
}

// Mail is Waiting for an inbox that Mailboxes listed: a slug doesn't always say
// whose it is. It counts the messages that are left out.
func (s *Store) Mail(slug string) (out []delivery.Message, unreadable int, err error) {
	entries, err := s.list(inboxesDir, slug)
	if err != nil {
		return nil, 0, err
	}
	for _, e := range entries {
		id, ok := jsonName(e)
		if !ok || !validID(id) {
			continue
		}
		m, err := s.readEnvelope(slug, id)
		switch {
		case err == nil:
			out = append(out, m)
		case !errors.Is(err, fs.ErrNotExist): // else it was settled meanwhile
			unreadable++
		}
	}
	slices.SortFunc(out, func(a, b delivery.Message) int { return strings.Compare(a.ID, b.ID) })
	return out, unreadable, nil
}

// Mailbox is one inbox, seen from outside.
type Mailbox struct {
	Slug     string
	Messages int       // by their names: also those that can't be read
	Oldest   time.Time // when the first of them was sent; zero without messages
	Live     bool      // its session is on the roster
}

// Mailboxes lists the inboxes there are, those of sessions that left too.
// Nothing is removed.
func (s *Store) Mailboxes() ([]Mailbox, error) {
	boxes, err := s.list(inboxesDir)
	if err != nil {
		return nil, err
	}
	var out []Mailbox
	for _, box := range boxes {
		if !box.IsDir() {
			continue
		}
		m := Mailbox{Slug: box.Name()}
		entries, _ := s.list(inboxesDir, m.Slug) // else Problems lists it
		for _, e := range entries {
			id, ok := jsonName(e)
			if !ok || !validID(id) {
				continue
			}
			if sent := sentAt(id); m.Messages == 0 || sent.Before(m.Oldest) {
				m.Oldest = sent
			}
			m.Messages++
		}
		x, err := s.session(m.Slug)
		m.Live = err == nil && x.Presence != exchange.Gone
		out = append(out, m)
	}
	return out, nil
}

// sentAt is when a message was sent, by its id.
func sentAt(id string) time.Time {
	u, _ := ulid.ParseStrict(id) // ids were checked by validID
	return u.Timestamp()
}
