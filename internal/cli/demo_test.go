package cli

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"switchboard/internal/delivery"
	"switchboard/internal/repo"
)

// beSwitchboard makes the test program act as switchboard, and all that it
// starts by its own path.
const beSwitchboard = "TEST_BE_SWITCHBOARD"

func init() {
	if os.Getenv(beSwitchboard) != "" {
		os.Exit(Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr, os.Getenv))
	}
}

// demoProcess is a demo in a folder for temporary files of its own.
func demoProcess(t *testing.T, args ...string) (cmd *exec.Cmd, temp string) {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// Not t.TempDir: long paths would be wrapped, and have their sockets elsewhere.
	if temp, err = os.MkdirTemp("", "t"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(temp) })
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	cmd = exec.CommandContext(ctx, program, append([]string{"demo"}, args...)...)
	// The second line is what a Pi session's shell has; the demo is none of it.
	cmd.Env = append(os.Environ(), beSwitchboard+"=1", "TMPDIR="+temp, "TMP="+temp, "TEMP="+temp, "HOME="+temp, "XDG_RUNTIME_DIR="+temp,
		"PI_CODING_AGENT=true", "PI_SESSION_ID=somebody", "SWITCHBOARD_DISABLE=1",
		// The race detector would have each process linger for a second.
		"GORACE="+os.Getenv("GORACE")+" atexit_sleep_ms=10")
	return cmd, temp
}

// nothingLeft checks that a demo left no file and no process.
func nothingLeft(t *testing.T, temp string) {
	t.Helper()
	err := filepath.WalkDir(temp, func(path string, e os.DirEntry, err error) error {
		// Folders for sockets with long paths are shared and stay.
		if err == nil && (!e.IsDir() || strings.HasPrefix(e.Name(), "sb-")) {
			t.Errorf("left behind: %s", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	environs, _ := filepath.Glob("/proc/[0-9]*/environ") // none where there is no such folder
	for _, path := range environs {
		if env, err := os.ReadFile(path); err == nil && bytes.Contains(env, []byte("TMPDIR="+temp+"\x00")) {
			t.Errorf("still running: %s", filepath.Dir(path))
		}
	}
}

func TestDemo(t *testing.T) {
	t.Parallel()
	cmd, temp := demoProcess(t, "--fast")
	detach(cmd) // from a terminal that these tests may have
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		t.Fatalf("demo: %v\n%s%s", err, out, exit.Stderr)
	}
	nothingLeft(t, temp)
	rest := string(out)
	for _, want := range []string{
		"\n1  ", `planner → touchtone {"action":"list"}`, "│ 📒 Phonebook: 3 live sessions", "│ • builder [idle]",
		"\n2  ", "they are\n   │ idle", "│ 📞 One call came in", "│ From \"planner\", session ", "│ > Please add the cart API.", "Settled: it is in builder's",
		"\n3  ", "2 calls wait for builder (from ", "│ 📞 2 calls came in", "│ > An unknown cart must be a 404.", "Settled: both",
		"\n4  ", "1 call waits for tester (from builder)", "│ > It is a 404 now.", "Settled: it is in tester's",
		"\n5  ", "│ 📡 Telecom: you are bravo.", "│ 📡 alpha changed a file you work with:", "│     +export async function login(user) {", "│ Not done: alpha changed login.ts", "with both\n   changes.",
		"\n6  ", `│ Not sent: no live session matches "deployer".`, "│ Example of a call that works: touchtone",
		"\n7  ", `$ switchboard send planner "`, `│ From "a program in `, "│ > Well done.", "without a terminal", "Settled: it is in planner's",
		"\n8  ", "0 sessions", "0 messages", "is removed.", "\n6 sidecars, 5 calls,",
	} {
		_, after, ok := strings.Cut(rest, want)
		if !ok {
			t.Errorf("no %q (in this place) in:\n%s", want, out)
			break
		}
		rest = after
	}
	if bytes.Contains(out, []byte("\x1b")) {
		t.Error("colours in a pipe")
	}
	for line := range strings.Lines(string(out)) {
		if w := cells(strings.TrimSuffix(line, "\n")); w > 80 && !strings.Contains(line, temp) {
			t.Errorf("%d columns: %s", w, line)
		}
	}
}

// What a reader of the demo may not see: it hung up, or pressed Ctrl-C.
func TestDemo_Interrupted(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no signals")
	}
	interrupt := func(cmd *exec.Cmd, _ io.Closer) error { return cmd.Process.Signal(os.Interrupt) }
	hangUp := func(_ *exec.Cmd, out io.Closer) error { return out.Close() }
	for name, c := range map[string]struct {
		at   string
		stop func(*exec.Cmd, io.Closer) error
		code int
	}{
		"at the start":        {"^Coding agents", interrupt, interrupted},
		"while coming up":     {"^   planner  in", interrupt, interrupted},
		"in a tool":           {"^   Its tool runs", interrupt, interrupted},
		"without a sidecar":   {"^   kill -9", interrupt, interrupted},
		"its reader hangs up": {"^2  ", hangUp, failed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd, temp := demoProcess(t)
			var errs bytes.Buffer
			cmd.Stderr = &errs
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			at := regexp.MustCompile(c.at)
			lines := bufio.NewScanner(out)
			for lines.Scan() && !at.MatchString(lines.Text()) {
			}
			if err := c.stop(cmd, out); err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, out)
			var exit *exec.ExitError
			if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != c.code || errs.Len() > 0 {
				t.Errorf("demo: %v, want exit code %d\n%s", err, c.code, &errs)
			}
			nothingLeft(t, temp)
		})
	}
}

