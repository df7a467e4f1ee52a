package shaper

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluice-go/sluice/internal/reason"
)

// The reasons for a refusal. The error that a caller gets is a [*Refusal] that
// matches one of them by [errors.Is]. Each also matches what bears its name in the other
// packages of this module: queue.ErrClosed matches ErrClosed, and the reverse.
var (
	// ErrQueueFull: the line holds as many calls as it may, or its backlog is as
	// long as it may be.
	ErrQueueFull = reason.New("shaper", "queue_full", "queue full")
	// ErrMaxDelay: the call would wait longer than [WithMaxDelay] allows.
	ErrMaxDelay = reason.New("shaper", "max_delay", "wait exceeds the maximum delay")
	// ErrDeadline: the call would not leave before its deadline, which is that of its context.
	// Such a refusal matches [context.DeadlineExceeded] too.
	ErrDeadline = reason.New("shaper", "deadline", "wait exceeds the deadline")
	// ErrCost: the cost is below 1, or so high that it could never leave.
	ErrCost = reason.New("shaper", "cost", "cost out of range")
	// ErrClosed: the Shaper was closed or is shutting down.
	ErrClosed = reason.New("shaper", "closed", "closed")
	// ErrTooManyKeys: the [Group] remembers as many keys as it may, and none of them can
	// be forgotten yet.
	ErrTooManyKeys = reason.New("shaper", "too_many_keys", "too many keys")
)

// A Refusal is the error of every call that is turned away. The call has taken no
// slot, and nothing that waits was delayed by it.
type Refusal struct {
	Reason error         // matches one of the Err variables of this package; of a Group's key also what is wrong with it
	Cost   int           // the cost of the call, in units
	Class  int           // its class; see WithClasses
	Delay  time.Duration // the wait that it would have needed; 0 if that is unknown, or no wait would do

	heldUntil time.Time
}

// Error tells the reason, the cost, the wait if it is known, and the end of a hold that
// is in force. The wait is rounded.
func (r *Refusal) Error() string {
	wait, hold := "", ""
	if r.Delay > 0 {
		wait = fmt.Sprintf(", would wait %v", reason.Round(r.Delay))
	}
	if !r.heldUntil.IsZero() {
		hold = ", held until " + r.heldUntil.UTC().Format(time.RFC3339)
	}
	return fmt.Sprintf("%v (cost %d%s%s)", r.Reason, r.Cost, wait, hold)
}

// Brief is the text of the error without the wait and the hold, for an error around it
// that tells these itself.
func (r *Refusal) Brief() string { return fmt.Sprintf("%v (cost %d)", r.Reason, r.Cost) }

// Label returns the reason as a short word that stays as it is from version to version,
// for a label of a metric, say:
//
//	queue_full      ErrQueueFull
//	max_delay       ErrMaxDelay
//	deadline        ErrDeadline
//	cost            ErrCost
//	closed          ErrClosed
//	too_many_keys   ErrTooManyKeys
//	other           none of them
//
// A reason from elsewhere that has a method Label itself is told by that.
func (r *Refusal) Label() string { return reason.Label(r.Reason) }

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

// WouldWait returns Delay. Where the wait is unknown it is 1 ns if the call may fare better
// later, as behind a pause or when a place in flight is free again: it is positive when
// coming again makes sense. A reason from elsewhere that has a method WouldWait itself is told by
// that. Packages that know no Shaper read it through an interface of this one method.
func (r *Refusal) WouldWait() time.Duration {
	switch reason.Label(r.Reason) {
	case "queue_full", "max_delay", "deadline", "too_many_keys":
		return max(r.Delay, 1)
	}
	if later, ok := errors.AsType[interface {
		error
		WouldWait() time.Duration
	}](r.Reason); ok {
		return max(r.Delay, later.WouldWait())
	}
	return r.Delay
}
