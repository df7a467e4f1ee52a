package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/sluice-go/sluice/examples/internal/call"
	"github.com/sluice-go/sluice/transport"
)

// lookOn is how long the rest of the input is read after an interruption, to be
// able to say which lines were not sent. A pipe or a terminal may never end.
const lookOn = 2 * time.Second

// A sender sends messages through a client whose transport paces.
type sender struct {
	client  *http.Client
	url     string
	from    string
	workers int
	tally   tally
	console *console
}

// send sends what in has, in its order, until ctx ends. Then nothing more leaves,
// and it returns once everything that has left is answered. The error says why not
// all of the input could be read.
//
// The order is kept by a simple rule: one message is in the line, and the next is
// handed over when that has left. So no two ever race for a place. Up to workers
// messages that have left may wait for their answers meanwhile.
func (s *sender) send(ctx context.Context, in io.Reader) error {
	quit := make(chan struct{})
	defer close(quit)
	entries, end := stream(in, quit)
	at := 0 // the line that the input has been looked at to

	var flying sync.WaitGroup
	defer flying.Wait()
	free := make(chan struct{}, s.workers)
	for ctx.Err() == nil {
		// First the worker, then the message: a message that no worker can send yet
		// stays in the input.
		if len(free) == cap(free) {
			s.tally.hold()
		}
		select {
		case free <- struct{}{}:
		case <-ctx.Done():
			continue
		}
		var e entry
		var ok bool
		select {
		case e, ok = <-entries:
			if !ok {
				return end()
			}
		case <-ctx.Done():
			continue
		}
		at = e.last
		if e.bad != nil {
			s.spoil(e)
			<-free
			continue
		}
		s.launch(ctx, e, &flying, free)
	}
	return s.giveUp(entries, end, at)
}

// launch hands a message over and returns when it has left the line.
func (s *sender) launch(ctx context.Context, e entry, flying *sync.WaitGroup, free <-chan struct{}) {
	req, err := s.request(ctx, e)
	if err != nil {
		panic(err) // the URL was checked, and strings can be marshalled
	}
	// What the partner counts are the parts, so that is what the message costs.
	c := call.New(transport.ContextWithCost(ctx, int64(e.parts)), req, int64(e.parts))
	done := make(chan struct{})
	flying.Go(func() {
		defer func() { <-free }()
		defer close(done)
		a := c.Do(s.client)
		s.tally.count(e, a.Outcome)
		switch a.Outcome {
		case call.Refused:
			s.console.say("line %d: refused: %s", e.first, a.Reason())
		case call.Failed:
			s.console.say("line %d: failed: %s", e.first, a.Reason())
		}
		s.console.show(e.read, s.tally.progress())
	})
	select {
	case <-c.Left():
	case <-done: // it never left
	}
}

// giveUp counts what is left of the input.
func (s *sender) giveUp(entries <-chan entry, end func() error, at int) error {
	s.console.say("sms: interrupted; waiting for the answers to what has left (again: kill)")
	enough := time.NewTimer(lookOn)
	defer enough.Stop()
	for {
		select {
		case e, ok := <-entries:
			if !ok {
				return end()
			}
			at = e.last
			if e.bad != nil {
				s.spoil(e)
			} else {
				s.tally.count(e, call.Unsent)
			}
		case <-enough.C:
			s.tally.stop(at)
			return nil
		}
	}
}

func (s *sender) spoil(e entry) {
	s.tally.spoil()
	s.console.say("line %d: %v", e.first, e.bad)
}

// request returns the request that sends a message. The reference lets the line be
// found again at the partner's.
func (s *sender) request(ctx context.Context, e entry) (*http.Request, error) {
	body, err := json.Marshal(map[string]string{
		"from":      s.from,
		"to":        e.to,
		"text":      e.text,
		"reference": fmt.Sprint("line-", e.first),
	})
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	return req, nil
}