func TestDemo_FailsAloud(t *testing.T) {
	d := &demo{ctx: t.Context(), tell: &account{out: io.Discard, width: 80, paint: func(_ style, s string) string { return s }}, fast: true, program: filepath.Join(t.TempDir(), "missing")}
	err := d.play()
	if err == nil || !strings.Contains(err.Error(), "step 1 (Three sessions come up): ") || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("play without a program = %v", err)
	}
	if err := d.cleanUp(); err != nil {
		t.Error(err)
	}
}

func TestMakeRepository(t *testing.T) {
	root := filepath.Join(t.TempDir(), "shop")
	if err := makeRepository(root, "api"); err != nil {
		t.Fatal(err)
	}
	if c, err := repo.Find(filepath.Join(root, "api")); err != nil || c.Branch != "main" || c.CommonDir == "" {
		t.Errorf("repo.Find = %+v, %v", c, err)
	}
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("no git to ask")
	}
	if out, err := exec.Command("git", "-C", root, "-c", "safe.directory=*", "status").CombinedOutput(); err != nil {
		t.Errorf("git status: %v\n%s", err, out)
	}
}

func TestWrap(t *testing.T) {
	for _, c := range []struct {
		line  string
		width int
		want  string
	}{
		{"", 10, ""},
		{"short", 10, "short"},
		{"one two three", 7, "one two|three"},
		{"one two three", 8, "one two|three"},
		{"> one two three", 9, "> one two|  three"},
		{"  id a  pid b", 9, "  id a|  pid b"},
		{"abcdefghij", 4, "abcd|efgh|ij"},
		{"📞📞📞", 4, "📞📞|📞"},
		{"📞📞", 1, "📞📞"},
		{"a abcdefgh", 4, "a|abcd|efgh"},
	} {
		if got := strings.Join(wrap(c.line, c.width), "|"); strings.ReplaceAll(got, " |", "|") != c.want {
			t.Errorf("wrap(%q, %d) = %q, want %q", c.line, c.width, got, c.want)
		}
	}
}

// A message of another session must not paint the human's screen.
func TestAccount_IsPlain(t *testing.T) {
	var out strings.Builder
	tell := &account{out: &out, width: 80, paint: func(_ style, s string) string { return s }}
	tell.quote("a\x1b[31mb\r\nc")
	if got, want := out.String(), "   │ ab\n   │ c\n"; got != want {
		t.Errorf("quote = %q, want %q", got, want)
	}
	if delivery.CleanText("\x1b") != "" {
		t.Error("CleanText lets escapes through")
	}
}
