package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// Version of Switchboard. Release builds set it:
// -ldflags "-X switchboard/internal/cli.Version=1.2.3".
var Version = "0.1.0-dev"

// versionInfo is the version as scripts read it.
type versionInfo struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"` // of the sources, when they were built from a checkout
	Modified bool   `json:"modified,omitempty"` // that checkout had changes
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func thisVersion() versionInfo {
	v := versionInfo{Version: Version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Revision = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	return v
}

func (v versionInfo) String() string {
	s := "switchboard " + v.Version
	if v.Revision != "" {
		s += " " + v.Revision[:min(len(v.Revision), 12)]
	}
	if v.Modified {
		s += " (modified)"
	}
	return fmt.Sprintf("%s %s %s", s, v.Go, v.Platform)
}

func (a *app) versionCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:     "version [--json]",
		Short:   "Print the version of this program.",
		Example: "switchboard version",
		GroupID: setupGroup,
		RunE:    func(*cobra.Command, []string) error { return a.printVersion(asJSON) },
	}
	jsonFlag(c, &asJSON)
	return c
}

func (a *app) printVersion(asJSON bool) error {
	v := thisVersion()
	if asJSON {
		return a.printJSON(v)
	}
	_, err := fmt.Fprintln(a.stdout, v)
	return err
}
