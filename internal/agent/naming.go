package agent

import (
	"fmt"
	"path"
	"strings"

	"switchboard/internal/delivery"
	"switchboard/internal/team"
)

// says is the file as this session's tools take it: what a text asks to call
// must work as it is written.
func (a *Agent) says(p team.Path) string { return quoted(a.path(p)) }

func (a *Agent) path(p team.Path) string {
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
	return quoted(p.Short(p.Root))
}

// quoted writes a name that a line can't show as the JSON string that a call
// takes: it stays what it is, and looks like nothing else.
func quoted(name string) string {
	if delivery.Line(name, len(name)+1) == name {
		return name
	}
	var out strings.Builder
	out.WriteByte('"')
	for _, r := range name {
		switch {
		case r == '"' || r == '\\':
			out.WriteString("\\" + string(r))
		case r != ' ' && r <= 0xFFFF && delivery.Line(string(r), 4) != string(r):
			fmt.Fprintf(&out, "\\u%04x", r)
		default:
			out.WriteRune(r)
		}
	}
	out.WriteByte('"')
	return out.String()
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
