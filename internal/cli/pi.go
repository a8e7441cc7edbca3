package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"switchboard/extension"
	"switchboard/internal/pihost"
	"switchboard/internal/shellquote"
)

func (a *app) piCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "pi install|uninstall",
		Short:   "Put the extension into Pi, or take it out.",
		Example: "switchboard pi install",
		GroupID: setupGroup,
		RunE:    group,
	}
	c.AddCommand(a.piInstallCommand(), a.piUninstallCommand())
	return c
}

// agentDirFlag names Pi's agent directory when it is not the usual one.
func agentDirFlag(c *cobra.Command, to *string) {
	c.Flags().StringVar(to, "agent-dir", "", "Pi's agent `DIR` (default: $PI_CODING_AGENT_DIR, else ~/.pi/agent)")
	_ = c.MarkFlagDirname("agent-dir") // fails only for a flag that isn't there
}

// extension is ours, for the agent directory that was named or is usual.
func (a *app) extension(agentDir string) (pihost.Extension, error) {
	if agentDir == "" {
		if a.home() == "" && a.getenv("PI_CODING_AGENT_DIR") == "" {
			return pihost.Extension{}, &usageError{problem: "neither HOME nor PI_CODING_AGENT_DIR says where Pi's agent directory is", hint: "switchboard pi install --agent-dir DIR"}
		}
		agentDir = pihost.AgentDir(a.getenv, a.home())
	}
	dir, err := filepath.Abs(agentDir)
	return pihost.Extension{Files: extension.Files(), AgentDir: dir}, err
}

func (a *app) piInstallCommand() *cobra.Command {
	var agentDir string
	c := &cobra.Command{
		Use:     "install [--agent-dir DIR]",
		Short:   "Put the extension into Pi's agent directory.",
		Example: "switchboard pi install",
		RunE:    func(*cobra.Command, []string) error { return a.piInstall(agentDir) },
	}
	agentDirFlag(c, &agentDir)
	return c
}

func (a *app) piInstall(agentDir string) error {
	ext, err := a.extension(agentDir)
	if err != nil {
		return err
	}
	binary, err := thisBinary()
	if err != nil {
		return err
	}
	if temporary(binary) {
		return &usageError{problem: binary + " is gone once this ends, and the extension would look for it there", hint: "make install"}
	}
	for _, c := range pihost.Clashes(ext.AgentDir) {
		a.note("%s %s: where both are loaded, one of them stands back; to remove it: %s", c.Where, c.Why, c.Mend)
	}
	changed, err := ext.Install(binary, Version)
	if err != nil {
		return fmt.Errorf("install the extension: %w", err)
	}
	if !changed {
		_, err := fmt.Fprintf(a.stdout, "already installed in %s\n", ext.Dir())
		return err
	}
	a.note("Sessions that are open take it up with /reload.")
	_, err = fmt.Fprintf(a.stdout, "installed in %s\n", ext.Dir())
	return err
}

func (a *app) piUninstallCommand() *cobra.Command {
	var agentDir string
	c := &cobra.Command{
		Use:     "uninstall [--agent-dir DIR]",
		Short:   "Take the extension out of Pi's agent directory.",
		Example: "switchboard pi uninstall",
		RunE:    func(*cobra.Command, []string) error { return a.piUninstall(agentDir) },
	}
	agentDirFlag(c, &agentDir)
	return c
}

func (a *app) piUninstall(agentDir string) error {
	ext, err := a.extension(agentDir)
	if err != nil {
		return err
	}
	removed, left, err := ext.Uninstall()
	if err != nil {
		return fmt.Errorf("uninstall the extension: %w", err)
	}
	if len(left) > 0 {
		a.note("Left in %s, since install did not write it: %s", ext.Dir(), strings.Join(left, ", "))
	}
	if !removed {
		_, err := fmt.Fprintf(a.stdout, "not installed in %s\n", ext.Dir())
		return err
	}
	a.note("Sessions that are open let go of it with /reload.")
	_, err = fmt.Fprintf(a.stdout, "uninstalled from %s\n", ext.Dir())
	return err
}

// thisBinary is the path by which this program will be found again: the one it
// was called by, since package managers keep that and change what it links to.
func thisBinary() (string, error) {
	exe, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find this program: %w", err)
	}
	called, err := exec.LookPath(os.Args[0])
	if err != nil {
		return exe, nil
	}
	if called, err = filepath.Abs(called); err != nil || !sameFile(called, exe) {
		return exe, nil
	}
	return called, nil
}

// installHint is the command that puts the extension into Pi from here.
func (a *app) installHint() string {
	binary, err := thisBinary()
	switch {
	case err == nil && temporary(binary):
		return "make install"
	case err == nil:
		if inPath, err := exec.LookPath("switchboard"); err == nil && sameFile(inPath, binary) {
			return installCommand
		}
	}
	return shellquote.Quote(os.Args[0]) + " pi install"
}

func sameFile(a, b string) bool {
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return errX == nil && errY == nil && os.SameFile(x, y)
}

// temporary reports whether the path is of a program that go run made.
func temporary(path string) bool {
	return strings.Contains(filepath.ToSlash(path), "/go-build")
}
