package pihost

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
)

// transcript follows a Pi session file and finds our messages in it, whatever
// the branch. Only whole lines count: Pi may be writing the last one.
type transcript struct {
	path   string // empty for a session without a file
	info   fs.FileInfo
	offset int64
}

// marker is in every line that can be ours; most lines are not, and need no
// parsing.
var marker = []byte(`"` + MessageType + `"`)

// read returns the ids in what was added since the last call.
func (t *transcript) read() ([]string, error) {
	if t.path == "" {
		return nil, nil
	}
	f, err := os.Open(t.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // Pi creates it with the first message
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if t.info != nil && (!os.SameFile(info, t.info) || info.Size() < t.offset) {
		t.offset = 0 // rewritten
	}
	t.info = info
	if info.Size() == t.offset {
		return nil, nil
	}
	data, err := io.ReadAll(io.NewSectionReader(f, t.offset, info.Size()-t.offset))
	if err != nil {
		return nil, err
	}
	data = data[:bytes.LastIndexByte(data, '\n')+1]
	t.offset += int64(len(data))
	var ids []string
	for line := range bytes.Lines(data) {
		if !bytes.Contains(line, marker) {
			continue
		}
		var entry struct {
			Type       string          `json:"type"`
			CustomType string          `json:"customType"`
			Details    json.RawMessage `json:"details"`
		}
		if json.Unmarshal(line, &entry) == nil && entry.Type == "custom_message" && entry.CustomType == MessageType {
			ids = append(ids, decodeIDs(entry.Details)...)
		}
	}
	return ids, nil
}
