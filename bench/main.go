// Command bench measures Switchboard's budget: each figure beside the floor of
// this machine, measured in the same run and in turns with it, and what the
// design allows. A missed budget is printed and fails nothing; only a row that
// could not be measured does.
//
//	go run ./bench [-quick] [-run REGEXP]
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// machine says where the figures come from, and whether it was busy: floors
// take part of that out, but not all.
func machine() string {
	s := fmt.Sprintf("%s/%s, %d CPUs", runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
	if load := loadAverage(); load != "" {
		s += ", load " + load
	}
	return s
}

// loadAverage is that of the last minute, where the system has it in a file.
func loadAverage() string {
	all, _ := os.ReadFile("/proc/loadavg")
	first, _, _ := strings.Cut(string(all), " ")
	return first
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	quick := flags.Bool("quick", false, "few rounds: shows that the benchmarks run, not what they say")
	pattern := flags.String("run", "", "only the rows whose name matches this `regexp`")
	bin := flags.String("bin", os.Getenv("SWITCHBOARD_E2E_BIN"), "the switchboard `program`; built from this checkout if empty")
	list := flags.Bool("list", false, "list the rows")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	match, err := regexp.Compile(*pattern)
	if err != nil {
		fmt.Fprintf(stderr, "bench: -run: %v\n", err)
		return 2
	}
	if *list {
		for _, r := range rows {
			fmt.Fprintln(stdout, r.name)
		}
		return 0
	}
	dir, err := os.MkdirTemp("", "sbb") // short: it holds sockets
	if err != nil {
		fmt.Fprintf(stderr, "bench: %v\n", err)
		return 1
	}
	defer func() {
		if err := os.RemoveAll(dir); err != nil {
			fmt.Fprintf(stderr, "bench: %v\n", err)
		}
	}()
	programs, err := build(ctx, dir, *bin)
	if err != nil {
		fmt.Fprintf(stderr, "bench: %v\n", err)
		return 1
	}
	l := &lab{ctx: ctx, dir: dir, programs: programs, quick: *quick, log: stderr}

	code := 0
	report := table{title: machine()}
	for _, r := range rows {
		if !match.MatchString(r.name) || ctx.Err() != nil {
			continue
		}
		fmt.Fprintf(stderr, "%s … ", r.name)
		began := time.Now()
		figures, err := r.measure(l)
		var skip *skipped
		switch {
		case ctx.Err() != nil:
			report.note(r.name, "interrupted") // what failed then, failed for that
		case errors.As(err, &skip):
			report.note(r.name, skip.Error())
		case err != nil:
			report.note(r.name, "failed: "+err.Error())
			code = 1
		default:
			report.add(figures...)
		}
		fmt.Fprintf(stderr, "%.1f s\n", time.Since(began).Seconds())
	}
	if load := loadAverage(); load != "" {
		report.title += " to " + load
	}
	report.print(stdout)
	if ctx.Err() != nil {
		return 1
	}
	return code
}
