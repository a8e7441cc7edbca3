package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"switchboard/e2e/rig"
)

// withRig runs f with a [testing.TB], which the rig of the end-to-end tests
// asks for: its cleanups run when f returns, and its failure is an error here.
func (l *lab) withRig(f func(t testing.TB)) error {
	testOnce.Do(func() {
		testing.Init()
		_ = flag.CommandLine.Parse(nil)
		_ = flag.Set("test.benchtime", "1x") // once, not until it has taken a second
	})
	// The rig looks for the program and the module where its tests would.
	if err := os.Setenv("SWITCHBOARD_E2E_BIN", l.programs.switchboard); err != nil {
		return err
	}
	var t *reporter
	run := func(f func(t testing.TB)) error {
		testing.Benchmark(func(b *testing.B) {
			t = &reporter{TB: b}
			f(t)
		})
		return t.err()
	}
	// Where the rig can't work at all, nothing is wrong with us.
	if err := run(func(t testing.TB) { rig.Setup(t) }); err != nil {
		return &skipped{strings.ReplaceAll(err.Error(), "\n", "; ")}
	}
	return run(f)
}

var testOnce sync.Once

// reporter keeps what a test would say: outside of "go test" it is not shown.
type reporter struct {
	testing.TB

	mu   sync.Mutex // guards said
	said []string
}

func (r *reporter) say(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.said = append(r.said, strings.TrimSpace(text))
}

func (r *reporter) err() error {
	if !r.Failed() && !r.Skipped() {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return errors.New(strings.Join(r.said, "\n"))
}

func (r *reporter) Log(args ...any)            { r.say(fmt.Sprintln(args...)) }
func (r *reporter) Logf(f string, args ...any) { r.say(fmt.Sprintf(f, args...)) }
func (r *reporter) Error(args ...any)          { r.Log(args...); r.Fail() }
func (r *reporter) Errorf(f string, args ...any) {
	r.Logf(f, args...)
	r.Fail()
}
func (r *reporter) Fatal(args ...any) { r.Log(args...); r.FailNow() }
func (r *reporter) Fatalf(f string, args ...any) {
	r.Logf(f, args...)
	r.FailNow()
}
func (r *reporter) Skip(args ...any) { r.Log(args...); r.SkipNow() }
func (r *reporter) Skipf(f string, args ...any) {
	r.Logf(f, args...)
	r.SkipNow()
}
