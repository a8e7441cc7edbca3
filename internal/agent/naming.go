package agent

import (
	"path"
	"strings"

	"switchboard/internal/team"
)

// says is the file as this session's tools take it: what a text asks to call
// must work as it is written.
func (a *Agent) says(p team.Path) string {
	if p.Rel == "" || p.Root != a.place.Root {
		return p.File
	}
	name := relative(a.place.Below, p.Rel)
	switch {
	case a.place.Linked && strings.HasPrefix(name, "../"):
		return p.File // from there .. leads elsewhere
	case strings.HasPrefix(name, "@"), strings.HasPrefix(name, "~"):
		return "./" + name // which tools take for something else
	}
	return name
}

// saysIn is the same, but a file of another checkout from that one's root.
func (a *Agent) saysIn(p team.Path) string {
	if p.Root == a.place.Root {
		return a.says(p)
	}
	return p.Short(p.Root)
}

// relative is the way to a file from a folder, both with slashes and from one
// root; the folder is empty at the root.
func relative(folder, file string) string {
	up := ""
	for folder != "" && !strings.HasPrefix(file, folder+"/") {
		if folder = path.Dir(folder); folder == "." {
			folder = ""
		}
		up += "../"
	}
	if folder != "" {
		file = file[len(folder)+1:]
	}
	return up + file
}
