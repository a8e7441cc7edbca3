package dirstore

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"switchboard/internal/exchange"
	"switchboard/internal/proc"
)

// actAs is what another process does. It says on standard output what it was
// told is done, one line each, after it was told.
func actAs(role string) {
	s, err := Open(os.Getenv("DIRSTORE_ROOT"), "test")
	check(err)
	arg := os.Getenv("DIRSTORE_ARG")
	switch role {
	case "write":
		write(s, arg)
	case "read":
		follow(s)
	case "own", "own for parent":
		l, err := s.Own(key(arg))
		check(err)
		r := record(arg)
		if role == "own for parent" {
			r.Agent, err = proc.Of(os.Getppid())
			check(err)
		}
		check(l.Publish(r))
		say("owned")
		_, _ = io.Copy(io.Discard, os.Stdin)
		check(l.Release(false))
	default:
		check(errors.New("no such role"))
	}
}

func say(format string, args ...any) { fmt.Printf(format+"\n", args...) }

func check(err error) {
	if err != nil {
		say("error %v", err)
		os.Exit(1)
	}
}

// child is another process.
type child struct {
	t     *testing.T
	cmd   *exec.Cmd
	stdin io.Closer
	lines chan string // closed at the end of what it says
}

func start(t *testing.T, s *Store, role, arg string) *child {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), "DIRSTORE_TEST="+role, "DIRSTORE_ROOT="+s.root, "DIRSTORE_ARG="+arg)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c := &child{t: t, cmd: cmd, stdin: in, lines: make(chan string, 1<<16)}
	go func() {
		defer close(c.lines)
		for r := bufio.NewReader(out); ; {
			line, err := r.ReadString('\n')
			if err != nil {
				return // without its end it says nothing
			}
			c.lines <- strings.TrimSuffix(line, "\n")
		}
	}()
	t.Cleanup(c.kill)
	return c
}

// kill is kill -9. It returns when the process is gone.
func (c *child) kill() {
	_ = c.cmd.Process.Kill()
	for range c.lines {
	}
	_ = c.cmd.Wait()
}

// next is the next line it says.
func (c *child) next() string {
	c.t.Helper()
	select {
	case line, ok := <-c.lines:
		if !ok {
			c.t.Fatal("the other process ended")
		}
		return line
	case <-time.After(deadline):
		c.t.Fatal("the other process says nothing")
	}
	return ""
}

func (c *child) expect(line string) {
	c.t.Helper()
	if got := c.next(); got != line {
		c.t.Fatalf("the other process said %q, want %q", got, line)
	}
}

// work is the body of an entry: the Nth of the Of entries of one append.
type work struct {
	Writer string
	Batch  int
	N, Of  int
	Pad    string
}

const (
	crowd   = exchange.TeamID("crowd")
	mailbox = "mailbox"
)

// batch is what a writer appends at one time: mostly little, now and then
// more than the system writes in one go.
func batch(writer string, number int) []exchange.Entry {
	of, pad := 1+number%4, number%7*10
	if number%3 == 0 {
		pad = 24 << 10
	}
	var es []exchange.Entry
	for n := range of {
		body, err := json.Marshal(work{writer, number, n, of, strings.Repeat("p", pad)})
		check(err)
		es = append(es, exchange.Entry{Kind: "work", Body: body})
	}
	return es
}

// write appends and posts until it is killed.
func write(s *Store, writer string) {
	for i := 0; ; i++ {
		out, err := s.Append(crowd, batch(writer, i)...)
		if errors.Is(err, exchange.ErrBusy) {
			continue
		}
		check(err)
		say("appended %d %d", i, out[0].Seq)
		if i%2 == 1 {
			continue
		}
		m := newMessage(fmt.Sprintf("%s %d %s", writer, i, strings.Repeat("m", i%5*1000)))
		check(s.Post(key(mailbox), m))
		say("posted %s %d", m.ID, i)
		if i%10 == 8 {
			err := s.Rewrite(crowd, func(es []exchange.Entry) []exchange.Entry { return es })
			if !errors.Is(err, exchange.ErrBusy) {
				check(err)
			}
		}
	}
}

// follow reads a journal until its last entry, and says how many there were.
func follow(s *Store) {
	var c exchange.Cursor
	for n := 0; ; time.Sleep(time.Millisecond) {
		es, next, err := s.Read(crowd, c)
		check(err)
		for _, e := range es {
			n++
			if e.Seq != uint64(n) {
				check(fmt.Errorf("read entry %d, want %d", e.Seq, n))
			}
			if e.Kind == "end" {
				say("read %d", n)
				return
			}
		}
		c = next
	}
}

