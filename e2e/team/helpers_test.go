//go:build linux

// Package team tests what sessions of one repository know of each other, on
// real Pi processes.
package team

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"switchboard/e2e/model"
	"switchboard/e2e/rig"
)

func tool(name string, args map[string]any) model.Step {
	return model.Step{Tools: []model.Tool{{Name: name, Args: args}}}
}

func telecom(args map[string]any) model.Step { return tool("telecom", args) }

func write(path, content string) model.Step {
	return tool("write", map[string]any{"path": path, "content": content})
}

func read(path string) model.Step { return tool("read", map[string]any{"path": path}) }

func edit(path, from, to string) model.Step {
	return tool("edit", map[string]any{"path": path, "edits": []map[string]any{{"oldText": from, "newText": to}}})
}

var ok = model.Step{Text: "ok"}

// git runs git in a folder.
func git(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "init.defaultBranch=main"}, args...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

// start starts a Pi and waits until it has its callsign.
func start(t *testing.T, w *rig.World, o rig.Options) *rig.Pi {
	t.Helper()
	p := w.StartPi(t, o)
	rig.Eventually(t, rig.Watchdog, "a callsign", func() bool { return callsign(p) != "" })
	return p
}

// callsign is what the footer says.
func callsign(p *rig.Pi) string {
	after, found := strings.CutPrefix(p.Statuses()["switchboard"], "📡 ")
	if !found {
		return ""
	}
	word, _, _ := strings.Cut(after, " ")
	return word
}

func footer(p *rig.Pi) string { return p.Statuses()["switchboard"] }

func fileText(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func inWorld(w *rig.World, name string) string { return filepath.Join(w.Dir, name) }

func realPath(t *testing.T, path string) string {
	t.Helper()
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		t.Fatal(err)
	}
	return real
}

// killAll kills a Pi together with its helper.
func killAll(p *rig.Pi) {
	for _, pid := range append(p.Sidecars(), p.PID) {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}
