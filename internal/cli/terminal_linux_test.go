package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"switchboard/internal/exchange"
	"switchboard/internal/exchange/dirstore"
	"switchboard/internal/proc"
)

// onTerminal runs the program with a terminal of the given width for its
// answer, and returns what that was sent.
func onTerminal(t *testing.T, width uint16, getenv func(string) string, args ...string) (screen string, code int) {
	t.Helper()
	master, slave, err := openTerminal()
	if err != nil {
		t.Skip(err) // a container without terminals
	}
	defer master.Close()
	if err := unix.IoctlSetWinsize(int(slave.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: width}); err != nil {
		t.Fatal(err)
	}
	read := make(chan string)
	go func() {
		data, _ := io.ReadAll(master) // ends with an error once the other end is closed
		read <- string(data)
	}()
	var errs bytes.Buffer
	code = Main(args, strings.NewReader(""), slave, &errs, getenv)
	slave.Close()
	return <-read, code
}

// openTerminal makes a terminal: what is typed into master, and shown there.
func openTerminal() (master, slave *os.File, err error) {
	if master, err = os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		return nil, nil, err
	}
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err = errors.Join(err, unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0)); err == nil {
		slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		master.Close()
	}
	return master, slave, err
}

// ownTerminal gives a command a terminal of its own to read from, as a
// person's shell has.
func ownTerminal(cmd *exec.Cmd) (hangUp func(), err error) {
	master, slave, err := openTerminal()
	if err != nil {
		return nil, err
	}
	cmd.Stdin, cmd.SysProcAttr = slave, &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0}
	return func() { slave.Close(); master.Close() }, nil
}

// inTerminal runs a command with a terminal of its own.
func inTerminal(args []string) error {
	cmd := exec.Command(args[0], args[1:]...)
	hangUp, err := ownTerminal(cmd)
	if err != nil {
		return err
	}
	defer hangUp()
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return cmd.Run()
}

// The demo's last call is a human's if a human watches.
func TestDemo_AtTheTerminal(t *testing.T) {
	t.Parallel()
	cmd, temp := demoProcess(t, "--fast")
	hangUp, err := ownTerminal(cmd)
	if err != nil {
		t.Skip(err)
	}
	defer hangUp()
	out, err := cmd.Output()
	if err != nil || !bytes.Contains(out, []byte("│ From a human at this machine")) {
		t.Errorf("demo: %v\n%s", err, out)
	}
	nothingLeft(t, temp)
}

func TestTerminal(t *testing.T) {
	dir := t.TempDir()
	env := map[string]string{"SWITCHBOARD_DIR": filepath.Join(dir, "root"), "HOME": dir, "TERM": "xterm"}
	getenv := func(name string) string { return env[name] }
	own(t, env["SWITCHBOARD_DIR"], exchange.Record{
		Name: "ann\n\x1b[2Jforged", State: "idle\x1b[31m", Model: "provider/large\x07", Agent: proc.Self(), Since: time.Now(),
		Cwd: filepath.Join(dir, "a", "folder", "so", "deep", "that", "nobody", "reads", "all", "of", "its", "name"),
	})

	screen, code := onTerminal(t, 100, getenv, "list")
	if code != done || !strings.Contains(screen, "\x1b[2mNAME") || !strings.Contains(screen, "its/name") || strings.Contains(screen, "~/a/folder/so/deep") {
		t.Errorf("list at 100 columns: code %d\n%s", code, screen)
	}
	hostile := func(screen string) bool {
		return strings.Contains(screen, "\x1b[2J") || strings.Contains(screen, "\x1b[31") || strings.Contains(screen, "\nforged") || strings.Contains(screen, "\x07")
	}
	if hostile(screen) {
		t.Errorf("what a session wrote reached the terminal: %q", screen)
	}
	if screen, _ := onTerminal(t, 100, getenv, "list", "--json"); hostile(screen) || !strings.Contains(screen, `"pid"`) {
		t.Errorf("what a session wrote reached the terminal: %q", screen)
	}
	env["NO_COLOR"] = "1"
	if screen, _ := onTerminal(t, 300, getenv, "list"); strings.Contains(screen, "\x1b") || !strings.Contains(screen, "~/a/folder/so/deep") {
		t.Errorf("list at 300 columns, without colours:\n%q", screen)
	}
}

// own keeps a session on the roster until the test ends.
func own(t *testing.T, root string, r exchange.Record) {
	t.Helper()
	store, err := dirstore.Open(root, "test")
	if err != nil {
		t.Fatal(err)
	}
	lease, err := store.Own(exchange.SessionKey{Host: exchange.PiHost, ID: "01a2b3c4-0000-7000-8000-0123456789ab"})
	if err != nil {
		t.Fatal(err)
	}
	if err := lease.Publish(r); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = lease.Release(false) })
}
