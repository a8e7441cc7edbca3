package cli

import (
	"errors"
	"io/fs"
	"os"
	"time"

	"switchboard/internal/agent"
	"switchboard/internal/exchange"
	"switchboard/internal/exchange/dirstore"
	"switchboard/internal/phonebook"
)

// root is where this user's sessions meet.
func (a *app) root() (string, error) { return dirstore.Root(a.getenv, a.home()) }

// open opens the exchange, and makes it if need be.
func (a *app) open() (*dirstore.Store, error) {
	root, err := a.root()
	if err != nil {
		return nil, err
	}
	return dirstore.Open(root, Version)
}

// look reads the roster. Where no session ever was there is no store (nil) and
// nobody: asking makes no folder.
func (a *app) look() (*dirstore.Store, []exchange.Session, error) {
	root, err := a.root()
	if err != nil {
		return nil, nil, err
	}
	if _, err := os.Stat(root); errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	store, err := dirstore.Open(root, Version)
	if err != nil {
		return nil, nil, err
	}
	sessions, err := store.Sessions()
	return store, sessions, err
}

// bookOf is the roster as a phonebook.
func bookOf(sessions []exchange.Session) phonebook.Book {
	book := make(phonebook.Book, len(sessions))
	for i, s := range sessions {
		book[i] = agent.BookEntry(s)
	}
	return book
}

// sessionInfo is a session as scripts read it. Fields are added, never
// changed.
type sessionInfo struct {
	ID       string            `json:"id"`
	Name     string            `json:"name"`
	State    string            `json:"state"`
	Since    time.Time         `json:"since"` // start of State
	Presence exchange.Presence `json:"presence"`
	PID      int               `json:"pid"`
	Model    string            `json:"model"`
	Cwd      string            `json:"cwd"`
	Mode     string            `json:"mode"`
	Host     string            `json:"host"` // the kind of agent
	Wakes    bool              `json:"wakes"`
	Joined   time.Time         `json:"joined"`
	LastBeat time.Time         `json:"lastBeat,omitzero"`
	Program  string            `json:"program"`
	Locators []string          `json:"locators"`
	// Values are handles and what publishers say; all of them are locators.
	Values map[string][]string `json:"values"`
}

// info describes a session. What dials it is spelled as it dials.
func info(s exchange.Session) sessionInfo {
	e := agent.BookEntry(s)
	return sessionInfo{
		ID: e.ID, Name: e.Name, State: e.State, Since: s.Since.UTC(), Presence: s.Presence, PID: e.PID, Model: e.Model,
		Cwd: e.Cwd, Mode: s.Mode, Host: s.Key.Host, Wakes: s.Wakes, Joined: s.Joined.UTC(), LastBeat: s.LastBeat.UTC(),
		Program: s.Program, Locators: e.Locators(), Values: e.Values,
	}
}
