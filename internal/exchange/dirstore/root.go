package dirstore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"switchboard/internal/shellquote"
)

// Root names the directory where this user's sessions meet. The first of
// these decides: SWITCHBOARD_DIR, PI_TELECOM_DIR, an absolute
// PI_TOUCHTONE_HOME, $XDG_STATE_HOME/pi/touchtone (when that variable is
// absolute and the folder exists or the legacy one does not), and
// ~/.local/state/pi/touchtone (spec: touchtone, How it works).
func Root(getenv func(string) string, home string) (string, error) {
	dir, _, err := choose(getenv, home)
	return dir, err
}

// RootSource says what decided about Root: the name of a variable, or "the
// home directory".
func RootSource(getenv func(string) string, home string) string {
	_, source, _ := choose(getenv, home)
	return source
}

func choose(getenv func(string) string, home string) (dir, source string, err error) {
	for _, name := range []string{"SWITCHBOARD_DIR", "PI_TELECOM_DIR"} {
		if dir := getenv(name); dir != "" {
			if !filepath.IsAbs(dir) {
				return "", name, &RootError{
					Path: dir, Problem: "is not an absolute path, as " + name + " must be: sessions in other folders would not meet there",
					Mend: "export " + name + `="$(realpath -m ` + shellquote.Quote(dir) + `)"`,
				}
			}
			return filepath.Clean(dir), name, nil
		}
	}
	if dir := getenv("PI_TOUCHTONE_HOME"); filepath.IsAbs(dir) {
		return filepath.Clean(dir), "PI_TOUCHTONE_HOME", nil
	}
	const byHome = "the home directory"
	if home == "" {
		return "", byHome, &RootError{
			Problem: "neither SWITCHBOARD_DIR nor HOME says where sessions meet",
			Mend:    goElsewhere,
		}
	}
	legacy := filepath.Join(home, ".local", "state", "pi", "touchtone")
	if state := getenv("XDG_STATE_HOME"); filepath.IsAbs(state) {
		dir := filepath.Join(state, "pi", "touchtone")
		if exists(dir) || !exists(legacy) {
			return dir, "XDG_STATE_HOME", nil
		}
	}
	return legacy, byHome, nil
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
	onDeckDir   = "on-deck"
)

var folders = []string{sessionsDir, inboxesDir, journalsDir, metadataDir, ownersDir, memoryDir, bellsDir, onDeckDir}

// prepare makes the root private and complete, and returns its one spelling.
// A root that others can use is made private when it is ours and empty; else
// it is refused, never replaced: another root would split the team.
func prepare(root string) (string, error) {
	if err := os.MkdirAll(root, 0o700); err != nil {
		var pe *fs.PathError
		if errors.As(err, &pe) && errors.Is(err, syscall.ENOTDIR) {
			return "", notFolder(pe.Path)
		}
		return "", notCreated(root, cause(err), err)
	}
	real, err := filepath.EvalSymlinks(root)
	if err != nil {
		return "", notResolved(root, err)
	}
	if err := makePrivate(real, true); err != nil {
		return "", err
	}
	for _, name := range folders {
		dir := filepath.Join(real, name)
		if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return "", notWritten(real, cause(err), err)
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
	info, err := ourFolder(dir)
	if err != nil || !openToOthers(info) {
		return err
	}
	if root && !empty(dir) {
		return usedByOthers(dir, info)
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		return &RootError{Path: dir, Problem: "can be used by other users, and cannot be closed: " + cause(err), Mend: "chmod 700 " + shellquote.Quote(dir), Err: err}
	}
	return nil
}

// ourFolder looks at dir, which must be a real folder of ours.
func ourFolder(dir string) (fs.FileInfo, error) {
	info, err := os.Lstat(dir)
	if err != nil {
		return nil, &RootError{Path: dir, Problem: "cannot be read: " + cause(err), Err: err}
	}
	if !info.IsDir() {
		return nil, notFolder(dir)
	}
	if owner, ours := ownedByUs(info); !ours {
		return nil, &RootError{Path: dir, Problem: fmt.Sprintf("belongs to another user (uid %d)", owner), Mend: goElsewhere}
	}
	return info, nil
}

func empty(dir string) bool {
	entries, err := os.ReadDir(dir)
	return err == nil && len(entries) == 0
}

// goElsewhere is the command when we can do nothing with a folder.
const goElsewhere = "export SWITCHBOARD_DIR=/a/private/folder/of/yours"

func notFolder(path string) *RootError {
	return &RootError{Path: path, Problem: "is not a folder", Mend: "mv " + shellquote.Quote(path) + " " + shellquote.Quote(path+".old")}
}

func notCreated(root, why string, err error) *RootError {
	return &RootError{Path: root, Problem: "cannot be created: " + why, Mend: goElsewhere, Err: err}
}

func notResolved(root string, err error) *RootError {
	return &RootError{Path: root, Problem: "cannot be resolved: " + cause(err), Mend: goElsewhere, Err: err}
}

func notWritten(dir, why string, err error) *RootError {
	mend := goElsewhere
	if errors.Is(err, fs.ErrPermission) {
		mend = "chmod u+rwx " + shellquote.Quote(dir)
	}
	return &RootError{Path: dir, Problem: "cannot be written: " + why, Mend: mend, Err: err}
}

func usedByOthers(dir string, info fs.FileInfo) *RootError {
	return &RootError{Path: dir, Problem: fmt.Sprintf("can be used by other users (mode %04o)", info.Mode().Perm()), Mend: "chmod 700 " + shellquote.Quote(dir)}
}

// cause drops the operation and path that the caller says better.
func cause(err error) string {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err.Error()
	}
	return err.Error()
}
