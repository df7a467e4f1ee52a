package transport

import (
	"fmt"
	"net/http"
	"time"

	"github.com/sluice-go/sluice/transport/feedback"
	"github.com/sluice-go/sluice/transport/internal/engine"
)

// Option changes how a [Transport] works. Most need none. A nil Option, and a value that
// makes no sense, is a programming error and panics in [New] or [NewKeyed].
type Option func(*config)

type config struct {
	cost        func(*http.Request) int64
	classify    feedback.Classifier // nil: the default one
	deaf        bool
	maxHold     time.Duration
	maxHoldSet  bool
	maxDelay    time.Duration // 0: none
	maxInFlight int           // 0: no bound
	floor       int64         // of the adaptive rate, in parts of engine.Whole; 0: not adaptive
	settle      func(*http.Response) (cost int64, known bool)
	limits      func(key string, l feedback.Limit)
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
// hour. A partner that states more is believed for that long: then a single request goes,
// and what it is answered counts.
//
// It needs a [Holder], or [WithRetry], which does not send again what is held for longer. Not
// with WithClassifier(nil).
func WithMaxHold(d time.Duration) Option {
	return func(c *config) {
		must(d > 0, "maximum hold %v: must be positive", d)
		c.maxHold, c.maxHoldSet = d, true
	}
}

// WithMaxDelay refuses, with [ErrMaxDelay], requests that would wait longer than d; a wait of
// exactly d is allowed. The default is no bound but that of the Waiter and of the request's
// context. A Waiter that heeds deadlines refuses on arrival; behind another one the refusal
// comes when the time is up.
func WithMaxDelay(d time.Duration) Option {
	return func(c *config) {
		must(d > 0, "maximum delay %v: must be positive", d)
		c.maxDelay = d
	}
}

// WithMaxInFlight bounds how many requests of a key are in flight at a time: from when
// they may leave until their answer has ended, or their context has. An answer has ended when
// its body is read to its end or closed. One that is no success, such as those that some
// clients leave open, has ended once all of it has come, if that is at most 64 KiB.
//
// It needs a Waiter that is [Places], as the Shaper is. Requests wait for a place in the line
// in which they wait for their turn, so that its bounds and predictions are about both, and
// they leave when both allow it. The bound is the Waiter's: what else uses its places
// shares them, another Transport too, and the bound that was set last counts. A Waiter that
// has a bound of its own needs no such option.
//
// After 101 Switching Protocols the connection is the caller's, and in flight no more.
func WithMaxInFlight(n int) Option {
	return func(c *config) {
		must(n > 0, "%d in flight: must be at least 1", n)
		c.maxInFlight = n
	}
}

// WithAdaptiveRate has the rate of a key follow what the partner really allows. A refusal
// cuts it to 7/10, but not below the floor, a share of the Waiter's rate above 0 and up to
// 1; refusals of requests that were sent before the latest cut do not cut again. Without
// refusals it grows again, slowly around where it was refused last, never above the
// Waiter's rate. It needs a [Scaler] that can scale. Not with WithClassifier(nil).
func WithAdaptiveRate(floor float64) Option {
	return func(c *config) {
		must(floor > 0 && floor <= 1, "adaptive rate with a floor of %v: must be above 0 and at most 1", floor)
		c.floor = max(1, int64(floor*engine.Whole))
	}
}

// WithHooks has the functions of h called for every request, as those of [WithTrace] are
// for those of a context. They must be safe for concurrent use.
func WithHooks(h *Trace) Option { return func(c *config) { c.hooks = h } }

// fit has the Waiter do what the options need, and panics if it cannot.
func (c *config) fit(w *engine.Waiter) {
	listening := "is about answers: none is looked at with WithClassifier(nil)"
	if c.maxHoldSet {
		must(!c.deaf, "a maximum hold %s", listening)
		must(w.Hold != nil || c.retry != nil, "a maximum hold needs a Waiter with HoldUntil, or WithRetry: not a %T", w.Is)
	}
	if c.floor > 0 {
		must(!c.deaf, "an adaptive rate %s", listening)
	}
	if c.retry != nil && c.retry.Resend429 {
		must(!c.deaf, "Resend429 %s", listening)
	}
	if c.retry != nil && c.retry.KeepPlace {
		must(w.WithArrival != nil, "KeepPlace needs a Waiter with WithArrival: not a %T", w.Is)
	}
	if c.limits != nil {
		must(!c.deaf, "a function for limits %s", listening)
	}
	err := w.Meets(engine.Needs{Cost: c.cost != nil, Adaptive: c.floor > 0, Settle: c.settle != nil, InFlight: c.maxInFlight})
	must(err == nil, "%v", err)
}

func must(ok bool, format string, value any) {
	if !ok {
		panic(fmt.Sprintf("transport: "+format, value))
	}
}
