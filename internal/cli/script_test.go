package cli

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"switchboard/internal/exchange"
	"switchboard/internal/exchange/dirstore"
	"switchboard/internal/proc"
)

// raceOptions keep the race detector from resting a second at the end of every
// process.
const raceOptions = "atexit_sleep_ms=0"

func TestMain(m *testing.M) {
	os.Setenv("GORACE", raceOptions)
	testscript.Main(m, map[string]func(){
		"switchboard": func() { os.Exit(Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr, os.Getenv)) },
		"session":     func() { os.Exit(exitOf(runSession(os.Args[1:]))) },
		"beacon":      func() { os.Exit(exitOf(runBeacon(os.Args[1:]))) },
		"terminal":    func() { os.Exit(exitOf(inTerminal(os.Args[1:]))) },
		"inbox":       func() { os.Exit(exitOf(showInbox(os.Args[1]))) },
	})
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "script"),
		Setup: func(env *testscript.Env) error {
			bin, err := exec.LookPath("switchboard")
			env.Setenv("BIN", filepath.Dir(bin))
			env.Setenv("GORACE", raceOptions)
			env.Setenv("HOME", filepath.Join(env.WorkDir, "home"))
			env.Setenv("USERPROFILE", filepath.Join(env.WorkDir, "home"))
			return errors.Join(err, os.Mkdir(filepath.Join(env.WorkDir, "home"), 0o700))
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"code": codeCommand,
			"live": liveCommand,
			"lit":  litCommand,
			"saw":  sawCommand,
			"mode": modeCommand,
			"age":  ageCommand,
		},
	})
}

// code N program args… runs a program that must exit with N.
func codeCommand(ts *testscript.TestScript, neg bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	var exit *exec.ExitError
	got := 0
	if errors.As(err, &exit) {
		got = exit.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if (got == want) == neg {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// live LOCATOR… waits until each locator finds a session.
func liveCommand(ts *testscript.TestScript, _ bool, args []string) {
	root, err := dirstore.Root(ts.Getenv, ts.Getenv("HOME"))
	ts.Check(err)
	deadline := time.Now().Add(20 * time.Second)
	for {
		var unmatched []string
		if store, err := dirstore.Open(root, "test"); err == nil {
			sessions, err := store.Sessions()
			ts.Check(err)
			book := bookOf(sessions)
			_, unmatched = book.Filter(book.Look(args))
		}
		if len(unmatched) == 0 {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("not live after 20 s: %q", unmatched)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// mode FILE OCTAL checks a file's mode.
func modeCommand(ts *testscript.TestScript, _ bool, args []string) {
	info, err := os.Stat(ts.MkAbs(args[0]))
	ts.Check(err)
	if got := fmt.Sprintf("%04o", info.Mode().Perm()); got != args[1] {
		ts.Fatalf("mode of %s = %s, want %s", args[0], got, args[1])
	}
}

// age FILE makes a file an hour old.
func ageCommand(ts *testscript.TestScript, _ bool, args []string) {
	then := time.Now().Add(-time.Hour)
	ts.Check(os.Chtimes(ts.MkAbs(args[0]), then, then))
}

func exitOf(err error) int {
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		return exit.ExitCode()
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func openFromEnvironment() (*dirstore.Store, error) {
	root, err := dirstore.Root(os.Getenv, os.Getenv("HOME"))
	if err != nil {
		return nil, err
	}
	return dirstore.Open(root, "test")
}

// runSession owns a session until it is interrupted, or while the command runs
// that follows its flags: that one has it for a parent.
func runSession(args []string) error {
	interrupt := make(chan os.Signal, 1)
	signal.Notify(interrupt, os.Interrupt, syscall.SIGTERM)
	f := flag.NewFlagSet("session", flag.ExitOnError)
	r := exchange.Record{Incarnation: exchange.NewID(time.Now()), Since: time.Now().Add(-5 * time.Minute), Joined: time.Now(), Agent: proc.Self()}
	id := f.String("id", "", "")
	f.StringVar(&r.Name, "name", "", "")
	f.StringVar(&r.Cwd, "cwd", "/work/project", "")
	f.StringVar(&r.Model, "model", "lab/scripted", "")
	f.StringVar(&r.State, "state", "idle", "")
	f.BoolVar(&r.Wakes, "wakes", true, "")
	dies := f.Bool("dies", false, "leave everything as a killed process would")
	_ = f.Parse(args)
	store, err := openFromEnvironment()
	if err != nil {
		return err
	}
	lease, err := store.Own(exchange.SessionKey{Host: exchange.PiHost, ID: *id})
	if err != nil {
		return err
	}
	if err := lease.Publish(r); err != nil {
		return err
	}
	if *dies {
		return nil
	}
	defer lease.Release(false)
	if f.NArg() == 0 {
		<-interrupt
		return nil
	}
	cmd := exec.Command(f.Arg(0), f.Args()[1:]...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return cmd.Run()
}

// showInbox prints what waits for a session.
func showInbox(id string) error {
	store, err := openFromEnvironment()
	if err != nil {
		return err
	}
	waiting, err := store.Waiting(exchange.SessionKey{Host: exchange.PiHost, ID: id})
	for _, m := range waiting {
		fmt.Printf("human=%v session=%q name=%q cwd=%q text=%q\n", m.From.Human, m.From.Session, m.From.Name, m.From.Cwd, m.Text)
	}
	return err
}
