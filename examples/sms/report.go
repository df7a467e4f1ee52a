package main

import (
	"fmt"
	"io"
	"sync"

	"github.com/sluice-go/sluice/examples/internal/call"
	"github.com/sluice-go/sluice/examples/internal/departures"
)

// A tally counts what became of the entries: each is exactly one of sent, refused,
// failed, malformed and unsent. It is safe for concurrent use.
type tally struct {
	mu        sync.Mutex
	sent      int
	refused   int
	failed    int
	malformed int
	unsent    int
	held      int    // how often all workers waited for answers
	parts     int    // of what was sent
	unsentAt  ranges // lines
	stopped   bool   // the input was not read to its end,
	stoppedAt int    // but to this line
}

// stop notes that the input was read as far as that line.
func (t *tally) stop(line int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stopped, t.stoppedAt = true, line
}

// hold notes that a message has to wait because all workers wait for answers.
func (t *tally) hold() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.held++
}

func (t *tally) spoil() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.malformed++
}

// count counts a message.
func (t *tally) count(e entry, o call.Outcome) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch o {
	case call.Accepted:
		t.sent++
		t.parts += e.parts
	case call.Refused:
		t.refused++
	case call.Failed:
		t.failed++
	case call.Unsent:
		t.unsent++
		t.unsentAt.add(e.first, e.last)
	}
}

func (t *tally) progress() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return fmt.Sprintf("%d sent, %d not", t.sent, t.refused+t.failed+t.malformed)
}

// complete tells whether all that there was to send was sent.
func (t *tally) complete() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.refused+t.failed+t.malformed+t.unsent == 0 && !t.stopped
}

// report writes what became of the messages, and at what pace.
func (t *tally) report(w io.Writer, s departures.Summary) {
	t.mu.Lock()
	defer t.mu.Unlock()
	fmt.Fprintf(w, "%-14s %d\n", "sent", t.sent)
	fmt.Fprintf(w, "%-14s %d\n", "refused", t.refused)
	fmt.Fprintf(w, "%-14s %d\n", "failed", t.failed)
	fmt.Fprintf(w, "%-14s %d\n", "malformed", t.malformed)
	fmt.Fprintf(w, "%-14s %d", "unsent", t.unsent)
	if t.unsent > 0 {
		fmt.Fprintf(w, ": lines %v", &t.unsentAt)
	}
	fmt.Fprintln(w)
	if t.stopped {
		fmt.Fprintf(w, "%-14s what follows line %d was neither read nor sent\n", "", t.stoppedAt)
	}
	fmt.Fprintf(w, "%-14s %d\n", "parts sent", t.parts)
	if all := t.sent + t.refused + t.failed; t.held > all/2 {
		fmt.Fprintf(w, "%-14s the answers were too slow for the rate %d times; try more -workers\n", "held back", t.held)
	}
	fmt.Fprintln(w)
	s.WriteText(w, "parts")
}
