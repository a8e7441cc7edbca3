package rig

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"switchboard/e2e/model"
)

// sessionEnv carries a Pi process's script name; models.json puts it into the
// request header the model server goes by.
const sessionEnv = "SWITCHBOARD_E2E_SESSION"

// worldEnv marks every process of a world with its scratch folder. HOME would
// do, did a test not choose one that others use too.
const worldEnv = "SWITCHBOARD_E2E_WORLD"

// keepEnv set to 1 leaves the scratch folders for a look.
const keepEnv = "SWITCHBOARD_E2E_KEEP"

// World is one user on one machine: a home with Pi's agent folder, a working
// folder, and a scripted model.
type World struct {
	Home     string
	AgentDir string // Pi's settings and sessions
	Dir      string // a git repository with a commit, where Pi starts
	Model    *model.Server

	t       testing.TB
	pins    Pins
	scratch string // holds the above, except a Home chosen by the test
}

// NewWorld makes a world that lasts as long as the test.
func NewWorld(t testing.TB) *World {
	t.Helper()
	return newWorld(t, "")
}

// NewWorldAt is NewWorld with a home at a path the test chooses. It is created
// if missing, and is the test's to remove.
func NewWorldAt(t testing.TB, home string) *World {
	t.Helper()
	return newWorld(t, home)
}

func newWorld(t testing.TB, home string) *World {
	t.Helper()
	pins := Setup(t)
	// Short, as the paths of sockets below must stay under 100 bytes; so not
	// t.TempDir, which contains the test's name.
	// Of one length, as screens are captured that show them.
	scratch := filepath.Join(os.TempDir(), "sb"+rand.Text()[:8])
	err := os.Mkdir(scratch, 0o700)
	if err != nil {
		t.Fatalf("rig: %v", err)
	}
	// Processes know the folders by their real names.
	if scratch, err = filepath.EvalSymlinks(scratch); err != nil {
		t.Fatalf("rig: %v", err)
	}
	if home == "" {
		home = filepath.Join(scratch, "home")
	}
	w := &World{
		Home:     home,
		AgentDir: filepath.Join(home, ".pi", "agent"),
		t:        t,
		pins:     pins,
		scratch:  scratch,
	}
	t.Cleanup(w.close)
	w.Model = model.Start(t)

	w.mkdir(w.AgentDir)
	w.mkdir(sharedTemp())
	w.writeJSON(filepath.Join(w.AgentDir, "models.json"), map[string]any{
		"providers": map[string]any{"rig": map[string]any{
			"baseUrl": w.Model.URL,
			"api":     "openai-completions",
			"apiKey":  "offline", // without one, the model counts as not logged in
			"headers": map[string]any{model.SessionHeader: "$" + sessionEnv},
			"models": []any{
				map[string]any{"id": "scripted", "contextWindow": 128000, "maxTokens": 4096},
				// for compactions without long texts
				map[string]any{"id": "scripted-small", "contextWindow": 20000, "maxTokens": 1024},
			},
		}},
	})
	w.Settings(map[string]any{
		"defaultProvider":        "rig",
		"defaultModel":           "scripted",
		"defaultThinkingLevel":   "off",
		"enableInstallTelemetry": false,
		"quietStartup":           true,
		"retry":                  map[string]any{"baseDelayMs": 300, "maxRetries": 3},
	})
	w.Dir = w.Repo("work")
	return w
}

// close ends what outlived its Pi and removes the world.
func (w *World) close() {
	w.t.Helper()
	// A folder can only be removed once nobody writes there any more.
	poll(Watchdog, func() bool {
		pids := w.Processes()
		for _, pid := range pids {
			_ = kill(pid, syscall.SIGKILL)
		}
		return len(pids) == 0
	})
	reports, _ := filepath.Glob(filepath.Join(w.scratch, "race.*"))
	for _, report := range reports {
		text, _ := os.ReadFile(report)
		w.t.Errorf("data race in a switchboard process:\n%s", text)
	}
	if os.Getenv(keepEnv) == "1" {
		w.t.Logf("rig: kept %s (home %s)", w.scratch, w.Home)
		return
	}
	if err := os.RemoveAll(w.scratch); err != nil {
		w.t.Logf("rig: %v", err)
	}
}

// sharedTemp is the TMPDIR of all worlds: Node and Pi keep compiled code there
// by content, which makes every start but the first faster.
func sharedTemp() string {
	return filepath.Join(os.TempDir(), fmt.Sprintf("switchboard-e2e-%d", os.Getuid()))
}

