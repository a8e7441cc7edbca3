package cli

import (
	"strings"
	"time"

	"github.com/spf13/cobra"

	"switchboard/internal/agent"
	"switchboard/internal/delivery"
)

func (a *app) completionCommand() *cobra.Command {
	shells := []string{"bash", "zsh", "fish", "powershell"}
	return &cobra.Command{
		Use:       "completion " + strings.Join(shells, "|"),
		Short:     "Print the script that completes commands and locators in a shell.",
		Long:      "The one for bash needs the package bash-completion.",
		Example:   "source <(switchboard completion bash)",
		GroupID:   setupGroup,
		ValidArgs: shells,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) != 1 {
				return misuse(c, "name one shell: %s", strings.Join(shells, ", "))
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			switch root := c.Root(); args[0] {
			case "bash":
				return root.GenBashCompletionV2(a.stdout, true)
			case "zsh":
				return root.GenZshCompletion(a.stdout)
			case "fish":
				return root.GenFishCompletion(a.stdout, true)
			case "powershell":
				return root.GenPowerShellCompletionWithDesc(a.stdout)
			}
			return misuse(c, "there is no completion for %q, only for %s", args[0], strings.Join(shells, ", "))
		},
	}
}

// completeLocators offers the names and ids of live sessions.
func (a *app) completeLocators(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	_, roster, err := a.look()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var out []string
	for _, s := range roster {
		e := agent.BookEntry(s)
		what := delivery.Line(stateOf(s, e, time.Now())+", "+a.shortPath(e.Cwd), 100)
		for _, l := range []string{e.Name, e.ID} {
			// A name that is not one plain line can't be completed.
			if l != "" && l == delivery.Line(l, maxCell) && strings.HasPrefix(l, typed) {
				out = append(out, l+"\t"+what)
			}
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

// completeFirstLocator completes the first argument only: the second is text.
func (a *app) completeFirstLocator(c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return a.completeLocators(c, args, typed)
}
