package grpcpace

import (
	"context"
	"fmt"
	"time"

	"github.com/sluice-go/sluice/transport/internal/engine"
)

// Option changes how a [Pacer] works. Most need none. A value that makes no sense is a
// programming error and panics in [New] or [NewKeyed].
type Option func(*config)

type config struct {
	cost     func(ctx context.Context, method string, req any) int64
	classify Classifier // nil: no answer is looked at
	maxHold  time.Duration
	holdSet  bool
	messages bool  // each message takes a turn
	floor    int64 // of the adaptive rate, in parts of engine.Whole; 0: not adaptive
	inFlight int   // 0: no bound
	retry    *Retry
}

const defaultMaxHold = time.Hour

// WithClassifier has c tell which answers are a refusal because of a limit, and for how
// long. The default is [Default]. With nil no answer is looked at.
func WithClassifier(c Classifier) Option { return func(cfg *config) { cfg.classify = c } }

// WithMaxHold sets the longest time for which an answer can hold a key. The default is an
// hour. A server that states more is believed for that long: then a single RPC goes, and what it
// is answered counts. It needs a [transport.Holder].
func WithMaxHold(d time.Duration) Option {
	return func(c *config) {
		must(d > 0, "maximum hold %v: must be positive", d)
		c.maxHold, c.holdSet = d, true
	}
}

// WithPacedMessages has each message that is sent on a stream take a turn of its own. The
// first one goes along with the start of the stream, which has taken one; unary RPCs are
// not affected.
//
// SendMsg then waits by the stream's context and can return an [*Error]. That message was
// not sent and no byte of it has left; the stream is as it was, so it can be sent later,
// or the stream ended. As the start of the stream has left, the error does not match
// [transport.ErrNotSent].
func WithPacedMessages() Option { return func(c *config) { c.messages = true } }

// WithAdaptiveRate has the rate of a key follow what the server really allows, as
// [transport.WithAdaptiveRate] does. The floor is above 0 and at most 1. It needs a
// [transport.Scaler] that can scale. Not with WithClassifier(nil).
func WithAdaptiveRate(floor float64) Option {
	return func(c *config) {
		must(floor > 0 && floor <= 1, "adaptive rate with a floor of %v: must be above 0 and at most 1", floor)
		c.floor = max(1, int64(floor*engine.Whole))
	}
}

// WithMaxInFlight bounds how many RPCs of a key are in flight at a time: from when they may leave
// until gRPC has ended them. A stream is one RPC, and keeps its place until it is received to its
// end, or its context has ended. It needs a Waiter that is [transport.Places], whose bound it
// is: one that has a bound of its own needs no such option.
func WithMaxInFlight(n int) Option {
	return func(c *config) {
		must(n > 0, "%d in flight: must be at least 1", n)
		c.inFlight = n
	}
}

// fit panics if the Waiter cannot do what the options need.
func (c *config) fit(w *engine.Waiter) {
	err := w.Meets(engine.Needs{Cost: c.cost != nil, Adaptive: c.floor > 0, InFlight: c.inFlight})
	must(err == nil, "%v", err)
	must(c.floor == 0 || c.classify != nil, "an adaptive rate is about answers: none is looked at with WithClassifier(%v)", nil)
	must(!c.holdSet || c.classify != nil, "a maximum hold of %v is about answers: none is looked at with WithClassifier(nil)", c.maxHold)
	must(!c.holdSet || w.Hold != nil, "a maximum hold needs a Waiter with HoldUntil: not a %T", w.Is)
}

func must(ok bool, format string, value any) {
	if !ok {
		panic(fmt.Sprintf("grpcpace: "+format, value))
	}
}
