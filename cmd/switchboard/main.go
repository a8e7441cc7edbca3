// Command switchboard lets coding agents that share a machine know about each
// other and talk to each other.
package main

import (
	"os"

	"switchboard/internal/cli"
)

func main() {
	os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr, os.Getenv))
}
