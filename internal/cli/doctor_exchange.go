package cli

import (
	"encoding/json"
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
	"switchboard/internal/bell"
	"switchboard/internal/delivery"
	"switchboard/internal/exchange"
	"switchboard/internal/exchange/dirstore"
	"switchboard/internal/pihost"
)

// The folders of an exchange on a directory, as docs/protocol.md lists them.
var rootFolders = []string{"sessions", "inboxes", "journals", "metadata", "owners", "memory", "bells"}

// exchange examines the place where sessions meet.
func (x *examination) exchange() {
	root, err := x.app.root()
	if err != nil {
		x.rootError(err)
		return
	}
	real, there := x.root(root)
	x.sockets(root)
	if !there || !x.folders(real) {
		return
	}
	// Everything is in place and private, so that opening changes nothing.
	store, err := dirstore.Open(root, Version)
	if err != nil {
		x.rootError(err)
		return
	}
	live := x.sessions(store)
	x.mail(store.Root(), live)
	x.files(store)
}

func (x *examination) rootError(err error) {
	var re *dirstore.RootError
	if !errors.As(err, &re) {
		x.mend("root", "", "%s", err)
		return
	}
	text := re.Problem
	if re.Path != "" {
		text = re.Path + " " + text
	}
	x.mend("root", re.Mend, "%s", text)
}

// anotherRoot is the way out when a root can't be had.
const anotherRoot = "export SWITCHBOARD_DIR=/a/private/folder/of/yours"

// root examines the directory itself, and reports whether it is there and fit.
func (x *examination) root(root string) (real string, fit bool) {
	why := "chosen by " + x.rootReason(root)
	shown := root
	real, err := filepath.EvalSymlinks(root)
	if err == nil && real != root {
		shown += " (really " + real + ")"
	}
	info, statErr := os.Stat(root)
	switch {
	case errors.Is(statErr, fs.ErrNotExist):
		if dir := nearest(root); !writable(dir) {
			x.mend("root", anotherRoot, "%s cannot be made: %s is not writable", root, dir)
		} else {
			x.add("root", fine, "%s is not there yet: made by the first session (%s)", root, why)
		}
		return "", false
	case statErr != nil || err != nil:
		x.mend("root", anotherRoot, "%s cannot be looked at: %s", root, errors.Join(statErr, err))
		return "", false
	case !info.IsDir():
		x.mend("root", "mv "+pihost.ShellQuote(root)+" "+pihost.ShellQuote(root+".old"), "%s is not a folder", root)
		return "", false
	}
	uid, ours := owner(info)
	mode := fmt.Sprintf("mode %04o", info.Mode().Perm())
	switch {
	case !ours:
		x.mend("root", anotherRoot, "%s belongs to another user (uid %d)", shown, uid)
		return "", false
	case openToOthers(info) && !empty(real):
		x.mend("root", "chmod 700 "+pihost.ShellQuote(real), "%s can be used by other users (%s)", shown, mode)
		return "", false
	case openToOthers(info):
		x.add("root", noted, "%s can be used by other users (%s); empty, so the first session closes it (%s)", shown, mode, why)
		return "", false
	case !writable(real):
		x.mend("root", "chmod u+rwx "+pihost.ShellQuote(real), "%s is not writable (%s)", shown, mode)
		return "", false
	}
	x.add("root", fine, "%s is yours alone (%s; %s)", shown, mode, why)
	return real, true
}

// rootReason says what made this the root. dirstore.Root has the order.
func (x *examination) rootReason(root string) string {
	for _, name := range []string{"SWITCHBOARD_DIR", "PI_TELECOM_DIR", "PI_TOUCHTONE_HOME", "XDG_STATE_HOME"} {
		dir := x.app.getenv(name)
		if name == "XDG_STATE_HOME" {
			dir = filepath.Join(dir, "pi", "touchtone")
		}
		if filepath.IsAbs(dir) && filepath.Clean(dir) == root {
			return name
		}
	}
	return "the home directory"
}

