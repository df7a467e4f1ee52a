package transport

import (
	"context"
	"time"

	"github.com/sluice-go/sluice/transport/internal/engine"
)

// A Trace is a set of functions that are called at what happens to a request before it is
// sent, and to its key because of it. Any of them may be nil. They run on the goroutine of
// the request, or of net/http for ExtraAttempt, and the request waits for them: they
// should be quick. Held runs on one of its own if the body had to tell. They hold no more
// of the request than its key.
//
// What is told as Enqueued is told as Granted or as Refused afterwards, exactly once, and
// nothing else is. So Enqueued less Granted less Refused is at every moment the number of
// requests that wait. That goes for each attempt of [WithRetry] too, and holds if the Waiter
// or the base panics. Neither a request whose context had ended before nor one without a URL
// is told.
type Trace struct {
	// Enqueued: the request joins the line. Whether it has to wait there is not known yet.
	Enqueued func(Event)
	// Granted: the request may leave, after Waited.
	Granted func(Event)
	// Refused: the request is not sent, or is not sent again, because of Err.
	Refused func(Event)
	// Held: the partner has answered with a refusal, or that nothing remains, and the key is
	// held until Until.
	Held func(Event)
	// ExtraAttempt: net/http sends the request once more by itself, which is charged. It
	// joins no line, so nothing else is told of it.
	ExtraAttempt func(Event)
	// Retried: the request is sent once more, because of [WithRetry].
	Retried func(Event)
}

// An Event is what a [Trace] is told.
type Event struct {
	Key    string
	Cost   int64
	Waited time.Duration // in the line, so far
	Err    error         // of Refused, and of a Retried that follows a failure to send
	Status int           // the partner's, of Held and Retried
	Until  time.Time     // of Held
}

// perCall is what a context says about its requests. It is one value, so that a request
// has to search its context once.
type perCall struct {
	cost     *int64
	trace    *Trace
	settling *engine.Settling
}

type perCallKey struct{}

// perCallOf returns what a context says, or nil.
func perCallOf(ctx context.Context) *perCall {
	p, _ := ctx.Value(perCallKey{}).(*perCall)
	return p
}

// in returns a context that says so, and what ctx says besides.
func (p perCall) in(ctx context.Context) context.Context {
	if before := perCallOf(ctx); before != nil {
		if p.cost == nil {
			p.cost = before.cost
		}
		if p.trace == nil {
			p.trace = before.trace
		}
		if p.settling == nil {
			p.settling = before.settling
		}
	}
	return context.WithValue(ctx, perCallKey{}, &p)
}

// WithTrace returns a context whose requests call the functions of trace, before those
// of [WithHooks]. Of two in one context the later one is called.
func WithTrace(ctx context.Context, trace *Trace) context.Context {
	return perCall{trace: trace}.in(ctx)
}

// tell calls a function of the context's trace and of the hooks, which hear of it even if
// the first one panics.
func (t *Transport) tell(trace *Trace, which func(*Trace) func(Event), e Event) {
	if t.hooks != nil {
		if f := which(t.hooks); f != nil {
			defer f(e)
		}
	}
	if trace != nil {
		if f := which(trace); f != nil {
			f(e)
		}
	}
}

func enqueued(t *Trace) func(Event)     { return t.Enqueued }
func granted(t *Trace) func(Event)      { return t.Granted }
func refused(t *Trace) func(Event)      { return t.Refused }
func held(t *Trace) func(Event)         { return t.Held }
func extraAttempt(t *Trace) func(Event) { return t.ExtraAttempt }
func retried(t *Trace) func(Event)      { return t.Retried }
