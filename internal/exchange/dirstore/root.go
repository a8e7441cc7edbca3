package dirstore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Root names the directory where this user's sessions meet. The first of
// these decides: SWITCHBOARD_DIR, PI_TELECOM_DIR, an absolute
// PI_TOUCHTONE_HOME, $XDG_STATE_HOME/pi/touchtone (when that variable is
// absolute and the folder exists or the legacy one does not), and
// ~/.local/state/pi/touchtone (spec: touchtone, How it works).
func Root(getenv func(string) string, home string) (string, error) {
	for _, name := range []string{"SWITCHBOARD_DIR", "PI_TELECOM_DIR"} {
		if dir := getenv(name); dir != "" {
			if !filepath.IsAbs(dir) {
				return "", &RootError{
					Path: dir, Problem: name + " is not an absolute path, so sessions in other folders would not meet there",
					Mend: "export " + name + `="$(realpath -m ` + shellQuote(dir) + `)"`,
				}
			}
			return filepath.Clean(dir), nil
		}
	}
	if dir := getenv("PI_TOUCHTONE_HOME"); filepath.IsAbs(dir) {
		return filepath.Clean(dir), nil
	}
	if home == "" {
		return "", &RootError{
			Problem: "neither SWITCHBOARD_DIR nor HOME says where sessions meet",
			Mend:    "export SWITCHBOARD_DIR=/a/private/folder",
		}
	}
	legacy := filepath.Join(home, ".local", "state", "pi", "touchtone")
	if state := getenv("XDG_STATE_HOME"); filepath.IsAbs(state) {
		dir := filepath.Join(state, "pi", "touchtone")
		if exists(dir) || !exists(legacy) {
			return dir, nil
		}
	}
	return legacy, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// RootError says why a root cannot be used, and the command that mends it.
type RootError struct {
	Path    string
	Problem string
	Mend    string // a command to run; empty when there is none
	Err     error
}

func (e *RootError) Error() string {
	s := e.Problem
	if e.Path != "" {
		s = e.Path + ": " + s
	}
	if e.Mend != "" {
		s += "; mend it with: " + e.Mend
	}
	return s
}

func (e *RootError) Unwrap() error { return e.Err }

// The folders of an exchange.
const (
	sessionsDir = "sessions"
	inboxesDir  = "inboxes"
	journalsDir = "journals"
	metadataDir = "metadata"
	ownersDir   = "owners" // locks and heartbeats: apart from sessions, which peers look at
	memoryDir   = "memory"
	bellsDir    = "bells"
)

var folders = []string{sessionsDir, inboxesDir, journalsDir, metadataDir, ownersDir, memoryDir, bellsDir}

// prepare makes the root private and complete, and returns its one spelling.
// A root that others can use is made private when it is ours and empty; else
// it is refused, never replaced: another root would split the team.
func prepare(root string) (string, error) {
	if err := os.MkdirAll(root, 0o700); err != nil {
		var pe *fs.PathError
		if errors.As(err, &pe) && errors.Is(err, syscall.ENOTDIR) {
			return "", notFolder(pe.Path)
		}
		return "", &RootError{Path: root, Problem: "cannot be created: " + cause(err), Mend: goElsewhere, Err: err}
	}
	real, err := filepath.EvalSymlinks(root)
	if err != nil {
		return "", &RootError{Path: root, Problem: "cannot be resolved: " + cause(err), Err: err}
	}
	if err := makePrivate(real, true); err != nil {
		return "", err
	}
	for _, name := range folders {
		dir := filepath.Join(real, name)
		if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			mend := goElsewhere
			if errors.Is(err, fs.ErrPermission) {
				mend = "chmod u+rwx " + shellQuote(real)
			}
			return "", &RootError{Path: real, Problem: "cannot be written: " + cause(err), Mend: mend, Err: err}
		}
		if err := makePrivate(dir, false); err != nil {
			return "", err
		}
	}
	return real, nil
}

// makePrivate checks that dir is a real folder of ours that nobody else can
// use. The root itself is only closed when it is empty, since what others may
// have put there can't be trusted; its folders lie in a private root and are
// simply closed.
func makePrivate(dir string, root bool) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return &RootError{Path: dir, Problem: "cannot be read: " + cause(err), Err: err}
	}
	if !info.IsDir() {
		return notFolder(dir)
	}
	if owner, ours := ownedByUs(info); !ours {
		return &RootError{Path: dir, Problem: fmt.Sprintf("belongs to another user (uid %d)", owner), Mend: goElsewhere}
	}
	if !openToOthers(info) {
		return nil
	}
	chmod := "chmod 700 " + shellQuote(dir)
	if root {
		entries, err := os.ReadDir(dir)
		if err != nil || len(entries) > 0 {
			return &RootError{Path: dir, Problem: fmt.Sprintf("other users can use it (mode %04o)", info.Mode().Perm()), Mend: chmod}
		}
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		return &RootError{Path: dir, Problem: "other users can use it, and it cannot be closed: " + cause(err), Mend: chmod, Err: err}
	}
	return nil
}

// goElsewhere is the command when we can do nothing with a folder.
const goElsewhere = "export SWITCHBOARD_DIR=/a/private/folder/of/yours"

func notFolder(path string) *RootError {
	return &RootError{Path: path, Problem: "is not a folder", Mend: "mv " + shellQuote(path) + " " + shellQuote(path+".old")}
}

// cause drops the operation and path that the caller says better.
func cause(err error) string {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err.Error()
	}
	return err.Error()
}

// shellQuote makes a path safe to paste into a shell.
func shellQuote(s string) string {
	for _, r := range s {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
		case r == '/' || r == '.' || r == '-' || r == '_' || r == '+' || r == ':':
		default:
			return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
		}
	}
	return s
}