// Env returns a whole environment, with nothing of the caller's but PATH, for
// a process that plays the named script. Extra entries win over it.
func (w *World) Env(session string, extra ...string) []string {
	env := map[string]string{
		"PATH":                w.pins.NodeDir + string(os.PathListSeparator) + os.Getenv("PATH"),
		"HOME":                w.Home,
		"TMPDIR":              sharedTemp(),
		"TERM":                "xterm-256color",
		"COLORTERM":           "truecolor",
		"LANG":                "C.UTF-8",
		"PI_CODING_AGENT_DIR": w.AgentDir,
		"PI_OFFLINE":          "1",
		"GIT_CONFIG_NOSYSTEM": "1",
		sessionEnv:            session,
		worldEnv:              w.scratch,
		// The standard error of a sidecar may go nowhere; see close. By default
		// a program with the race detector stays a second longer at its end.
		"GORACE": "atexit_sleep_ms=50 log_path=" + filepath.Join(w.scratch, "race"),
	}
	for _, entry := range extra {
		k, v, _ := strings.Cut(entry, "=")
		env[k] = v
	}
	var list []string
	for _, k := range slices.Sorted(maps.Keys(env)) {
		list = append(list, k+"="+env[k])
	}
	return list
}

// Settings merges into Pi's settings.json, objects key by key.
func (w *World) Settings(changes map[string]any) {
	w.t.Helper()
	file := filepath.Join(w.AgentDir, "settings.json")
	settings := map[string]any{}
	raw, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(raw, &settings)
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		w.t.Fatalf("rig: read settings: %v", err)
	}
	merge(settings, changes)
	w.writeJSON(file, settings)
}

func merge(into, from map[string]any) {
	for k, v := range from {
		old, isObject := into[k].(map[string]any)
		if object, ok := v.(map[string]any); ok && isObject {
			merge(old, object)
			continue
		}
		into[k] = v
	}
}

// Repo makes a git repository beside [World.Dir], with a commit of a few
// files, and returns its folder.
func (w *World) Repo(name string) string {
	w.t.Helper()
	dir := filepath.Join(w.scratch, name)
	for file, text := range map[string]string{
		"a.txt":        "one\ntwo\nthree\n",
		"b.txt":        "four\nfive\nsix\n",
		"src/main.go":  "package main\n\nfunc main() {}\n",
		"src/other.go": "package main\n",
	} {
		w.mkdir(filepath.Dir(filepath.Join(dir, file)))
		w.write(filepath.Join(dir, file), text)
	}
	w.git(dir, "init", "-q", "-b", "main")
	w.git(dir, "config", "user.name", "Rig")
	w.git(dir, "config", "user.email", "rig@example.invalid")
	w.git(dir, "add", ".")
	w.git(dir, "commit", "-q", "-m", "start")
	return dir
}

func (w *World) git(dir string, args ...string) {
	w.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = w.Env("")
	if out, err := cmd.CombinedOutput(); err != nil {
		w.t.Fatalf("rig: git %s: %v\n%s", args[0], err, out)
	}
}

// Switchboard runs the switchboard program in [World.Dir] as the user would in
// a shell of their own, and returns what it printed and its exit code.
func (w *World) Switchboard(args ...string) (stdout, stderr string, code int) {
	w.t.Helper()
	return w.SwitchboardIn(w.Dir, "", args...)
}

// SwitchboardIn is [World.Switchboard] in another folder and with a standard
// input.
func (w *World) SwitchboardIn(dir, stdin string, args ...string) (stdout, stderr string, code int) {
	w.t.Helper()
	var out, errs bytes.Buffer
	ctx, cancel := context.WithTimeout(w.t.Context(), Watchdog)
	defer cancel()
	cmd := exec.CommandContext(ctx, Binary(w.t), args...)
	cmd.Dir = dir
	cmd.Env = w.Env("")
	cmd.Stdin = strings.NewReader(stdin)
	cmd.Stdout, cmd.Stderr = &out, &errs
	cmd.WaitDelay = 5 * time.Second
	err := cmd.Run()
	var exit *exec.ExitError
	if ctx.Err() != nil || err != nil && !errors.As(err, &exit) {
		w.t.Fatalf("rig: switchboard %s: %v", strings.Join(args, " "), err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// Processes returns the ids of all living processes of this world, whoever
// started them.
func (w *World) Processes() []int {
	mark := []byte("\x00" + worldEnv + "=" + w.scratch + "\x00")
	var pids []int
	for _, pid := range allPids() {
		// Unreadable means another user's, or just gone.
		env, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if bytes.Contains(append([]byte{0}, env...), mark) {
			pids = append(pids, pid)
		}
	}
	return pids
}

func (w *World) mkdir(dir string) {
	w.t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		w.t.Fatalf("rig: %v", err)
	}
}

func (w *World) write(file, text string) {
	w.t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		w.t.Fatalf("rig: %v", err)
	}
}

func (w *World) writeJSON(file string, v any) {
	w.t.Helper()
	raw, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		w.t.Fatalf("rig: %v", err)
	}
	w.write(file, string(raw)+"\n")
}

// Write writes a file below the world's working folder.
func (w *World) Write(name, text string) {
	w.t.Helper()
	if err := os.WriteFile(filepath.Join(w.Dir, name), []byte(text), 0o600); err != nil {
		w.t.Fatalf("rig: %v", err)
	}
}

// Shell runs a command line in the world's environment and working folder.
func (w *World) Shell(command string) (output string, err error) {
	cmd := exec.Command("sh", "-c", command)
	cmd.Dir, cmd.Env = w.Dir, w.Env("")
	out, err := cmd.CombinedOutput()
	return string(out), err
}
