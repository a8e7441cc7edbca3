package pihost

import (
	"path/filepath"
	"strings"

	"switchboard/internal/agent"
	"switchboard/internal/repo"
	"switchboard/internal/team"
)

// ops are Pi's tools that work on one file.
var ops = map[string]agent.Op{"read": agent.Reads, "edit": agent.Edits, "write": agent.Writes}

// target says what a tool does to which file. Without an operation the call is
// none of ours: another tool, or a path that no file can have.
func (s *server) target(tool, path string) (agent.Op, team.Path) {
	op := ops[tool]
	if op == "" || path == "" {
		return "", team.Path{}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	file, err := repo.Canonical(s.session.Cwd, plainSpaces(path))
	if err != nil {
		s.opts.Log.Debug("path", "path", path, "err", err)
		return "", team.Path{}
	}
	return op, s.checkouts.place(s.session.Cwd, file)
}

// plainSpaces does what Pi does to a path: typographic spaces become plain ones.
func plainSpaces(path string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == 0x00A0, r >= 0x2000 && r <= 0x200A, r == 0x202F, r == 0x205F, r == 0x3000:
			return ' '
		}
		return r
	}, path)
}

// checkouts remembers which checkout a folder is in.
type checkouts struct {
	known map[string]found // by folder
	home  string           // key of the session's own repository
}

type found struct{ root, key string }

// maxFolders bounds what is remembered.
const maxFolders = 2000

// place says where a file lies in its checkout, if that is one of the session's
// repository.
func (c *checkouts) place(cwd, file string) team.Path {
	p := team.Path{File: file}
	if c.home == "" {
		c.home = c.look(cwd).key
	}
	in := c.look(filepath.Dir(file))
	if in.key == "" || in.key != c.home {
		return p
	}
	rel, err := filepath.Rel(in.root, file)
	if err != nil || !filepath.IsLocal(rel) {
		return p
	}
	p.Root, p.Rel = in.root, filepath.ToSlash(rel)
	return p
}

// look finds the checkout of a folder that need not exist yet.
func (c *checkouts) look(dir string) found {
	if f, ok := c.known[dir]; ok {
		return f
	}
	r, err := repo.Find(dir)
	if err != nil && r.Root == "" {
		if up := filepath.Dir(dir); up != dir {
			return c.look(up) // not remembered: it may be made any moment
		}
		return found{}
	}
	if c.known == nil || len(c.known) > maxFolders {
		c.known = make(map[string]found)
	}
	f := found{r.Root, r.Key()}
	c.known[dir] = f
	return f
}
