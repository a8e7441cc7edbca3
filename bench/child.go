package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"
)

// watchdog ends waits that would else never end. It measures nothing.
const watchdog = 20 * time.Second

// line is a line that a child printed, and when it was read.
type line struct {
	text []byte
	at   time.Time
}

// child is a process that speaks in lines.
type child struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	lines chan line // closed when its output ends
	said  strings.Builder
}

func startChild(cmd *exec.Cmd) (*child, error) {
	// A reader that nobody empties would stop the child and distort what it
	// does: room for all that comes between two looks.
	c := &child{cmd: cmd, lines: make(chan line, 1024)}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	cmd.Stderr = &c.said
	c.stdin = stdin
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(c.lines)
		r := bufio.NewReaderSize(stdout, 64<<10)
		for {
			text, err := r.ReadBytes('\n')
			if err != nil {
				return
			}
			c.lines <- line{text, time.Now()}
		}
	}()
	return c, nil
}

// write sends a line, which ends in a line feed, and returns when it was about
// to.
func (c *child) write(text []byte) (time.Time, error) {
	at := time.Now()
	_, err := c.stdin.Write(text)
	return at, err
}

var errEnded = errors.New("the process ended")

// read returns the next line.
func (c *child) read() (line, error) {
	// Most often it is there within microseconds, so the timer is cheap only
	// if it is not made for nothing.
	select {
	case l, ok := <-c.lines:
		return l, endedUnless(ok)
	default:
	}
	late := time.NewTimer(watchdog)
	defer late.Stop()
	select {
	case l, ok := <-c.lines:
		return l, endedUnless(ok)
	case <-late.C:
		return line{}, fmt.Errorf("%s said nothing for %v", c.cmd.Args, watchdog)
	}
}

func endedUnless(ok bool) error {
	if ok {
		return nil
	}
	return errEnded
}

// end closes the child's input and waits until it has ended, which it is
// helped to if need be.
func (c *child) end() {
	_ = c.stdin.Close()
	stuck := time.AfterFunc(watchdog, func() { _ = c.cmd.Process.Kill() })
	defer stuck.Stop()
	for range c.lines { // Wait must come after the last read
	}
	_ = c.cmd.Wait()
}
