package cli

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime"

	"github.com/spf13/cobra"

	"switchboard/internal/exchange"
	"switchboard/internal/guard"
	"switchboard/internal/pihost"
	"switchboard/internal/team"
)

// attachCommand is what the extension starts, one for each session.
func (a *app) attachCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "attach",
		Short:   "Serve one Pi session over standard input and output; the extension runs this.",
		Example: "switchboard attach",
		Hidden:  true,
		RunE:    func(c *cobra.Command, _ []string) error { return a.attach(c.Context()) },
	}
}

func (a *app) attach(ctx context.Context) error {
	if disable := a.getenv("SWITCHBOARD_DISABLE"); disable != "" && disable != "0" {
		return nil
	}
	if a.getenv("GOMAXPROCS") == "" {
		// It waits most of the time, and one of many does: with one processor
		// nothing has to be woken on another between a question and its answer.
		runtime.GOMAXPROCS(1)
	}
	log, closeLog := a.openLog()
	defer closeLog()
	var complain []string
	mode, ok := guard.ParseMode(a.getenv("PI_TELECOM_GUARD"))
	if !ok {
		complain = append(complain, fmt.Sprintf("PI_TELECOM_GUARD is %q, which is none of standard, strict, off; edits are guarded as in %s", a.getenv("PI_TELECOM_GUARD"), mode))
	}
	word := a.getenv("PI_TELECOM_CALLSIGN")
	if _, ok := team.Callsign(word); !ok && word != "" {
		complain = append(complain, fmt.Sprintf("PI_TELECOM_CALLSIGN is %q, which can't be a callsign: a letter, then letters, digits, - and _; the first free word is used", word))
		word = ""
	}
	off := a.getenv("PI_TELECOM_DISABLE")
	served := make(chan error, 1)
	go func() {
		served <- pihost.Serve(readCloser(pollable(a.stdin)), writeCloser(a.stdout), pihost.Options{
			Version: Version,
			Open:    func() (exchange.Exchange, error) { return a.openExchange() },
			Agents:  pihost.AgentDir(a.getenv, a.home()),
			Log:     log,

			Callsign: word,
			Guard:    mode,
			NoTeam:   off != "" && off != "0",
			Complain: complain,
		})
	}()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
		// Any death of a sidecar is survived; it need not say goodbye.
		return ctx.Err()
	}
}

// openExchange keeps a nil store from becoming an interface that isn't nil.
func (a *app) openExchange() (exchange.Exchange, error) {
	store, err := a.open()
	if err != nil {
		return nil, err
	}
	return store, nil
}

// openLog opens the log that SWITCHBOARD_LOG names. Without one, or when it
// can't be written, the session goes on and nothing is logged.
func (a *app) openLog() (log *slog.Logger, closeLog func()) {
	path := a.getenv("SWITCHBOARD_LOG")
	if path == "" {
		return slog.New(slog.DiscardHandler), func() {}
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		a.note("switchboard: SWITCHBOARD_LOG: %s", err)
		return slog.New(slog.DiscardHandler), func() {}
	}
	h := slog.NewJSONHandler(f, &slog.HandlerOptions{Level: slog.LevelDebug})
	return slog.New(h).With("pid", fmt.Sprint(os.Getpid())), func() { _ = f.Close() }
}

func readCloser(r io.Reader) io.ReadCloser {
	if rc, ok := r.(io.ReadCloser); ok {
		return rc
	}
	return io.NopCloser(r)
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

func writeCloser(w io.Writer) io.WriteCloser {
	if wc, ok := w.(io.WriteCloser); ok {
		return wc
	}
	return nopCloser{w}
}
