package proc

import (
	"bytes"
	"errors"
	"strconv"
)

// parseStat reads the text of Linux' /proc/<pid>/stat:
//
//	4711 (name) S 4242 … 22nd field: start time in clock ticks since boot …
//
// The name is the process's own choice and may hold spaces, parentheses and
// newlines, so that only the last parenthesis ends it.
func parseStat(text []byte) (facts, error) {
	open, end := bytes.IndexByte(text, '('), bytes.LastIndexByte(text, ')')
	if open < 0 || end < open {
		return facts{}, errStat
	}
	fields := bytes.Fields(text[end+1:])
	const state, parent, start = 0, 1, 19 // the 3rd, 4th and 22nd of proc(5)
	if len(fields) <= start || len(fields[state]) != 1 {
		return facts{}, errStat
	}
	ppid, err := strconv.Atoi(string(fields[parent]))
	if err != nil {
		return facts{}, errStat
	}
	if _, err := strconv.ParseUint(string(fields[start]), 10, 64); err != nil {
		return facts{}, errStat
	}
	f := facts{name: string(text[open+1 : end]), parent: ppid, start: string(fields[start])}
	switch fields[state][0] {
	case 'Z', 'X', 'x':
		f.zombie = true
	case 'T', 't':
		f.stopped = true
	}
	return f, nil
}

var errStat = errors.New("malformed stat of a process")
