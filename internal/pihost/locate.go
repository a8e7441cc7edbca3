package pihost

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"time"

	"switchboard/internal/atomicfile"
	"switchboard/internal/shellquote"
)

// AgentDir is where Pi keeps a user's settings, sessions and extensions: as
// its environment variable says, else below the home directory.
func AgentDir(getenv func(string) string, home string) string {
	dir := getenv("PI_CODING_AGENT_DIR")
	switch {
	case dir == "":
		return filepath.Join(home, ".pi", "agent")
	case dir == "~":
		return home
	case strings.HasPrefix(dir, "~/"), runtime.GOOS == "windows" && strings.HasPrefix(dir, `~\`):
		return filepath.Join(home, dir[2:])
	}
	return dir
}

// OldestPi is the oldest version of Pi that the extension works with.
const OldestPi = "1.3"

// Pi is the Pi program of this machine.
type Pi struct {
	Path    string
	Version string // such as "1.6.0"
}

// Supported reports whether this Pi is not too old.
func (p Pi) Supported() bool { return !older(p.Version, OldestPi) }

// ErrNoPi means that there is no program called pi in PATH.
var ErrNoPi = errors.New("pi is not in PATH")

// answerIn is how long Pi may take to say its version. It takes under a
// second, except on a machine that is busy or waits for a network disk.
const answerIn = 10 * time.Second

var versionNumber = regexp.MustCompile(`\b(\d{1,6}(?:\.\d{1,6}){1,2})\b`)

// FindPi finds Pi in PATH and asks for its version. When it is there but
// doesn't tell, Path is set beside the error.
func FindPi(ctx context.Context) (Pi, error) {
	path, err := exec.LookPath("pi")
	if err != nil {
		return Pi{}, ErrNoPi
	}
	p := Pi{Path: path}
	ctx, cancel := context.WithTimeout(ctx, answerIn)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "--version")
	cmd.Env = append(os.Environ(), "PI_OFFLINE=1") // a question, no occasion to look for updates
	cmd.WaitDelay = time.Second                    // a child of its own may hold the pipe
	out, err := cmd.CombinedOutput()
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return p, fmt.Errorf("%s --version did not answer within %d seconds", path, answerIn/time.Second)
	}
	if err != nil {
		return p, fmt.Errorf("%s --version: %w", path, err)
	}
	p.Version = versionNumber.FindString(string(out))
	if p.Version == "" {
		return p, fmt.Errorf("%s --version names no version", path)
	}
	return p, nil
}

// older compares versions by their numbers.
func older(a, b string) bool {
	as, bs := strings.Split(a, "."), strings.Split(b, ".")
	for i := range max(len(as), len(bs)) {
		if x, y := part(as, i), part(bs, i); x != y {
			return x < y
		}
	}
	return false
}

func part(parts []string, i int) int {
	if i >= len(parts) {
		return 0
	}
	n, _ := strconv.Atoi(parts[i]) // what is no number counts as 0
	return n
}

// Clash is another extension in Pi's agent directory that may get into the way
// of ours: Pi lets only one extension have a tool's name.
type Clash struct {
	Where string // its path, or its source in settings.json
	Why   string
	Ours  bool   // it is this very extension, loaded another way
	Mend  string // a command to run
}

// packageName is the name in the package.json of our extension.
const packageName = "switchboard-pi"

// Clashes looks for other extensions that bring, or by their name seem to
// bring, what ours does. It reads and never runs them.
func Clashes(agentDir string) []Clash {
	var out []Clash
	dir := filepath.Join(agentDir, "extensions")
	entries, _ := os.ReadDir(dir) // none, or unreadable for Pi too
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if e.Name() == folder || strings.HasPrefix(e.Name(), stagePrefix) {
			continue
		}
		if c, ok := suspect(path, e.Name(), path); ok {
			c.Mend = "rm -r " + shellquote.Quote(path)
			out = append(out, c)
		}
	}
	for _, source := range sources(agentDir) {
		path := source
		if !filepath.IsAbs(path) {
			path = filepath.Join(agentDir, path)
		}
		if c, ok := suspect(source, source, path); ok {
			c.Mend = "pi remove " + shellquote.Quote(source)
			out = append(out, c)
		}
	}
	return out
}

// suspect judges one extension by its name, the name of its package and the
// tools that its source registers.
func suspect(where, name, path string) (Clash, bool) {
	pkg := packageOf(path)
	if pkg.Name == packageName {
		return Clash{Where: where, Why: "is this extension once more", Ours: true}, true
	}
	for _, word := range []string{"touchtone", "telecom", "beacon"} {
		if strings.Contains(strings.ToLower(name), word) || strings.Contains(strings.ToLower(pkg.Name), word) {
			return Clash{Where: where, Why: "is called after " + word}, true
		}
	}
	if tool := registered(path); tool != "" {
		return Clash{Where: where, Why: "registers a tool " + tool}, true
	}
	return Clash{}, false
}

// maxSource bounds what is read of another extension, in bytes.
const maxSource = 1 << 20

type packageFile struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// packageOf reads a folder's package.json; zero when there is none.
func packageOf(dir string) packageFile {
	var p packageFile
	if data, err := atomicfile.ReadCapped(filepath.Join(dir, "package.json"), maxSource); err == nil {
		_ = json.Unmarshal(data, &p) // a damaged one says nothing
	}
	return p
}

var registersTool = regexp.MustCompile("\\bname[\"']?\\s*:\\s*[\"'`](touchtone|telecom)[\"'`]")

// registered returns which of our tools the extension at path, a file or a
// folder with an index, seems to register.
func registered(path string) string {
	for _, p := range []string{path, filepath.Join(path, "index.ts"), filepath.Join(path, "index.js")} {
		if data, err := atomicfile.ReadCapped(p, maxSource); err == nil {
			if m := registersTool.FindSubmatch(data); m != nil {
				return string(m[1])
			}
		}
	}
	return ""
}

// sources lists the packages and extensions that Pi's settings name.
func sources(agentDir string) []string {
	data, err := atomicfile.ReadCapped(filepath.Join(agentDir, "settings.json"), maxSource)
	if errors.Is(err, atomicfile.ErrNotRegular) {
		data, err = os.ReadFile(filepath.Join(agentDir, "settings.json")) // a link, as dotfiles have it
	}
	var settings struct {
		Packages   []json.RawMessage `json:"packages"`
		Extensions []json.RawMessage `json:"extensions"`
	}
	if err != nil || json.Unmarshal(data, &settings) != nil {
		return nil
	}
	var out []string
	for _, raw := range append(settings.Packages, settings.Extensions...) {
		var s string
		var long struct {
			Source string `json:"source"`
		}
		if json.Unmarshal(raw, &s) != nil && json.Unmarshal(raw, &long) == nil {
			s = long.Source
		}
		if s != "" {
			out = append(out, s)
		}
	}
	return out
}

// Runnable reports why the program at path can't be run; nil if it can.
func Runnable(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s is not there", path)
	case err != nil:
		return err
	case !info.Mode().IsRegular(), runtime.GOOS != "windows" && info.Mode()&0o111 == 0:
		return fmt.Errorf("%s is not executable", path)
	}
	return nil
}
