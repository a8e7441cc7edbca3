// Package internal_test checks the shape of the whole: who may import whom.
package internal_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// layers, from the bottom. A package imports only from layers below its own,
// or from its own where the row says so.
var layers = [][]string{
	{"atomicfile", "filelock", "proc", "bell", "repo", "shellquote", "extension"},
	{"lifecycle", "delivery", "phonebook"},
	{"team"},
	{"guard", "brief"},
	{"exchange", "exchange/memstore", "exchange/dirstore", "exchange/exchangetest"},
	{"agent"},
	{"sidecar"},
	{"beacon"},
	{"pihost"},
	{"cli"},
	{"cmd/switchboard"},
}

// beside lists the imports within a layer: a store knows what it stores.
var beside = map[string]string{
	"exchange/memstore":     "exchange",
	"exchange/dirstore":     "exchange",
	"exchange/exchangetest": "exchange",
}

// pure packages touch nothing: no files, sockets, clocks or goroutines.
var pure = []string{"lifecycle", "delivery", "phonebook", "team", "guard", "brief", "agent"}

// impure is what they may not import.
var impure = []string{"os", "net", "io/fs", "path/filepath", "os/exec", "os/signal", "syscall", "sync", "math/rand", "math/rand/v2", "crypto/rand"}

// homes says where each outside library lives.
var homes = map[string][]string{
	"github.com/creachadair/jrpc2":     {"pihost", "cli"}, // cli: the demo plays the extension's part
	"github.com/oklog/ulid":            {"exchange", "exchange/dirstore"},
	"github.com/spf13/cobra":           {"cli"},
	"github.com/spf13/pflag":           {"cli"},
	"golang.org/x/term":                {"cli"},
	"pgregory.net/rapid":               {"exchange/exchangetest"},
	"github.com/aymanbagabas/go-udiff": {"guard"},
	"golang.org/x/sys":                 {"atomicfile", "filelock", "proc", "bell", "repo", "beacon"},
}

func TestImports(t *testing.T) {
	level := make(map[string]int)
	for i, layer := range layers {
		for _, pkg := range layer {
			level[pkg] = i
		}
	}
	seen := make(map[string]bool)
	walk(t, func(pkg, file string, imports []string, source string) {
		mine, ok := level[pkg]
		if !ok {
			t.Errorf("%s: package %s has no layer; give it one here", file, pkg)
			return
		}
		seen[pkg] = true
		for _, imp := range imports {
			if own, ok := ours(imp); ok {
				theirs, known := level[own]
				if !known || theirs > mine || theirs == mine && beside[pkg] != own {
					t.Errorf("%s: %s (layer %d) imports %s (layer %d)", file, pkg, mine, own, theirs)
				}
			}
			for lib, where := range homes {
				if strings.HasPrefix(imp, lib) && !slices.Contains(where, pkg) {
					t.Errorf("%s: %s lives in %v", file, lib, where)
				}
			}
			if first, _, _ := strings.Cut(imp, "/"); strings.Contains(first, ".") && !hasHome(imp) {
				t.Errorf("%s: %s has no home; give it one here", file, imp)
			}
			if slices.Contains(pure, pkg) && slices.Contains(impure, imp) {
				t.Errorf("%s: %s is pure and imports %s", file, pkg, imp)
			}
		}
		if slices.Contains(pure, pkg) && (strings.Contains(source, "time.Now(") || strings.Contains(source, "time.Since(") || strings.Contains(source, "\tgo ")) {
			t.Errorf("%s: %s is pure and looks at the clock or starts a goroutine", file, pkg)
		}
	})
	for pkg := range level {
		if !seen[pkg] {
			t.Errorf("package %s has a layer and no files", pkg)
		}
	}
}

func hasHome(imp string) bool {
	for lib := range homes {
		if strings.HasPrefix(imp, lib) {
			return true
		}
	}
	return false
}

// ours names a package of this module the way layers does.
func ours(imp string) (string, bool) {
	rest, ok := strings.CutPrefix(imp, "switchboard/")
	return strings.TrimPrefix(rest, "internal/"), ok
}

// walk visits the product's Go files.
func walk(t *testing.T, visit func(pkg, file string, imports []string, source string)) {
	t.Helper()
	for _, root := range []string{"../internal", "../cmd", "../extension"} {
		err := filepath.WalkDir(root, func(file string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
				return err
			}
			parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
			if err != nil {
				return err
			}
			var imports []string
			for _, spec := range parsed.Imports {
				imp, err := strconv.Unquote(spec.Path.Value)
				if err != nil {
					return err
				}
				imports = append(imports, imp)
			}
			pkg := strings.TrimPrefix(path.Dir(filepath.ToSlash(file)), "../")
			source, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			visit(strings.TrimPrefix(pkg, "internal/"), file, imports, string(source))
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
