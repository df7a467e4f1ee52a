package transport

import (
	"fmt"
	"net/http"
	"time"

	"github.com/sluice-go/sluice/transport/feedback"
)

// Option changes how a [Transport] works. Most need none. A nil Option, and a value that
// makes no sense, is a programming error and panics in [New] or [NewKeyed].
type Option func(*config)

type config struct {
	cost        func(*http.Request) int64
	classify    feedback.Classifier // nil: the default one
	deaf        bool
	maxHold     time.Duration
	maxDelay    time.Duration // 0: none
	maxInFlight int64         // 0: no bound
	floor       int64         // of the adaptive rate, in parts of wholeShare; 0: not adaptive
	retry       *Retry
	hooks       *Trace
}

const defaultMaxHold = time.Hour

// WithClassifier has c tell which answers are a refusal because of a limit, and for how
// long; see package feedback for ready ones. The default is [feedback.Default]. With nil
// no answer is looked at: the Transport paces and does not listen.
func WithClassifier(c feedback.Classifier) Option {
	return func(cfg *config) { cfg.classify, cfg.deaf = c, c == nil }
}

// WithMaxHold sets the longest time for which an answer can hold a key. The default is an
// hour. A partner who states more is believed for that long: then a single request goes,
// and what it is answered counts.
func WithMaxHold(d time.Duration) Option {
	return func(c *config) {
		must(d > 0, "maximum hold %v: must be positive", d)
		c.maxHold = d
	}
}

// WithMaxDelay refuses, with [ErrMaxDelay], requests that would wait longer than d. The
// default is no bound but that of the Waiter and of the request's context.
func WithMaxDelay(d time.Duration) Option {
	return func(c *config) {
		must(d > 0, "maximum delay %v: must be positive", d)
		c.maxDelay = d
	}
}

// WithMaxInFlight bounds how many requests of a key are in flight at a time: from when
// they may leave until their answer's body is read to its end or closed, or their context
// ends. More of them wait, in order, before they wait for the pace; 1024 of a key at most, and what comes on
// top is refused with [ErrTooManyInFlight].
//
// After 101 Switching Protocols the connection is the caller's, and in flight no more.
func WithMaxInFlight(n int) Option {
	return func(c *config) {
		must(n > 0, "%d in flight: must be at least 1", n)
		c.maxInFlight = int64(n)
	}
}

// WithAdaptiveRate has the rate of a key follow what the partner really allows. A refusal
// cuts it to 7/10, but not below the floor, a share of the Waiter's rate above 0 and up to
// 1; refusals of requests that were sent before the latest cut do not cut again. Without
// refusals it grows again, slowly around where it was refused last, never above the
// Waiter's rate. It needs a Waiter with the method Scale.
func WithAdaptiveRate(floor float64) Option {
	return func(c *config) {
		must(floor > 0 && floor <= 1, "adaptive rate with a floor of %v: must be above 0 and at most 1", floor)
		c.floor = max(1, int64(floor*wholeShare))
	}
}

// WithHooks has the functions of h called for every request, as those of [WithTrace] are
// for those of a context. They must be safe for concurrent use.
func WithHooks(h *Trace) Option { return func(c *config) { c.hooks = h } }

func must(ok bool, format string, value any) {
	if !ok {
		panic(fmt.Sprintf("transport: "+format, value))
	}
}
