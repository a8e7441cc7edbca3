package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// printHelp writes a command's help: a usage line, one sentence, one example,
// and what else there is to say in as few lines. Cobra's own would bring
// text/template to life, which keeps every method of the program.
func (a *app) printHelp(c *cobra.Command, _ []string) {
	w := c.OutOrStdout()
	if !c.Runnable() { // a topic
		fmt.Fprint(w, c.Long)
		return
	}
	usage := c.Use
	if c.HasParent() {
		usage = c.Parent().CommandPath() + " " + c.Use
	}
	fmt.Fprintf(w, "usage: %s\n\n%s\n", usage, c.Short)
	if c.Long != "" {
		fmt.Fprintf(w, "%s\n", c.Long)
	}
	fmt.Fprintf(w, "\nexample: %s\n", c.Example)
	printCommands(w, c)
	if flags := c.LocalFlags().FlagUsages(); flags != "" {
		fmt.Fprintf(w, "\nFlags\n%s", flags)
	}
	if !c.HasParent() {
		fmt.Fprintf(w, "\nMore: switchboard help COMMAND, switchboard help exit-codes\n")
	}
}

// printCommands lists what is below a command, by group.
func printCommands(w io.Writer, c *cobra.Command) {
	groups := c.Groups()
	if len(groups) == 0 {
		groups = []*cobra.Group{{Title: "Commands"}}
	}
	for _, g := range groups {
		first := true
		for _, sub := range c.Commands() {
			if !sub.IsAvailableCommand() || sub.GroupID != g.ID {
				continue
			}
			if first {
				fmt.Fprintf(w, "\n%s\n", g.Title)
				first = false
			}
			fmt.Fprintf(w, "  %-12s%s\n", sub.Name(), sub.Short)
		}
	}
}

// helpCommand is "switchboard help …". Cobra's own answers a topic that isn't
// there with success.
func (a *app) helpCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "help [COMMAND]",
		Short:   "Explain a command, or exit-codes.",
		Example: "switchboard help send",
		Hidden:  true,
		Args:    cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			found, rest, err := c.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return &usageError{problem: fmt.Sprintf("there is no help on %q", strings.Join(args, " ")), hint: "switchboard --help"}
			}
			found.InitDefaultHelpFlag()
			return found.Help()
		},
	}
}

// exitCodesTopic is "switchboard help exit-codes".
func exitCodesTopic() *cobra.Command {
	var text strings.Builder
	for _, c := range exitCodes {
		fmt.Fprintf(&text, "%4d  %s\n", c.code, c.meaning)
	}
	return &cobra.Command{Use: "exit-codes", Short: "What the exit codes mean.", Long: text.String(), Hidden: true}
}
