package cli

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// attached runs "switchboard attach", says hello for a session, hangs up once
// it has said until, and returns all that it said, and on standard error.
func attached(t *testing.T, until string, env ...string) (answer, complaints string) {
	t.Helper()
	cmd := exec.Command("switchboard", "attach")
	cmd.Env = append(os.Environ(), "PI_TOUCHTONE_HOME=", "PI_TELECOM_DIR=", "SWITCHBOARD_DISABLE=")
	cmd.Env = append(cmd.Env, env...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	watchdog := time.AfterFunc(30*time.Second, func() { _ = cmd.Process.Kill() })
	defer watchdog.Stop()
	fmt.Fprintf(in, `{"jsonrpc":"2.0","id":1,"method":"hello","params":{"protocol":1,"version":"0","session":{"id":"id-att"},"cwd":"/work","mode":"rpc","pid":%d,"idle":true}}`+"\n", os.Getpid())
	lines := bufio.NewScanner(out)
	for !strings.Contains(answer, until) && lines.Scan() {
		answer += lines.Text() + "\n"
	}
	fmt.Fprintln(in, `{"jsonrpc":"2.0","method":"bye","params":{"reason":"quit"}}`)
	in.Close()
	for lines.Scan() {
		answer += lines.Text() + "\n"
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("attach: %v\n%s", err, &stderr)
	}
	return answer, stderr.String()
}

func TestAttach(t *testing.T) {
	dir := t.TempDir()
	log := filepath.Join(dir, "log")
	answer, complaints := attached(t, `"id":1`, "SWITCHBOARD_DIR="+filepath.Join(dir, "root"), "SWITCHBOARD_LOG="+log)
	if !strings.Contains(answer, `"protocol":1`) || strings.Contains(answer, `"problem"`) || complaints != "" {
		t.Errorf("answer to hello = %s\nstderr: %s", answer, complaints)
	}
	text, err := os.ReadFile(log)
	if err != nil || !bytes.Contains(text, []byte(`"session":"id-att"`)) {
		t.Errorf("log = %s, %v", text, err)
	}
	if info, err := os.Stat(log); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("log is %v, %v; want mode 0600", info, err)
	}
}

// A log that can't be written does not stop a session, nor does a root that
// can't be used: the extension is told, and Pi goes on.
func TestAttachMishaps(t *testing.T) {
	dir := t.TempDir()
	answer, complaints := attached(t, `"id":1`, "SWITCHBOARD_DIR="+filepath.Join(dir, "root"), "SWITCHBOARD_LOG="+filepath.Join(dir, "no", "log"))
	if !strings.Contains(answer, `"protocol":1`) || !strings.Contains(complaints, "SWITCHBOARD_LOG") {
		t.Errorf("answer to hello = %s\nstderr: %s", answer, complaints)
	}
	answer, _ = attached(t, "not an absolute path", "SWITCHBOARD_DIR=relative")
	if !strings.Contains(answer, "not an absolute path") {
		t.Errorf("answer = %s, want the problem in it", answer)
	}
}
