package pihost

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"switchboard/internal/atomicfile"
	"switchboard/internal/shellquote"
)

const (
	folder       = "switchboard"   // below Pi's extensions
	manifestName = "install.json"  // what install wrote down, in that folder
	stagePrefix  = ".switchboard-" // where an installation is prepared
)

// Extension is our extension together with the agent directory it is for.
type Extension struct {
	Files    fs.FS
	AgentDir string
}

// Dir is the folder in which Pi finds the extension.
func (e Extension) Dir() string { return filepath.Join(e.AgentDir, "extensions", folder) }

// Manifest is what an installation says of itself. The extension reads Binary.
type Manifest struct {
	Binary  string   `json:"binary"`  // the program to start, an absolute path
	Version string   `json:"version"` // of that program
	Files   []string `json:"files"`   // what uninstall removes
}

// MendError says what is in the way, and the command that mends it.
type MendError struct {
	Problem string
	Mend    string
}

func (e *MendError) Error() string { return e.Problem }

// Status is what was found where the extension belongs.
type Status struct {
	Manifest Manifest // zero when there is none, or none that can be read
	Version  string   // of the extension that is there
	Ours     []string // files of ours that are there
	Other    []string // of these and of those that should be: missing, or different from the program's
	Foreign  []string // files that are not ours
}

// Installed reports whether anything of ours is there.
func (s Status) Installed() bool { return len(s.Ours) > 0 }

// Status looks at what is installed and changes nothing.
func (e Extension) Status() (Status, error) {
	want, err := e.wanted()
	if err != nil {
		return Status{}, err
	}
	there, err := e.there()
	if err != nil {
		return Status{}, err
	}
	s := Status{Manifest: e.manifest(), Version: packageOf(e.Dir()).Version}
	for _, name := range there {
		_, wanted := want[name]
		switch {
		case wanted, name == manifestName, slices.Contains(s.Manifest.Files, name), atomicfile.IsTemp(name):
			s.Ours = append(s.Ours, name)
		default:
			s.Foreign = append(s.Foreign, name)
		}
		if slices.Contains(s.Manifest.Files, name) && !wanted {
			s.Other = append(s.Other, name)
		}
	}
	for name, data := range want {
		have, err := atomicfile.ReadCapped(e.path(name), maxSource)
		if err != nil || !bytes.Equal(have, data) {
			s.Other = append(s.Other, name)
		}
	}
	slices.Sort(s.Other)
	return s, nil
}

// Install puts the extension into the agent directory and writes down which
// program it shall start. It reports whether anything had to be done. Files of
// others in the folder stay.
func (e Extension) Install(binary, version string) (changed bool, err error) {
	s, err := e.Status()
	if err != nil {
		return false, err
	}
	want, err := e.wanted()
	if err != nil {
		return false, err
	}
	m := Manifest{Binary: binary, Version: version, Files: slices.Sorted(maps.Keys(want))}
	if len(s.Other) == 0 && s.Manifest.Binary == m.Binary && s.Manifest.Version == m.Version && slices.Equal(s.Manifest.Files, m.Files) {
		return false, nil
	}
	manifest, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return false, err
	}
	want[manifestName] = append(manifest, '\n')
	if err := os.MkdirAll(filepath.Dir(e.Dir()), 0o755); err != nil {
		return false, err
	}
	e.sweep()
	if len(s.Foreign) > 0 {
		return true, e.update(want, s.Ours)
	}
	return true, e.swap(want)
}