// nearest is the closest folder above path that is there.
func nearest(path string) string {
	for {
		up := filepath.Dir(path)
		if _, err := os.Stat(up); err == nil || up == path {
			return up
		}
		path = up
	}
}

func empty(dir string) bool {
	entries, err := os.ReadDir(dir)
	return err == nil && len(entries) == 0
}

// folders examines what lies in the root, and reports whether all of it is
// there, private and ours.
func (x *examination) folders(root string) bool {
	var missing, loose []string
	for _, name := range rootFolders {
		dir := filepath.Join(root, name)
		info, err := os.Lstat(dir)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			missing = append(missing, name)
			continue
		case err != nil:
			x.mend("folders", "", "%s", err)
			return false
		case !info.IsDir():
			x.mend("folders", "mv "+pihost.ShellQuote(dir)+" "+pihost.ShellQuote(dir+".old"), "%s is not a folder", dir)
			return false
		}
		if uid, ours := owner(info); !ours {
			x.mend("folders", anotherRoot, "%s belongs to another user (uid %d)", dir, uid)
			return false
		}
		if openToOthers(info) {
			loose = append(loose, fmt.Sprintf("%s (mode %04o)", name, info.Mode().Perm()))
		}
	}
	switch {
	case len(loose) > 0:
		x.add("folders", noted, "open to other users below a private root: %s; the next session closes them", strings.Join(loose, ", "))
	case len(missing) > 0:
		x.add("folders", fine, "not there yet: %s; made by the next session", strings.Join(missing, ", "))
	default:
		x.add("folders", fine, "all %d are there and private", len(rootFolders))
	}
	return len(missing)+len(loose) == 0
}

// sockets examines whether bells fit below the root, and where they go if not.
func (x *examination) sockets(root string) {
	if !bellsHavePaths {
		return
	}
	if real, err := filepath.EvalSymlinks(root); err == nil {
		root = real
	}
	longest := len(filepath.Join(root, "bells", strings.ToLower(ulid.Zero.String())+".sock"))
	if longest < bell.MaxPath {
		x.add("sockets", fine, "longest path %d bytes, limit %d", longest, bell.MaxPath-1)
		return
	}
	dir := x.shortFolder()
	if info, err := os.Lstat(dir); err == nil {
		if _, ours := owner(info); !ours || !info.IsDir() || openToOthers(info) {
			x.mend("sockets", "ls -ld "+pihost.ShellQuote(dir), "longest path %d bytes, limit %d, and the short folder %s is not a private one of yours: messages arrive up to a second late", longest, bell.MaxPath-1, dir)
			return
		}
	}
	x.add("sockets", fine, "longest path %d bytes, limit %d: they go to %s instead", longest, bell.MaxPath-1, dir)
}

// shortFolder is where package bell puts a socket whose path is too long. It
// isn't asked, since it would make the folder.
func (x *examination) shortFolder() string {
	if run := x.app.getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(run) && len(run) < bell.MaxPath/2 {
		if _, err := os.Stat(run); err == nil {
			return filepath.Join(run, "switchboard")
		}
	}
	if tmp := os.TempDir(); len(tmp) < bell.MaxPath/2 {
		return filepath.Join(tmp, ownFolder())
	}
	return filepath.Join("/tmp", ownFolder())
}

// sessions counts who is there, and returns their slugs. It looks sessions up
// one by one: a look at the whole roster would remove dead records.
func (x *examination) sessions(store *dirstore.Store) (live map[string]bool) {
	live = make(map[string]bool)
	responsive, dead := 0, 0
	var silent []string
	entries, err := os.ReadDir(filepath.Join(store.Root(), "sessions"))
	if err != nil {
		x.mend("sessions", "", "%s", err)
		return live
	}
	for _, e := range entries {
		key, ok := recordKey(filepath.Join(store.Root(), "sessions", e.Name()))
		if !ok {
			continue // among the files that are left alone
		}
		s, err := store.Session(key)
		switch {
		case errors.Is(err, exchange.ErrGone):
			dead++
			continue
		case err != nil:
			continue
		case s.Presence == exchange.Unresponsive:
			silent = append(silent, fmt.Sprintf("%s (pid %d)", label(s), s.Agent.PID))
		default:
			responsive++
		}
		live[key.Slug()] = true
	}
	x.add("sessions", fine, "%d live, %d unresponsive, %d dead %s", responsive, len(silent), dead, plural(dead, "record", "records"))
	if len(silent) > 0 {
		x.add("sessions", noted, "unresponsive, stopped or stuck: %s", strings.Join(silent, ", "))
	}
	return live
}

