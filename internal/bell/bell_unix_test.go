//go:build unix

package bell

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// With BELL_TEST set to a path the test binary is another process, which
// listens there and says so on each word.
func TestMain(m *testing.M) {
	if path := os.Getenv("BELL_TEST"); path != "" {
		b, err := Listen(path)
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println("ready")
		for range b.C() {
			fmt.Println("rung")
		}
	}
	goleak.VerifyTestMain(m)
}

// shortDir is t.TempDir with a path that leaves room for a socket's.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "bell")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func mustListen(t *testing.T, path string) *Bell {
	t.Helper()
	b, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b
}

func mustRing(t *testing.T, path string) {
	t.Helper()
	if err := Ring(path); err != nil {
		t.Fatal(err)
	}
}

func mustHear(t *testing.T, b *Bell) {
	t.Helper()
	select {
	case <-b.C():
	case <-time.After(10 * time.Second):
		t.Fatal("the bell did not ring")
	}
}

func TestRing(t *testing.T) {
	path := filepath.Join(shortDir(t), "b")
	b := mustListen(t, path)
	for range 3 {
		mustRing(t, path)
		mustHear(t, b)
	}
	info, err := os.Lstat(path)
	if err != nil || info.Mode() != fs.ModeSocket|0o600 {
		t.Errorf("mode = %v, %v; want a socket, 0600", info.Mode(), err)
	}
	for range 2 {
		if err := b.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after Close: %v, want the socket gone", err)
	}
	if err := Ring(path); !errors.Is(err, ErrNobody) {
		t.Errorf("Ring after Close = %v, want ErrNobody", err)
	}
}

func TestRingNobody(t *testing.T) {
	dir := shortDir(t)
	stale := filepath.Join(dir, "stale")
	makeStale(t, stale)
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	stream := filepath.Join(dir, "stream")
	l, err := net.Listen("unix", stream)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, path := range []string{stale, file, stream, filepath.Join(dir, "none"), filepath.Join(dir, "no", "ne"), filepath.Join(file, "x")} {
		if err := Ring(path); !errors.Is(err, ErrNobody) {
			t.Errorf("Ring(%q) = %v, want ErrNobody", path, err)
		}
	}
}

// makeStale leaves a socket as a process that was killed does.
func makeStale(t *testing.T, path string) {
	t.Helper()
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	if _, err := os.Lstat(path); err != nil {
		t.Fatal(err)
	}
}

func TestBadPaths(t *testing.T) {
	for _, path := range []string{"", "@abstract", "relative", "/x\x00y", "/" + strings.Repeat("x", MaxPath)} {
		if b, err := Listen(path); err == nil {
			t.Errorf("Listen(%q) succeeded", path)
			b.Close()
		}
		if err := Ring(path); err == nil || errors.Is(err, ErrNobody) {
			t.Errorf("Ring(%q) = %v, want another error", path, err)
		}
	}
}

func TestListenReplacesStale(t *testing.T) {
	path := filepath.Join(shortDir(t), "b")
	makeStale(t, path)
	b := mustListen(t, path)
	mustRing(t, path)
	mustHear(t, b)
}

func TestListenKeepsOthersFile(t *testing.T) {
	path := filepath.Join(shortDir(t), "b")
	if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(path); !errors.Is(err, fs.ErrExist) {
		t.Errorf("Listen over a file = %v, want fs.ErrExist", err)
	}
	if data, _ := os.ReadFile(path); string(data) != "x" {
		t.Error("Listen destroyed a file")
	}
}

// The old generation closes after the new one took over its path.
func TestTwoGenerations(t *testing.T) {
	path := filepath.Join(shortDir(t), "b")
	old := mustListen(t, path)
	next := mustListen(t, path)
	if err := old.Close(); err != nil {
		t.Fatal(err)
	}
	mustRing(t, path)
	mustHear(t, next)
	select {
	case <-old.C():
		t.Error("the old generation was rung")
	default:
	}
}

// Many rings that nobody waits for become one word.
func TestManyBecomeOne(t *testing.T) {
	path := filepath.Join(shortDir(t), "b")
	b := mustListen(t, path)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 500 {
				if err := Ring(path); err != nil {
					t.Errorf("Ring: %v", err)
				}
			}
		})
	}
	wg.Wait()
	mustHear(t, b)
	b.Close()
	words := 0
	for len(b.C()) > 0 {
		<-b.C()
		words++
	}
	if words > 1 {
		t.Errorf("%d words were kept, want at most 1", words)
	}
}

// ringMany rings a bell whose owner doesn't listen and reports if that took
// suspiciously long.
func ringMany(t *testing.T, path string) {
	t.Helper()
	start := time.Now()
	for range 10_000 {
		mustRing(t, path)
	}
	if took := time.Since(start); took > 30*time.Second {
		t.Errorf("10,000 rings took %v", took)
	}
}

func TestStoppedOwner(t *testing.T) {
	path := filepath.Join(shortDir(t), "b")
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), "BELL_TEST="+path)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	lines := bufio.NewReader(out)
	wantLine(t, lines, "ready")

	cmd.Process.Signal(syscall.SIGSTOP)
	ringMany(t, path)
	cmd.Process.Signal(syscall.SIGCONT)
	wantLine(t, lines, "rung")

	cmd.Process.Kill()
	cmd.Wait()
	if err := Ring(path); !errors.Is(err, ErrNobody) {
		t.Errorf("Ring after the owner was killed = %v, want ErrNobody", err)
	}
}

func wantLine(t *testing.T, r *bufio.Reader, want string) {
	t.Helper()
	line, err := r.ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) || strings.TrimSpace(line) != want {
		t.Fatalf("the other process said %q, %v; want %q", line, err, want)
	}
}

// Owners that don't listen must not keep others from being rung. Their queues
// together hold more than one socket may have on the way.
func TestDeafOwnersDoNotSilenceOthers(t *testing.T) {
	dir := shortDir(t)
	live := filepath.Join(dir, "live")
	b := mustListen(t, live)
	for i := range 100 {
		path := filepath.Join(dir, fmt.Sprint(i))
		conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close() // and never reads
		for range 600 {
			mustRing(t, path)
		}
		mustRing(t, live)
		mustHear(t, b)
	}
}
