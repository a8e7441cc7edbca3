package cli

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"switchboard/internal/bell"
	"switchboard/internal/delivery"
	"switchboard/internal/exchange"
	"switchboard/internal/exchange/dirstore"
)

// exchange examines the place where sessions meet.
func (x *examination) exchange() {
	root, err := x.app.root()
	if err != nil {
		x.unusable("root", err)
		return
	}
	r := x.root(root)
	x.sockets(r)
	if r.Store == nil || !x.folders(r.Store) {
		return
	}
	x.sessions(r.Store)
	x.mail(r.Store)
	x.files(r.Store)
}

// unusable words what keeps sessions from meeting.
func (x *examination) unusable(check string, err error) {
	var re *dirstore.RootError
	if !errors.As(err, &re) {
		x.mend(check, "", "%s", err)
		return
	}
	x.mend(check, re.Mend, "%s", strings.TrimSpace(re.Path+" "+re.Problem))
}

// root examines the directory itself.
func (x *examination) root(root string) dirstore.Report {
	why := "chosen by " + dirstore.RootSource(x.app.getenv, x.app.home())
	r, err := dirstore.Inspect(root)
	shown := root
	if r.Root != root {
		shown += " (really " + r.Root + ")"
	}
	switch {
	case err != nil:
		x.unusable("root", err)
	case !r.Exists:
		x.add("root", fine, "%s is not there yet: made by the first session (%s)", root, why)
	case r.Open:
		x.add("root", noted, "%s can be used by other users (mode %04o); empty, so the first session closes it (%s)", shown, r.Mode, why)
	default:
		x.add("root", fine, "%s is yours alone (mode %04o; %s)", shown, r.Mode, why)
	}
	return r
}

// sockets examines whether bells fit below the root, and where they go if not.
func (x *examination) sockets(r dirstore.Report) {
	if !bell.Sockets {
		return
	}
	path, place, err := r.LongestBell()
	size := fmt.Sprintf("longest path %d bytes, limit %d", len(path), bell.MaxPath-1)
	switch {
	case err != nil:
		x.mend("sockets", "", "%s; messages arrive up to a second late: %s", size, err)
	case place != path:
		x.add("sockets", fine, "%s: they go to %s instead", size, filepath.Dir(place))
	default:
		x.add("sockets", fine, "%s", size)
	}
}

// folders examines what lies in the root, and reports whether all of it that is
// there can be used.
func (x *examination) folders(store *dirstore.Store) bool {
	all, err := store.Folders()
	if err != nil {
		x.unusable("folders", err)
		return false
	}
	var missing, loose []string
	for _, f := range all {
		switch {
		case f.Missing:
			missing = append(missing, f.Name)
		case f.Loose:
			loose = append(loose, fmt.Sprintf("%s (mode %04o)", f.Name, f.Mode))
		}
	}
	switch {
	case len(loose) > 0:
		x.add("folders", noted, "open to other users below a private root: %s; the next session closes them", strings.Join(loose, ", "))
	case len(missing) > 0:
		x.add("folders", fine, "not there yet: %s; made by the next session", strings.Join(missing, ", "))
	default:
		x.add("folders", fine, "all %d are there and private", len(all))
	}
	return true
}

// sessions counts who is there.
func (x *examination) sessions(store *dirstore.Store) {
	all, err := store.Census()
	if err != nil {
		x.mend("sessions", "", "%s", err)
		return
	}
	responsive, dead := 0, 0
	var silent []string
	for _, s := range all {
		switch s.Presence {
		case exchange.Gone:
			dead++
		case exchange.Unresponsive:
			silent = append(silent, fmt.Sprintf("%s (pid %d)", label(s), s.Agent.PID))
		case exchange.Live:
			responsive++
		}
	}
	x.add("sessions", fine, "%d live, %d unresponsive, %d dead %s", responsive, len(silent), dead, plural(dead, "record", "records"))
	if len(silent) > 0 {
		x.add("sessions", noted, "unresponsive, stopped or stuck: %s", strings.Join(silent, ", "))
	}
}

func label(s exchange.Session) string {
	if s.Name != "" {
		return delivery.Line(s.Name, 60)
	}
	return delivery.Line(s.Key.ID, 60)
}

// mail counts messages for sessions that are not there.
func (x *examination) mail(store *dirstore.Store) {
	boxes, err := store.Mailboxes()
	if err != nil {
		x.mend("mail", "", "%s", err)
		return
	}
	var held []string
	total := 0
	var oldest time.Time
	for _, box := range boxes {
		if box.Live || box.Messages == 0 {
			continue
		}
		total += box.Messages
		held = append(held, fmt.Sprintf("%s (%d)", delivery.Line(box.Slug, 60), box.Messages))
		if oldest.IsZero() || box.Oldest.Before(oldest) {
			oldest = box.Oldest
		}
	}
	if total == 0 {
		x.add("mail", fine, "none waits for a session that left")
		return
	}
	x.add("mail", noted, "%d %s, the oldest %s old, for sessions that left, kept %d days for their resume: %s",
		total, plural(total, "message waits", "messages wait"), delivery.Age(time.Since(oldest)), exchange.KeepMail/(24*time.Hour), some(held))
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
