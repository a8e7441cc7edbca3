package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// programs are the paths of what is measured and of the floors beneath it.
type programs struct {
	switchboard          string
	empty, echo, courier string
	beam                 string
	module               string // the folder of go.mod
}

// build builds them into dir. All are built the same way: a floor of other
// flags would be no floor.
func build(ctx context.Context, dir, switchboard string) (programs, error) {
	gomod, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return programs{}, fmt.Errorf("find the module: %w", err)
	}
	p := programs{module: filepath.Dir(strings.TrimSpace(string(gomod)))}
	if _, err := os.Stat(filepath.Join(p.module, "bench", "floor")); err != nil {
		return programs{}, fmt.Errorf("run it inside the checkout of switchboard: %w", err)
	}
	for _, b := range []struct {
		path *string
		pkg  string
	}{
		{&p.switchboard, "./cmd/switchboard"},
		{&p.empty, "./bench/floor/empty"},
		{&p.echo, "./bench/floor/echo"},
		{&p.courier, "./bench/floor/courier"},
		{&p.beam, "./bench/floor/beam"},
	} {
		if b.path == &p.switchboard && switchboard != "" {
			if p.switchboard, err = filepath.Abs(switchboard); err != nil {
				return programs{}, err
			}
			continue
		}
		*b.path = filepath.Join(dir, filepath.Base(b.pkg))
		if runtime.GOOS == "windows" {
			*b.path += ".exe"
		}
		cmd := exec.CommandContext(ctx, "go", "build", "-o", *b.path, b.pkg)
		cmd.Dir = p.module
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0") // as "make build" has it
		if out, err := cmd.CombinedOutput(); err != nil {
			return programs{}, fmt.Errorf("build %s: %w\n%s", b.pkg, err, out)
		}
	}
	return p, nil
}
