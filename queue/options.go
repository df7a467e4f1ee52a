package queue

import (
	"errors"
	"fmt"
)

const (
	defaultWorkers  = 1
	defaultCapacity = 1024
)

// An Option changes one setting of [New] or [Drain]. A nil Option is a programming error
// and panics.
type Option func(*config)

type config struct {
	workers     int
	capacity    int
	capacitySet bool
	handler     func(error)
}

// WithWorkers sets how many jobs may run at the same time. Default 1.
func WithWorkers(n int) Option {
	return func(c *config) { c.workers = n }
}

// WithCapacity sets how many jobs may wait in the line of a [Queue]; running ones do not
// count. Default 1024. [Drain] has no line and refuses this option.
func WithCapacity(n int) Option {
	return func(c *config) { c.capacity, c.capacitySet = n, true }
}

// WithErrorHandler sets the function that hears of
//
//   - each job that failed: the error that it returned, or a [*PanicError];
//   - each accepted job that will not run and that no caller gets back: an
//     [*UnrunError], from [Queue.Close] or [Drain];
//   - the error of a Waiter that stopped a [Queue], once.
//
// A worker calls f on its own goroutine before it turns to the next job, so f may run in
// several goroutines at once and a slow f occupies a worker. [Queue.Close] calls f on the
// goroutine of its caller. No lock is held. A panic or Goexit of f costs neither a worker
// nor a job; the panic is logged through [log/slog].
//
// f must not wait for [Queue.Shutdown], which waits for f.
//
// Without this option a *PanicError and an *UnrunError are logged through the default
// logger of log/slog, because nothing else would tell of them. The errors that jobs
// return are then only counted.
func WithErrorHandler(f func(error)) Option {
	return func(c *config) { c.handler = f }
}

// newConfig applies opts to the defaults and validates the result.
func newConfig(opts []Option) (config, error) {
	c := config{workers: defaultWorkers, capacity: defaultCapacity, handler: logLost}
	for _, o := range opts {
		o(&c)
	}
	switch {
	case c.workers < 1:
		return c, fmt.Errorf("queue: workers %d: must be at least 1", c.workers)
	case c.capacity < 1:
		return c, fmt.Errorf("queue: capacity %d: must be at least 1", c.capacity)
	case c.handler == nil:
		return c, errors.New("queue: nil error handler")
	}
	return c, nil
}
