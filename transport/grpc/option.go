package grpcpace

import (
	"context"
	"fmt"
	"time"
)

// Option changes how a [Pacer] works. Most need none. A value that makes no sense is a
// programming error and panics in [New] or [NewKeyed].
type Option func(*config)

type config struct {
	cost     func(ctx context.Context, method string, req any) int64
	classify Classifier // nil: no answer is looked at
	maxHold  time.Duration
	holdSet  bool
	messages bool // each message takes a turn
}

const defaultMaxHold = time.Hour

// WithClassifier has c tell which answers are a refusal because of a limit, and for how
// long. The default is [Default]. With nil no answer is looked at.
func WithClassifier(c Classifier) Option { return func(cfg *config) { cfg.classify = c } }

// WithMaxHold sets the longest time for which an answer can hold a key. The default is an
// hour. A server that states more is believed for that long. It needs a [transport.Holder].
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

// fit panics if the Waiter cannot do what the options need.
func (c *config) fit(w waiter) {
	must(c.cost == nil || w.waitN != nil, "a cost needs a Waiter with WaitN: not a %T", w.is)
	must(!c.holdSet || c.classify != nil, "a maximum hold of %v is about answers: none is looked at with WithClassifier(nil)", c.maxHold)
	must(!c.holdSet || w.hold != nil, "a maximum hold needs a Waiter with HoldUntil: not a %T", w.is)
}

func must(ok bool, format string, value any) {
	if !ok {
		panic(fmt.Sprintf("grpcpace: "+format, value))
	}
}
