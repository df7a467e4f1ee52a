// Package engine reads what a partner's answers mean for the calls to come, for each key: it
// holds a line, backs off, sends one call to try, lowers a rate, and bounds retries. All that
// talk to partners through a Waiter go by it.
//
// A call goes through Wait, or through LeaveNow and Ready; what it is answered is told by
// Answered. Whether a key is held the Waiter knows, if it tells (Waiter.Held): nothing here
// keeps a time of its own then.
//
//	         refused                       the hold ends
//	free ─────────────▶ held ──────────────────────────────────▶ free
//	  ▲                   │ it was cut to MaxHold                  │
//	  │ served            ▼                                        │ refused
//	  └──────────────── trial: one call goes, others wait ◀───────┘ above MaxHold
package engine

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice/internal/reason"
	"github.com/sluice-go/sluice/transport/feedback"
)

// An Engine is safe for concurrent use if its Waiter is. Its exported fields must not be changed
// once it is in use.
type Engine struct {
	Waiter
	MaxHold time.Duration // the longest hold
	Floor   int64         // of the adaptive rate, in parts of Whole; 0: not adaptive
	Budget  Budget
	memory  memory
	flying  atomic.Int64 // calls that are sent and not answered, if all have one key
}

// A Call is one request on its way, an attempt of it at a time. It is for one goroutine.
type Call struct {
	Key     string
	Cost    int64
	Settles bool      // its cost is to be settled
	Later   *Settling // by whom, beside the one who has the answer; or nil
	Finding           // of the latest answer

	asked  int64 // how many holds were known when the Waiter was asked last
	known  int64 // how many refusals were known when it was sent
	placed bool  // it has a place among those in flight
	flies  bool  // it is counted among those that are sent and not answered
	trial  *trial
	settle func(actual int) error
}

// A Finding is what an answer means.
type Finding struct {
	Verdict feedback.Verdict
	Until   time.Time // the end of the hold, if that is a refusal, or Spent
	Alone   bool      // that refusal holds no other call
}

// Idle reports whether no key is remembered, so that the Waiter alone decides.
func (e *Engine) Idle() bool { return e.memory.empty() }

// LeaveNow asks the Waiter, if it can tell at once, and reports whether the call may be sent.
// What costs nothing, or less, must get its refusal: a Waiter might take it for capacity handed
// back.
func (e *Engine) LeaveNow(c *Call) bool {
	if e.Waiter.LeaveNow == nil || c.Settles || c.Cost < 1 || int64(int(c.Cost)) != c.Cost || e.Places(c.Key) {
		return false
	}
	c.asked = e.memory.known()
	return e.Waiter.LeaveNow(c.Key, int(c.Cost)) && e.Ready(c) == nil
}

// Wait waits until the call may be sent, as far as the Waiter and the partner are concerned.
func (e *Engine) Wait(ctx context.Context, c *Call) error {
	for {
		if err := e.owes(c.Key); err != nil {
			return err
		}
		c.asked = e.memory.known()
		if err := e.leave(ctx, c); err != nil {
			return err
		}
		inTheWay := e.Ready(c)
		if inTheWay == nil {
			c.Later.left(c.settle)
			return nil
		}
		e.Free(c)
		c.Settle(0) // it has not left
		if err := inTheWay(ctx); err != nil {
			return err
		}
	}
}

// leave waits for the units of a call, which Payable has allowed, and for its place.
func (e *Engine) leave(ctx context.Context, c *Call) (err error) {
	places := e.Places(c.Key)
	switch {
	case c.Settles:
		c.settle, err = e.Depart(ctx, c.Key, int(c.Cost), places)
		c.placed = places && err == nil
		return err
	case places:
		err := e.Acquire(ctx, c.Key, int(c.Cost))
		c.placed = err == nil
		return err
	}
	return e.Units(ctx, c.Key, c.Cost)
}

// Units waits for units alone: for a part of what has left already.
func (e *Engine) Units(ctx context.Context, key string, cost int64) error {
	if cost == 1 {
		return e.Waiter.Wait(ctx, key)
	}
	return e.WaitN(ctx, key, int(cost))
}

// Places reports whether a call of the key needs a place among those in flight. It waits for
// that in the line in which it waits for its turn, so that what that tells, and refuses, is
// about both.
func (e *Engine) Places(key string) bool { return e.MaxInFlight != nil && e.MaxInFlight(key) > 0 }

// Free gives the place of a call back, if it has one. The call has ended then.
func (e *Engine) Free(c *Call) {
	e.Ended(c)
	if e.Placed(c) {
		e.Release(c.Key)
	}
}

// Placed reports whether the call has a place, which is to be given back by Release from now
// on.
func (e *Engine) Placed(c *Call) bool {
	placed := c.placed
	c.placed = false
	return placed
}

// ErrCost is transport.ErrCost.
var ErrCost = reason.New("transport", "cost", "cost cannot be paid")

// Payable returns why the Waiter cannot take a cost.
func (e *Engine) Payable(cost int64) error {
	switch {
	case cost == 1: // at every Waiter
		return nil
	case cost < 1:
		// Not left to the Waiter: x/time's Limiter takes a negative cost as
		// capacity handed back.
		return fmt.Errorf("%w: %d is below 1", ErrCost, cost)
	case e.WaitN == nil:
		return fmt.Errorf("%w: %d asked of a Waiter without WaitN", ErrCost, cost)
	case int64(int(cost)) != cost:
		// On 32-bit machines. Cut to size it would be a small cost, or a negative
		// one.
		return fmt.Errorf("%w: %d does not fit an int", ErrCost, cost)
	}
	return nil
}
