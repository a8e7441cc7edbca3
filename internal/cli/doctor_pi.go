package cli

import (
	"context"
	"errors"
	"os"
	"strings"

	"switchboard/internal/atomicfile"
	"switchboard/internal/pihost"
	"switchboard/internal/shellquote"
)

// pi examines Pi and what of ours is in it.
func (x *examination) pi(ctx context.Context) {
	x.piProgram(ctx)
	ext, err := x.app.extension("")
	if err != nil {
		x.mend("agent dir", "", "%s", err)
		return
	}
	if _, err := os.Stat(ext.AgentDir); err != nil {
		x.add("agent dir", fine, "%s is not there yet: made by Pi or by install", ext.AgentDir)
	} else if !atomicfile.Writable(ext.AgentDir) {
		x.mend("agent dir", "chmod u+rwx "+shellquote.Quote(ext.AgentDir), "%s is not writable", ext.AgentDir)
	} else {
		x.add("agent dir", fine, "%s", ext.AgentDir)
	}
	clashes := pihost.Clashes(ext.AgentDir)
	installed := x.extension(ext, clashes)
	x.clashes(clashes, installed)
}

func (x *examination) piProgram(ctx context.Context) {
	pi, err := pihost.FindPi(ctx)
	switch {
	case errors.Is(err, pihost.ErrNoPi):
		x.mend("pi", "", "there is no pi in PATH; install Pi %s or later, or add its folder to PATH", pihost.OldestPi)
	case err != nil:
		x.mend("pi", shellquote.Quote(pi.Path)+" --version", "%s", err)
	case !pi.Supported():
		x.mend("pi", "", "%s is version %s; the extension needs %s or later: update Pi", pi.Path, pi.Version, pihost.OldestPi)
	default:
		x.add("pi", fine, "%s, version %s", pi.Path, pi.Version)
	}
}

const installCommand = "switchboard pi install"

// extension examines whether Pi loads our extension, of this version, and
// whether that finds a program to start. It reports whether install's copy is
// there.
func (x *examination) extension(ext pihost.Extension, clashes []pihost.Clash) (installed bool) {
	s, err := ext.Status()
	var me *pihost.MendError
	switch {
	case errors.As(err, &me):
		x.add("extension", noted, "%s", me.Problem)
		return s.Installed()
	case err != nil:
		x.mend("extension", "", "%s", err)
		return s.Installed()
	}
	packaged := ""
	for _, c := range clashes {
		if c.Ours {
			packaged = c.Where
		}
	}
	switch {
	case !s.Installed() && packaged != "":
		x.add("extension", fine, "loaded as %s, not by install", packaged)
		return s.Installed()
	case !s.Installed():
		x.mend("extension", installCommand, "not installed in %s", ext.Dir())
		return s.Installed()
	case s.Manifest.Binary == "":
		x.mend("extension", installCommand, "half installed in %s", ext.Dir())
		return s.Installed()
	case len(s.Other) > 0:
		x.mend("extension", installCommand, "version %s, installed by switchboard %s, is not that of this program (%s): %s differ", s.Version, s.Manifest.Version, Version, strings.Join(s.Other, ", "))
	default:
		x.add("extension", fine, "version %s, installed by switchboard %s, is that of this program", s.Version, s.Manifest.Version)
	}
	if len(s.Foreign) > 0 {
		x.add("extension", noted, "files in its folder that are not ours, left alone: %s", some(s.Foreign))
	}
	x.binary(s.Manifest.Binary)
	return true
}

// binary examines the program that the extension starts.
func (x *examination) binary(path string) {
	if named := x.app.getenv("SWITCHBOARD_BIN"); named != "" {
		if err := pihost.Runnable(named); err != nil {
			x.mend("binary", "unset SWITCHBOARD_BIN", "SWITCHBOARD_BIN names the program that the extension starts, but %s", err)
			return
		}
		path = named
	}
	if err := pihost.Runnable(path); err != nil {
		x.mend("binary", installCommand, "the extension starts this program, but %s", err)
		return
	}
	if exe, err := thisBinary(); err == nil && !sameFile(exe, path) {
		x.add("binary", noted, "the extension starts %s, which is not this program (%s)", path, exe)
		return
	}
	x.add("binary", fine, "the extension starts %s", path)
}

// clashes names other extensions that may take our tools' names. Our own,
// loaded as a package, is one only beside an installed copy.
func (x *examination) clashes(clashes []pihost.Clash, installed bool) {
	found := false
	for _, c := range clashes {
		if c.Ours && !installed {
			continue
		}
		found = true
		x.add("clashes", noted, "%s %s: where both are loaded, one of them stands back; to remove it: %s", c.Where, c.Why, c.Mend)
	}
	if !found {
		x.add("clashes", fine, "no other extension brings the same tools")
	}
}
