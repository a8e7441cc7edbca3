package pihost

import (
	"os"

	"switchboard/internal/exchange"
	"switchboard/internal/proc"
)

// handlesOf says where Pi is seen: the sidecar has its environment (spec:
// touchtone, Tool reference; for the names of the variables, its readings).
func handlesOf(pid int) exchange.Handles {
	return exchange.Handles{
		Workspace:   os.Getenv("CMUX_WORKSPACE_ID"),
		Surface:     os.Getenv("CMUX_SURFACE_ID"),
		Panel:       os.Getenv("CMUX_PANEL_ID"),
		Pane:        os.Getenv("CMUX_PANE_ID"),
		TmuxPane:    os.Getenv("TMUX_PANE"),
		WeztermPane: os.Getenv("WEZTERM_PANE"),
		KittyWindow: os.Getenv("KITTY_WINDOW_ID"),
		ZellijPane:  os.Getenv("ZELLIJ_PANE_ID"),
		TTY:         proc.TTY(pid),
	}
}
