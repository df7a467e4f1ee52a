package engine

import (
	"context"
	"errors"
	"time"
)

// Again returns before when a call must not be sent again, after so many attempts, whatever the
// Waiter says: nothing of its key waits for a failure to send, or for what holds no other call.
func (e *Engine) Again(c *Call, answered bool, sent int) time.Time {
	switch {
	case !answered || c.Alone:
		return time.Now().Add(Backoff(sent))
	case e.Hold == nil:
		return c.Until // nothing else keeps it back
	}
	return time.Time{}
}

// OutOfTime reports whether a call that must not be sent before then cannot be sent again before
// it would be given up, as far as is known. Its answer must not wait for anything.
func (e *Engine) OutOfTime(ctx context.Context, c *Call, then time.Time, maxDelay time.Duration) bool {
	now := time.Now()
	if !c.Alone && c.Until.After(then) {
		then = c.Until
	}
	if e.Delay != nil {
		if due := now.Add(e.Delay(c.Key)); due.After(then) {
			then = due
		}
	}
	deadline, ok := ctx.Deadline()
	return ok && !then.Before(deadline) || maxDelay > 0 && then.After(now.Add(maxDelay))
}

// WaitUntil is Wait for a call that must not be sent before then.
func (e *Engine) WaitUntil(ctx context.Context, c *Call, then time.Time) error {
	if err := sleepUntil(ctx, then); err != nil {
		return err
	}
	return e.Wait(ctx, c)
}

// sleepUntil waits until then. It does not begin to if ctx ends before.
func sleepUntil(ctx context.Context, then time.Time) error {
	d := time.Until(then)
	if d <= 0 {
		return ctx.Err()
	}
	if deadline, ok := ctx.Deadline(); ok && !then.Before(deadline) {
		return context.DeadlineExceeded
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// WouldWait returns the wait that a Waiter has predicted in its error, and 0 if it is unknown.
func WouldWait(reason error) time.Duration {
	var predicted interface{ WouldWait() time.Duration }
	if errors.As(reason, &predicted) && predicted.WouldWait() > 1 {
		return predicted.WouldWait()
	}
	return 0
}

// HeldUntil returns the end of the hold that a Waiter tells of in its error; zero if there is none.
func HeldUntil(reason error) time.Time {
	var held interface{ HeldUntil() time.Time }
	if errors.As(reason, &held) {
		return held.HeldUntil()
	}
	return time.Time{}
}

// Blame returns the hold that a call which was not sent is told of, and the status of the answer
// that has set it; 0 if it is not the partner's. A call whose time was up may have waited for
// something else than the Waiter, or for one that does not tell.
func (e *Engine) Blame(key string, reason error, timeUp bool) (until time.Time, status int) {
	until = HeldUntil(reason)
	if e.Hold == nil || until.IsZero() && !timeUp {
		return until, 0
	}
	held, status := e.heldBy(key)
	if until.IsZero() && status != 0 {
		until = held
	}
	return until, status
}
