package shaper

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// The reasons for a refusal. The error that a caller gets is a [*Refusal] that
// matches one of them by [errors.Is].
var (
	// ErrQueueFull: the line holds as many calls as it may, or its backlog is as
	// long as it may be.
	ErrQueueFull = errors.New("shaper: queue full")
	// ErrMaxDelay: the call would wait longer than [WithMaxDelay] allows.
	ErrMaxDelay = errors.New("shaper: wait exceeds the maximum delay")
	// ErrDeadline: the call would not leave before the deadline of its context.
	// Such a refusal matches [context.DeadlineExceeded] too.
	ErrDeadline = errors.New("shaper: wait exceeds the context deadline")
	// ErrCost: the cost is below 1, or so high that it could never leave.
	ErrCost = errors.New("shaper: cost out of range")
	// ErrClosed: the Shaper was closed or is shutting down.
	ErrClosed = errors.New("shaper: closed")
)

// A Refusal is the error of every call that is turned away. The call has taken no
// slot, and nothing that waits was delayed by it.
type Refusal struct {
	Reason error         // matches one of the Err variables of this package; of a Group's key also what is wrong with it
	Cost   int           // the cost of the call, in units
	Delay  time.Duration // the wait that it would have needed; 0 if there is none that would do

	heldUntil time.Time
}

func (r *Refusal) Error() string {
	hold := ""
	if !r.heldUntil.IsZero() {
		hold = ", held until " + r.heldUntil.UTC().Format(time.RFC3339)
	}
	if r.Delay > 0 {
		return fmt.Sprintf("%v (cost %d, would wait %v%s)", r.Reason, r.Cost, r.Delay, hold)
	}
	return fmt.Sprintf("%v (cost %d%s)", r.Reason, r.Cost, hold)
}

// Unwrap returns the reason.
func (r *Refusal) Unwrap() error { return r.Reason }

// Is lets a refusal for a deadline match [context.DeadlineExceeded], as if the
// deadline had been waited for.
func (r *Refusal) Is(target error) bool {
	return target == context.DeadlineExceeded && r.Reason == ErrDeadline
}

// Timeout reports whether time was the reason: [ErrDeadline] or [ErrMaxDelay].
// With it the refusal is a net.Error, and [os.IsTimeout] knows it.
func (r *Refusal) Timeout() bool {
	return r.Reason == ErrDeadline || r.Reason == ErrMaxDelay
}

// Temporary is always false. It completes net.Error; clients that ask it would send
// again at once if it were true.
func (r *Refusal) Temporary() bool { return false }

// HeldUntil returns when the hold ends that was in force ([Shaper.HoldUntil]), or
// the zero Time if the call was refused for the pace alone: it tells a partner's hold
// from one's own limits.
func (r *Refusal) HeldUntil() time.Time { return r.heldUntil }

// WouldWait returns Delay, and 1 ns after [ErrTooManyKeys], which passes at a time that is
// unknown: it is positive when coming again makes sense. Packages that know no Shaper read
// it through an interface of this one method.
func (r *Refusal) WouldWait() time.Duration {
	if errors.Is(r.Reason, ErrTooManyKeys) {
		return max(r.Delay, 1)
	}
	return r.Delay
}