// swap replaces the whole folder, so that Pi never loads half of one version
// and half of another.
func (e Extension) swap(want map[string][]byte) error {
	stage, err := os.MkdirTemp(filepath.Dir(e.Dir()), stagePrefix+"*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(stage)
	// One level further down Pi doesn't take it for an extension.
	fresh, old := filepath.Join(stage, "new"), filepath.Join(stage, "old")
	if err := writeAll(fresh, want); err != nil {
		return err
	}
	if err := os.Rename(e.Dir(), old); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Rename(fresh, e.Dir()); err != nil {
		_ = os.Rename(old, e.Dir()) // back to what it was
		return err
	}
	return nil
}

func writeAll(dir string, files map[string][]byte) error {
	for name, data := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// update replaces our files one by one, next to those of others: moving
// theirs away, if only for an instant, is not ours to do. The manifest comes
// last, since without it the next install begins again.
func (e Extension) update(want map[string][]byte, old []string) error {
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(want)), func(n string) bool { return n == manifestName })
	for _, name := range append(names, manifestName) {
		if err := os.MkdirAll(filepath.Dir(e.path(name)), 0o755); err != nil {
			return err
		}
		if err := atomicfile.Write(e.path(name), want[name]); err != nil {
			return err
		}
	}
	stale := slices.DeleteFunc(slices.Clone(old), func(n string) bool { return slices.Contains(names, n) || n == manifestName })
	return e.remove(stale)
}

// Uninstall takes out what Install put in. It reports whether there was
// anything, and which files of others it left.
func (e Extension) Uninstall() (removed bool, left []string, err error) {
	s, err := e.Status()
	if err != nil {
		return false, nil, err
	}
	e.sweep()
	if !s.Installed() {
		return false, s.Foreign, nil
	}
	return true, s.Foreign, e.remove(s.Ours)
}

// remove removes files of the folder, the manifest last, and then the folders
// that are empty.
func (e Extension) remove(names []string) error {
	root, err := os.OpenRoot(e.Dir()) // names come from a file that anybody may have written
	if err != nil {
		return err
	}
	defer root.Close()
	if i := slices.Index(names, manifestName); i >= 0 {
		names = append(slices.Delete(slices.Clone(names), i, i+1), manifestName)
	}
	for _, name := range names {
		if err := root.Remove(filepath.FromSlash(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		for dir := filepath.Dir(e.path(name)); dir != e.Dir(); dir = filepath.Dir(dir) {
			_ = os.Remove(dir) // stays while anything is in it
		}
	}
	_ = os.Remove(e.Dir())
	return nil
}

// abandoned is when what an installation prepared must be a dead one's.
const abandoned = time.Minute

// sweep removes what installations that died left behind. All of it is ours.
func (e Extension) sweep() {
	dir := filepath.Dir(e.Dir())
	entries, _ := os.ReadDir(dir) // nothing to sweep where nothing can be read
	for _, d := range entries {
		if !d.IsDir() || !strings.HasPrefix(d.Name(), stagePrefix) {
			continue
		}
		if info, err := d.Info(); err == nil && time.Since(info.ModTime()) > abandoned {
			_ = os.RemoveAll(filepath.Join(dir, d.Name()))
		}
	}
}

// wanted is the extension's content by slash-separated name.
func (e Extension) wanted() (map[string][]byte, error) {
	out := make(map[string][]byte)
	err := fs.WalkDir(e.Files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		out[name], err = fs.ReadFile(e.Files, name)
		return err
	})
	return out, err
}

// there lists the files in the folder. A folder that isn't a real one is
// somebody's own arrangement, such as a link to a checkout.
func (e Extension) there() ([]string, error) {
	dir := e.Dir()
	info, err := os.Lstat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	case !info.IsDir():
		return nil, &MendError{Problem: dir + " is a link or a file that install did not make, and is left alone", Mend: "rm " + shellquote.Quote(dir)}
	}
	var out []string
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		out = append(out, filepath.ToSlash(name))
		return err
	})
	return out, err
}

func (e Extension) manifest() Manifest {
	var m Manifest
	data, err := atomicfile.ReadCapped(e.path(manifestName), maxSource)
	if err != nil || json.Unmarshal(data, &m) != nil {
		return Manifest{} // half installed, or damaged: the names in the program decide
	}
	return m
}

func (e Extension) path(name string) string {
	return filepath.Join(e.Dir(), filepath.FromSlash(name))
}
