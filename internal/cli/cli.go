// Package cli is the command line: it turns arguments into calls of the
// packages below and their answers into text. Standard output is the answer,
// standard error everything else; only Main's caller exits.
package cli

import (
	"context"
	"io"
	"os"
	"os/signal"
	"runtime"

	"github.com/spf13/cobra"
)

// app is one run of the program, with all that it gets from outside.
type app struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	getenv         func(string) string
}

// Main runs the program and returns its exit code.
func Main(args []string, stdin io.Reader, stdout, stderr io.Writer, getenv func(string) string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the process, whatever it is stuck in
	a := &app{stdin: stdin, stdout: stdout, stderr: stderr, getenv: getenv}
	root := a.rootCommand()
	root.SetArgs(append([]string{}, args...)) // for nil cobra would take the process's own
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	return a.report(root.ExecuteContext(ctx))
}

// home is the user's home directory, "" when unknown.
func (a *app) home() string {
	if runtime.GOOS == "windows" {
		return a.getenv("USERPROFILE")
	}
	return a.getenv("HOME")
}

// The groups of the root's help.
const (
	peopleGroup = "people"
	setupGroup  = "setup"
)

func (a *app) rootCommand() *cobra.Command {
	var showVersion bool
	c := &cobra.Command{
		Use:     "switchboard COMMAND",
		Short:   "Coding agents on this machine find each other and talk to each other.",
		Example: `switchboard send reviewer "the parser is ready"`,
		RunE: func(c *cobra.Command, args []string) error {
			if showVersion {
				return a.printVersion(false)
			}
			return c.Help()
		},
	}
	c.Flags().BoolVar(&showVersion, "version", false, "print the version")
	c.AddGroup(
		&cobra.Group{ID: peopleGroup, Title: "People and scripts"},
		&cobra.Group{ID: setupGroup, Title: "Setup"},
	)
	c.AddCommand(a.commands()...)
	c.SetHelpCommand(a.helpCommand())
	c.SetHelpFunc(a.printHelp)
	c.CompletionOptions.DisableDefaultCmd = true
	strict(c)
	return c
}

// commands lists all there is below the root, in the order of its help. A new
// command joins here.
func (a *app) commands() []*cobra.Command {
	return []*cobra.Command{
		a.listCommand(),
		a.sendCommand(),
		a.broadcastCommand(),
		a.inboxCommand(),
		a.boardCommand(),
		a.logCommand(),
		a.whyCommand(),
		a.publishCommand(),
		a.stateCommand(),
		a.watchCommand(),
		a.waitCommand(),
		a.demoCommand(),
		a.doctorCommand(),
		a.piCommand(),
		a.completionCommand(),
		a.versionCommand(),
		a.attachCommand(),
		exitCodesTopic(),
	}
}

// strict makes a command and all below it report their misuse as usageErrors
// and print nothing by themselves. A command without arguments of its own
// takes none.
func strict(c *cobra.Command) {
	c.SilenceErrors, c.SilenceUsage = true, true
	c.DisableFlagsInUseLine = true
	c.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return misuse(c, "%s", err)
	})
	if c.Args == nil {
		c.Args = noArguments
	}
	for _, sub := range c.Commands() {
		strict(sub)
	}
}

// noArguments is for commands that take none; what was meant for a subcommand
// is answered with the nearest one.
func noArguments(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if !c.HasAvailableSubCommands() {
		return misuse(c, "%s takes no arguments, not %q", c.CommandPath(), args[0])
	}
	err := misuse(c, "there is no command %q", c.CommandPath()+" "+args[0])
	c.SuggestionsMinimumDistance = 2
	if near := c.SuggestionsFor(args[0]); len(near) > 0 {
		err.hint = c.CommandPath() + " " + near[0]
	}
	return err
}

// group runs a command that only holds others.
func group(c *cobra.Command, _ []string) error { return c.Help() }
