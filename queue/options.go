package queue

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
)

const (
	defaultWorkers    = 1
	defaultCapacity   = 1024
	defaultMaxDelayed = 100_000

	unbounded = math.MaxInt
)

// An Option changes one setting of [New] or [Drain]. A nil Option is a programming error
// and panics.
type Option func(*config)

type config struct {
	workers        int
	perKey         int
	capacity       int
	capacityPerKey int
	maxDelayed     int
	keyRate        scheduler.Rate
	keyOpts        []shaper.Option
	handler        func(error)
	jobs           context.Context
	ofQueue        string // an option that a Drain has no use for
}

// WithWorkers sets how many jobs may run at the same time. Default 1.
func WithWorkers(n int) Option {
	return func(c *config) { c.workers = n }
}

// WithWorkersPerKey sets how many jobs of one key may run at the same time. The default is no
// bound but that of [WithWorkers]. It is for [New] only.
func WithWorkersPerKey(n int) Option {
	return func(c *config) { c.perKey, c.ofQueue = n, fmt.Sprintf("%d workers per key", n) }
}

// WithCapacity sets how many jobs may wait; running and delayed ones do not count. The room is the
// queue's own: it takes none of [shaper.WithQueue]. Default 1024. It is for [New] only.
func WithCapacity(n int) Option {
	return func(c *config) { c.capacity, c.ofQueue = n, fmt.Sprintf("capacity %d", n) }
}

// WithCapacityPerKey sets how many jobs of one key may wait, delayed ones included, so that a
// noisy one leaves room for the others. The default is no bound but that of [WithCapacity]. It is
// for [New] only.
func WithCapacityPerKey(n int) Option {
	return func(c *config) { c.capacityPerKey, c.ofQueue = n, fmt.Sprintf("capacity %d per key", n) }
}

// WithMaxDelayed sets how many jobs may be delayed until their [NotBefore], and wait from then on.
// Submit waits for room among these as others do for that of [WithCapacity]. A job that comes
// [Again] takes room here as well, or if there is none, that of a waiting job; it never has to
// wait for it, and while more are there than may be, room that becomes free is for none but
// those. Default 100,000. A Drain takes no message while as many are to come again.
func WithMaxDelayed(n int) Option {
	return func(c *config) { c.maxDelayed = n }
}

// WithKeys gives each key of [Queue.SubmitTo] the rate, beside that of the line, and further
// limits: any options of [shaper.NewGroup] but for those that the queue sets itself. With
// [shaper.WithWeights] keys share the line by weight; with [shaper.WithQueue] a key whose jobs do
// not fit has them wait beside the line. Keys are of type string. The default is
// [scheduler.Unlimited] and no option. It is for [New] only.
func WithKeys(r scheduler.Rate, opts ...shaper.Option) Option {
	return func(c *config) { c.keyRate, c.keyOpts, c.ofQueue = r, opts, "limits of keys" }
}

// WithJobContext sets what the contexts of the messages' jobs come from. The default is that of
// [Drain] without its end: jobs run on when the taking ends. It is for Drain only.
func WithJobContext(ctx context.Context) Option {
	return func(c *config) { c.jobs = ctx }
}

// WithErrorHandler sets the function that hears of
//
//   - each job that failed: the error that it returned, or a [*PanicError];
//   - each accepted job that will not run and that no caller gets back: an
//     [*UnrunError], as it has expired, could never leave, or from [Queue.Close] or [Drain];
//   - the error of a line that was closed, once;
//   - in a Drain, what Extend, Return, Done and Dead of a message have returned.
//
// f is called on the goroutine of a job that failed, before its worker is free, so f may run in
// several goroutines at once and a slow f occupies a worker. What has not run is told on a
// goroutine for that, one after another; by [Queue.Close] on that of its caller. No lock is held. A
// panic or Goexit of f costs neither a worker nor a job; the panic is logged through [log/slog].
//
// f must not wait for [Queue.Shutdown], which waits for f.
//
// Without this option a *PanicError, an *UnrunError and the errors of a message's methods are
// logged through the default logger of log/slog, because nothing else would tell of them. The
// errors that jobs return are then only counted.
func WithErrorHandler(f func(error)) Option {
	return func(c *config) { c.handler = f }
}

// newConfig applies opts to the defaults and validates the result.
func newConfig(opts []Option) (config, error) {
	c := config{
		workers: defaultWorkers, perKey: unbounded, capacity: defaultCapacity, capacityPerKey: unbounded,
		maxDelayed: defaultMaxDelayed, keyRate: scheduler.Unlimited, handler: logLost,
	}
	for _, o := range opts {
		o(&c)
	}
	for _, bound := range []struct {
		what string
		n    int
	}{
		{"workers", c.workers}, {"workers per key", c.perKey}, {"capacity", c.capacity},
		{"capacity per key", c.capacityPerKey}, {"delayed jobs", c.maxDelayed},
	} {
		if bound.n < 1 {
			return c, fmt.Errorf("queue: %s %d: must be at least 1", bound.what, bound.n)
		}
	}
	if c.handler == nil {
		return c, errors.New("queue: nil error handler")
	}
	return c, nil
}