// Writers are killed at any moment, and new ones start. What was acknowledged
// is there, once; readers see no gap and no repetition; no append is there by
// half.
func TestKilledWriters(t *testing.T) {
	s := newStore(t)
	rng := rand.New(rand.NewPCG(1, 2))
	var mu sync.Mutex
	appended := make(map[uint64]string) // first number → writer and batch
	posted := make(map[string]string)   // id → writer and batch
	listen := func(c *child, writer string, pause time.Duration) {
		var once sync.Once
		for line := range c.lines {
			once.Do(func() { time.AfterFunc(pause, func() { _ = c.cmd.Process.Kill() }) })
			f := strings.Fields(line)
			mu.Lock()
			switch f[0] {
			case "appended":
				seq, _ := strconv.ParseUint(f[2], 10, 64)
				appended[seq] = writer + " " + f[1]
			case "posted":
				posted[f[1]] = writer + " " + f[2]
			default:
				t.Errorf("writer %s: %s", writer, line)
			}
			mu.Unlock()
		}
	}

	reader := start(t, s, "read", "")
	const places, lives = 4, 8
	var writers sync.WaitGroup
	for place := range places {
		pauses := make([]time.Duration, lives)
		for i := range pauses {
			pauses[i] = time.Duration(rng.IntN(120_000)) * time.Microsecond
		}
		writers.Go(func() {
			for life, pause := range pauses {
				writer := fmt.Sprintf("w%d-%d", place, life)
				c := start(t, s, "write", writer)
				listen(c, writer, pause)
				_ = c.cmd.Wait()
			}
		})
	}
	writers.Wait()
	if _, err := s.Append(crowd, exchange.Entry{Kind: "end"}); err != nil {
		t.Fatal(err)
	}
	var all []exchange.Entry
	all, _, err := open(t, s.root).Read(crowd, exchange.Cursor{})
	if err != nil {
		t.Fatal(err)
	}
	reader.expect(fmt.Sprintf("read %d", len(all)))

	last := make(map[string]int)
	for i := 0; i < len(all); {
		e := all[i]
		if e.Seq != uint64(i+1) {
			t.Fatalf("entry %d has number %d", i+1, e.Seq)
		}
		if e.Kind == "end" {
			break
		}
		var first work
		if err := json.Unmarshal(e.Body, &first); err != nil {
			t.Fatal(err)
		}
		for n := range first.Of {
			var w work
			if i+n < len(all) {
				_ = json.Unmarshal(all[i+n].Body, &w)
			}
			if w.Writer != first.Writer || w.Batch != first.Batch || w.N != n {
				t.Errorf("entries from %d: %s %d has %d of %d entries", e.Seq, first.Writer, first.Batch, n, first.Of)
				break
			}
		}
		if want, ok := last[first.Writer]; ok && first.Batch != want+1 {
			t.Errorf("%s appended %d after %d", first.Writer, first.Batch, want)
		}
		last[first.Writer] = first.Batch
		who := fmt.Sprint(first.Writer, " ", first.Batch)
		if ack, ok := appended[e.Seq]; ok && ack != who {
			t.Errorf("entry %d is of %s, acknowledged to %s", e.Seq, who, ack)
		}
		delete(appended, e.Seq)
		i += first.Of
	}
	if len(appended) > 0 {
		t.Errorf("%d acknowledged appends are not there", len(appended))
	}

	mail, err := s.Waiting(key(mailbox))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d entries, %d messages, %d posts acknowledged", len(all), len(mail), len(posted))
	for _, m := range mail {
		f := strings.Fields(m.Text + " .")
		i, _ := strconv.Atoi(f[1])
		if want := strings.Repeat("m", i%5*1000); len(f) < 3 || want != "" && f[2] != want {
			t.Errorf("message %s is %.40q…", m.ID, m.Text)
		}
		if who, ok := posted[m.ID]; ok && who != f[0]+" "+f[1] {
			t.Errorf("message %s is of %s %s, acknowledged to %s", m.ID, f[0], f[1], who)
		}
		delete(posted, m.ID)
	}
	if len(posted) > 0 {
		t.Errorf("%d acknowledged messages are not there", len(posted))
	}
	if problems, err := s.Problems(); len(problems) > 0 || err != nil {
		t.Errorf("Problems = %v, %v; want none", problems, err)
	}
}

// Messages are acknowledged while the owner comes and goes, and with it the
// inbox.
func TestPostWhileOwnersComeAndGo(t *testing.T) {
	s := newStore(t)
	done := make(chan struct{})
	var coming sync.WaitGroup
	coming.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			l, err := s.Own(key(mailbox))
			if err != nil {
				t.Errorf("Own: %v", err)
				return
			}
			waiting, err := s.Waiting(key(mailbox))
			if err != nil {
				t.Errorf("Waiting: %v", err)
			}
			for _, m := range waiting {
				_ = l.Settle(m.ID)
			}
			if err := l.Release(false); err != nil {
				t.Errorf("Release: %v", err)
			}
		}
	})
	other := open(t, s.root)
	for range 300 {
		if err := other.Post(key(mailbox), newMessage("x")); err != nil {
			t.Errorf("Post: %v", err)
		}
	}
	close(done)
	coming.Wait()
}
