// Package limiter understands what x/time's *rate.Limiter answers, without importing it.
package limiter

import (
	"context"
	"errors"
	"time"
)

// A Limiter is what tells x/time's *rate.Limiter from other Waiters. It refuses at once, with
// an error that has no type, what costs more than its burst and what cannot leave before the
// deadline of the context.
type Limiter interface {
	Burst() int
	Tokens() float64
}

// Explain returns both waits of a Waiter, of which waitN may be nil, unless it is a Limiter:
// then what they return says by [Wait] what it is about.
func Explain(
	waiter any,
	wait func(ctx context.Context, key string) error,
	waitN func(ctx context.Context, key string, cost int) error,
) (func(ctx context.Context, key string) error, func(ctx context.Context, key string, cost int) error) {
	l, ok := waiter.(Limiter)
	if !ok {
		return wait, waitN
	}
	one := func(ctx context.Context, key string) error {
		return Wait(ctx, l, 1, func(ctx context.Context) error { return wait(ctx, key) })
	}
	if waitN == nil {
		return one, nil
	}
	return one, func(ctx context.Context, key string, cost int) error {
		return Wait(ctx, l, cost, func(ctx context.Context) error { return waitN(ctx, key, cost) })
	}
}

// Wait calls wait, which is l's, for a call of the given cost. A refusal for the deadline
// of ctx comes back as an error that matches [context.DeadlineExceeded] and is a timeout.
//
// x/time lets a call leave at the very instant of the deadline, and asks the context then
// which of the two came first. So it is shown a deadline that is a nanosecond earlier: what
// leaves, leaves before the deadline.
func Wait(ctx context.Context, l Limiter, cost int, wait func(context.Context) error) error {
	deadline, dated := ctx.Deadline()
	if !dated {
		return wait(ctx)
	}
	err := wait(earlier{ctx, deadline.Add(-1)})
	switch {
	case err == nil, ctx.Err() != nil, cost > l.Burst(), typed(err):
		return err
	}
	return &deadlineError{err}
}

// typed reports whether an error tells by itself whether time was the reason.
func typed(err error) bool {
	_, timed := errors.AsType[timeout](err)
	return timed || errors.Is(err, context.Canceled)
}

type timeout interface {
	error
	Timeout() bool
}

// earlier is a context that tells another deadline.
type earlier struct {
	context.Context
	deadline time.Time
}

func (c earlier) Deadline() (time.Time, bool) { return c.deadline, true }

type deadlineError struct{ reason error }

func (e *deadlineError) Error() string        { return e.reason.Error() }
func (e *deadlineError) Unwrap() error        { return e.reason }
func (e *deadlineError) Is(target error) bool { return target == context.DeadlineExceeded }
func (e *deadlineError) Timeout() bool        { return true }
