package sidecar

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"

	"switchboard/internal/agent"
	"switchboard/internal/guard"
	"switchboard/internal/team"
)

const (
	// maxKept bounds the content of one file that is kept for telling others
	// what changed, in bytes.
	maxKept = 1 << 20
	// maxHashed bounds what is read to compare contents, in bytes. Of a larger
	// file the size and the time of its last change stand for its content.
	maxHashed = 64 << 20
)

// content is what a file holds.
type content struct {
	path string
	hash string // empty if there is no such file
	data []byte // nil if it is too large to be kept
}

// readContent looks at a file.
func readContent(path string) content {
	c := content{path: path}
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return c
	}
	if info.Size() > maxHashed {
		c.hash = fmt.Sprintf("size:%d,%d", info.Size(), info.ModTime().UnixNano())
		return c
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return c
	}
	sum := sha256.Sum256(data)
	c.hash = hex.EncodeToString(sum[:16])
	if len(data) <= maxKept {
		c.data = data
	}
	return c
}

// keep looks at a file before an edit, and remembers what it saw.
func (s *Sidecar) keep(call string, p team.Path) string {
	c := readContent(p.File)
	s.before[call] = c
	return c.hash
}

// file says what an edit did to a file.
func (s *Sidecar) file(call string, p team.Path) agent.File {
	now := readContent(p.File)
	f := agent.File{Hash: now.hash}
	old, known := s.before[call]
	delete(s.before, call)
	if !known || old.path != p.File {
		return f
	}
	f.Created = old.hash == ""
	if now.data != nil && (old.data != nil || f.Created) && !bytes.Equal(old.data, now.data) {
		f.Change = guard.Diff(old.data, now.data)
	}
	return f
}
