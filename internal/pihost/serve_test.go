package pihost

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"switchboard/internal/exchange"
	"switchboard/internal/exchange/memstore"
)

// What is asked right behind hello is answered after it: side by side, it would
// be let through as if there were no exchange.
func TestNothingOvertakesHello(t *testing.T) {
	in, say := io.Pipe()
	hear, out := io.Pipe()
	store := memstore.New(time.Now)
	var opened atomic.Bool
	served := make(chan error, 1)
	go func() {
		served <- Serve(in, out, Options{
			Version: "test", Agents: t.TempDir(), Log: slog.New(slog.DiscardHandler),
			Open: func() (exchange.Exchange, error) {
				time.Sleep(200 * time.Millisecond) // a slow disk
				opened.Store(true)
				return store, nil
			},
		})
	}()
	go func() {
		fmt.Fprintf(say, `{"jsonrpc":"2.0","id":1,"method":"hello","params":{"protocol":%d,"session":{"id":"s"},"cwd":%q,"mode":"rpc","pid":%d,"idle":true}}`+"\n",
			Protocol, t.TempDir(), os.Getpid())
		fmt.Fprintf(say, `{"jsonrpc":"2.0","id":2,"method":"toolCall","params":{"tool":"write","callId":"c","path":"x","waitMs":5000,"sentAt":%d}}`+"\n", time.Now().UnixMilli())
	}()
	lines := bufio.NewScanner(hear)
	for answered := 0; answered < 2 && lines.Scan(); {
		if strings.Contains(lines.Text(), `"method"`) {
			continue
		}
		answered++
		if !opened.Load() {
			t.Errorf("answered before there was an exchange: %s", lines.Text())
		}
	}
	go func() { _, _ = io.Copy(io.Discard, hear) }()
	say.Close()
	if err := <-served; err != nil {
		t.Error(err)
	}
}
