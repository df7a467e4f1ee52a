package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// A console is where a person looks on: messages go to the standard error, and
// below them a progress bar to the standard output if that is a terminal. In a file
// or a pipe there is none.
//
// A console is safe for concurrent use.
type console struct {
	mu  sync.Mutex
	out io.Writer
	bar *progressbar.ProgressBar // nil if stdout is no terminal
	at  int64                    // where the bar stands
}

// newConsole returns a console for an input of that many bytes; -1 means that
// their number is not known.
func newConsole(stdout, stderr io.Writer, size int64) *console {
	c := &console{out: stderr}
	if f, ok := stdout.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		c.bar = newBar(stdout, size)
	}
	return c
}

func newBar(out io.Writer, size int64) *progressbar.ProgressBar {
	if size >= 0 {
		size++ // a bar that is full counts as done and moves no more
	}
	return progressbar.NewOptions64(size,
		progressbar.OptionSetWriter(out),
		progressbar.OptionSetWidth(30),
		progressbar.OptionUseANSICodes(true),
		progressbar.OptionSetPredictTime(false),
		progressbar.OptionThrottle(50*time.Millisecond),
		// Without it, the bar draws from a goroutine of its own, across messages.
		progressbar.OptionSetSpinnerChangeInterval(0),
	)
}

// show moves the bar: so many bytes of the input are done. Answers overtake one
// another; the bar does not go back for that.
func (c *console) show(done int64, text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.bar != nil {
		c.at = max(c.at, done)
		c.bar.Describe(text)
		_ = c.bar.Set64(c.at)
	}
}

// say prints a line.
func (c *console) say(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.bar != nil {
		_ = c.bar.Clear()
	}
	fmt.Fprintf(c.out, format+"\n", args...)
}

// end takes the bar away.
func (c *console) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.bar != nil {
		_ = c.bar.Clear()
		_ = c.bar.Exit()
		c.bar = nil
	}
}
