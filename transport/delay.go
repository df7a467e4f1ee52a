package transport

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluice-go/sluice/internal/reason"
	"github.com/sluice-go/sluice/transport/internal/engine"
)

// ErrMaxDelay is the reason for refusing a request that would wait, or has waited, longer
// than [WithMaxDelay] allows. It matches, by [errors.Is], what bears its name in the other
// packages of this module.
var ErrMaxDelay = reason.New("transport", "max_delay", "wait exceeds the maximum delay")

// delayError is an ErrMaxDelay. It is a timeout, but not that of the caller's context,
// which goes on: so it does not match what the Waiter has said about a deadline.
type delayError struct {
	limit  time.Duration
	reason error
}

func (e *delayError) Error() string            { return fmt.Sprintf("%v of %v", ErrMaxDelay, e.limit) }
func (e *delayError) Is(target error) bool     { return errors.Is(ErrMaxDelay, target) }
func (e *delayError) Label() string            { return reason.Label(ErrMaxDelay) }
func (e *delayError) Timeout() bool            { return true }
func (e *delayError) WouldWait() time.Duration { return engine.WouldWait(e.reason) }
func (e *delayError) HeldUntil() time.Time     { return engine.HeldUntil(e.reason) }

// delayed calls wait with a context that ends when a request which has arrived then has
// waited for too long: for longer than the bound, as what leaves at the instant of a deadline
// is late.
func (t *Transport) delayed(ctx context.Context, arrived time.Time, wait func(context.Context) error) error {
	limit := arrived.Add(t.maxDelay).Add(1)
	if deadline, ok := ctx.Deadline(); t.maxDelay == 0 || ok && !limit.Before(deadline) {
		return wait(ctx)
	}
	mine, cancel := context.WithDeadline(ctx, limit)
	defer cancel()
	err := wait(mine)
	if err == nil || ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return &delayError{limit: t.maxDelay, reason: err}
}
