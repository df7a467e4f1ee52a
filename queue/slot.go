package queue

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// A Waiter sets the pace: Wait returns nil when one job may start, and an error if it may not. It must be safe for
// concurrent use and return soon after ctx ends.
//
// An error that has a method WouldWait() time.Duration with a positive result says "not now": the caller is asked to
// come again after that long. Every other error is final. *shaper.Shaper and x/time's *rate.Limiter are Waiters.
type Waiter interface {
	Wait(ctx context.Context) error
}

// Between two attempts at a slot a worker sleeps as long as the Waiter said, within these bounds: the lower one keeps
// it from spinning, the upper one from oversleeping a change, such as a hold that is lifted.
const (
	minRetry = time.Millisecond
	maxRetry = time.Minute
)

// obtain blocks until w grants one slot. Being told to come later is no failure: obtain comes later. It returns the
// error of ctx if that ended first, and otherwise an error that is final.
func obtain(ctx context.Context, w Waiter) error {
	ctx = undated{ctx}
	for {
		err := w.Wait(ctx)
		if err == nil {
			return nil
		}
		// Whatever w says of a context that has ended is about the context.
		if ctx.Err() != nil {
			return ctx.Err()
		}
		later, ok := errors.AsType[interface {
			error
			WouldWait() time.Duration
		}](err)
		if !ok || later.WouldWait() <= 0 {
			return fmt.Errorf("queue: waiter: %w", err)
		}
		if err := sleep(ctx, min(max(later.WouldWait(), minRetry), maxRetry)); err != nil {
			return err
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// undated is a context whose deadline still ends it but is not shown. A Waiter that knows the deadline refuses early
// what cannot leave before it, which is right for a call and wrong here: no job is at stake while a worker waits, and
// x/time's refusal could not be told from one that is final.
type undated struct{ context.Context }

func (undated) Deadline() (time.Time, bool) { return time.Time{}, false }
