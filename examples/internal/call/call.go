// Package call follows one paced HTTP request: handed over, in the line, left,
// answered.
package call

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/sluice-go/sluice/examples/internal/departures"
	"github.com/sluice-go/sluice/transport"
)

// patience is how long the answer to a request that has left may take.
const patience = 30 * time.Second

var errNoAnswer = errors.New("no answer within " + patience.String())

// A Call is one request on its way.
//
// The context that it is made with can take it out of the line, but not back once
// it has left: to break off then would leave open whether the partner took it. So a
// call that has left ends with its answer, or when that takes too long. A request
// has one context for both; the Call detaches it at the departure, of which it
// learns from the [Recorder] that has to stand below the pacing transport.
type Call struct {
	req    *http.Request
	units  int64
	cancel context.CancelCauseFunc
	detach func() bool

	handed time.Time
	left   chan struct{}
	timer  *time.Timer
}

type callKey struct{}

// New returns a call of so many units that sends req once it is told to. The
// request gets a context of its own, with the values of ctx; ctx ends the wait.
func New(ctx context.Context, req *http.Request, units int64) *Call {
	c := &Call{units: units, left: make(chan struct{})}
	own, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	c.cancel = cancel
	c.detach = context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
	c.req = req.WithContext(context.WithValue(own, callKey{}, c))
	return c
}

// Left is closed when the request leaves.
func (c *Call) Left() <-chan struct{} { return c.left }

// Do sends the request and returns what became of it. It may be called once.
func (c *Call) Do(client *http.Client) Answer {
	defer c.end()
	c.handed = time.Now()
	resp, err := client.Do(c.req)
	if err != nil {
		return Answer{Outcome: c.blame(err), Err: err}
	}
	return read(resp)
}

// depart is called when the line has let the request go. It reports false if the
// context ended at the same moment and came first: then nothing may be sent.
func (c *Call) depart(log *departures.Log) bool {
	if !c.detach() {
		return false
	}
	now := time.Now()
	log.Add(now, c.units, now.Sub(c.handed))
	c.timer = time.AfterFunc(patience, func() { c.cancel(errNoAnswer) })
	close(c.left)
	return true
}

func (c *Call) end() {
	c.detach()
	if c.timer != nil {
		c.timer.Stop()
	}
	c.cancel(nil)
}

// blame tells the errors of what was not sent from those of what was.
func (c *Call) blame(err error) Outcome {
	select {
	case <-c.left:
		return Failed
	default:
	}
	if errors.Is(err, transport.ErrNotSent) || errors.Is(err, context.Canceled) {
		return Unsent
	}
	return Failed // not even a request that could be sent
}

// maxBody is how much of an answer is read.
const maxBody = 64 << 10

// read reads the answer and closes it. An answer that is read to its end lets the
// connection be used again; one that has no end is not worth waiting for.
func read(resp *http.Response) Answer {
	defer resp.Body.Close()
	// The status has decided. A body that breaks off changes nothing.
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxBody))
	a := Answer{Outcome: Failed, Status: resp.StatusCode, Header: resp.Header, Body: body}
	switch {
	case resp.StatusCode/100 == 2:
		a.Outcome = Accepted
	case resp.StatusCode == http.StatusTooManyRequests, resp.StatusCode == http.StatusServiceUnavailable:
		a.Outcome = Refused
	}
	return a
}
