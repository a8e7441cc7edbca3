//go:build linux

package beacon

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"switchboard/internal/beacon"
	"switchboard/internal/lifecycle"
)

// Files under the process id of a new instance are taken over, and an old one
// that still leaves removes nothing of its successor's. The id of a Pi isn't
// known before it starts, so this is done without one.
func TestLeftoversUnderTheSameID(t *testing.T) {
	t.Parallel()
	folder, err := os.MkdirTemp("", "sb")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	pid := os.Getpid()
	cfg := beacon.Config{Dir: folder, PID: pid, Log: slog.New(slog.DiscardHandler)}
	open := func(instance string, state lifecycle.State) *beacon.Publisher {
		t.Helper()
		p, err := beacon.Open(cfg, beacon.Document{Schema: beacon.Schema, PID: pid, Instance: instance, State: state})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	for path, data := range map[string]string{beacon.Path(folder, pid): `{"schema":"pi-beacon/v1","instance":"older","state":"working"}`} {
		if err := os.WriteFile(path, []byte(data), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	old := open("old", lifecycle.Working)
	successor := open("new", lifecycle.Idle)
	old.Close(true)
	socket := filepath.Join(folder, strconv.Itoa(pid)+".sock")
	if d, err := beacon.Query(t.Context(), socket); err != nil || d.Instance != "new" || d.State != lifecycle.Idle {
		t.Errorf("the socket says %+v, %v", d, err)
	}
	if info, err := os.Stat(beacon.Path(folder, pid)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the document: %v, %v", info, err)
	}
	successor.Close(true)
	for _, path := range []string{beacon.Path(folder, pid), socket} {
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is still there (%v)", filepath.Base(path), err)
		}
	}
}