// recordKey reads whose record a file is, if it is one of this version.
func recordKey(path string) (exchange.SessionKey, bool) {
	var r exchange.Record
	data, err := atomicfile.ReadCapped(path, 64<<10)
	if err != nil || atomicfile.IsTemp(path) || json.Unmarshal(data, &r) != nil {
		return exchange.SessionKey{}, false
	}
	return r.Key, r.Version == exchange.Version && r.Key.ID != "" && r.Key.Slug()+".json" == filepath.Base(path)
}

func label(s exchange.Session) string {
	if s.Name != "" {
		return delivery.Line(s.Name, 60)
	}
	return delivery.Line(s.Key.ID, 60)
}

// mail counts messages for sessions that are not there.
func (x *examination) mail(root string, live map[string]bool) {
	boxes, err := os.ReadDir(filepath.Join(root, "inboxes"))
	if err != nil {
		x.mend("mail", "", "%s", err)
		return
	}
	var held []string
	total := 0
	var oldest time.Time
	for _, box := range boxes {
		if !box.IsDir() || live[box.Name()] {
			continue
		}
		n, first := count(filepath.Join(root, "inboxes", box.Name()))
		if n == 0 {
			continue
		}
		total += n
		held = append(held, fmt.Sprintf("%s (%d)", delivery.Line(box.Name(), 60), n))
		if oldest.IsZero() || first.Before(oldest) {
			oldest = first
		}
	}
	if total == 0 {
		x.add("mail", fine, "none waits for a session that left")
		return
	}
	x.add("mail", noted, "%d %s, the oldest %s old, for sessions that left, kept %d days for their resume: %s",
		total, plural(total, "message waits", "messages wait"), delivery.Age(time.Since(oldest)), exchange.KeepMail/(24*time.Hour), some(held))
}

// count counts an inbox's messages by their names.
func count(inbox string) (n int, oldest time.Time) {
	entries, _ := os.ReadDir(inbox) // what can't be read is among the files
	for _, e := range entries {
		name, isJSON := strings.CutSuffix(e.Name(), ".json")
		id, err := ulid.ParseStrict(name)
		if !isJSON || err != nil {
			continue
		}
		if sent := id.Timestamp(); n == 0 || sent.Before(oldest) {
			oldest = sent
		}
		n++
	}
	return n, oldest
}

// files lists what is in the root and isn't used.
func (x *examination) files(store *dirstore.Store) {
	problems, err := store.Problems()
	if err != nil {
		x.mend("files", "", "%s", err)
		return
	}
	if len(problems) == 0 {
		x.add("files", fine, "all are Switchboard's and can be read")
		return
	}
	slices.SortFunc(problems, func(a, b dirstore.Problem) int { return strings.Compare(a.Path, b.Path) })
	for i, p := range problems {
		if i == maxListed && len(problems) > maxListed+1 {
			x.add("files", noted, "and %d more of this sort", len(problems)-i)
			return
		}
		x.add("files", noted, "%s: %s", delivery.Line(p.Path, 200), delivery.Line(p.What, 300))
	}
}

// maxListed is how many things of one sort are listed.
const maxListed = 20

// some joins the first of many.
func some(all []string) string {
	if len(all) > maxListed {
		return fmt.Sprintf("%s and %d more", strings.Join(all[:maxListed], ", "), len(all)-maxListed)
	}
	return strings.Join(all, ", ")
}

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}
