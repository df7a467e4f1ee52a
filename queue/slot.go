package queue

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// A Waiter sets the pace: Wait returns nil when one job may start, and an error if it may
// not. It must be safe for concurrent use and return soon after ctx ends.
//
// An error that has a method WouldWait() time.Duration with a positive result says "not
// now": the caller is asked to come again after that long. A Waiter that does not know
// how long says 1 ns, and is asked ever more rarely, ten times a second in the end. Every
// other error is final.
//
// *shaper.Shaper and x/time's *rate.Limiter are Waiters. One that bounds what is in flight is
// [Places] as well.
type Waiter interface {
	Wait(ctx context.Context) error
}

// Places is a Waiter that may bound how many jobs run, as *shaper.Shaper does. While
// MaxInFlight is above 0, a slot is what Acquire grants, and it counts as in flight until
// Release, which is called once the job has ended.
type Places interface {
	MaxInFlight() int
	Acquire(ctx context.Context, cost int) error
	Release()
}

// Between two attempts at a slot a worker sleeps as long as the Waiter said, within these
// bounds: the lower one keeps it from spinning, the upper one from oversleeping a change,
// such as a hold that is lifted. Where the Waiter does not know, the lower one doubles
// with each attempt, up to maxSpin.
const (
	minRetry = time.Millisecond
	maxSpin  = 100 * time.Millisecond
	maxRetry = time.Minute
	unknown  = time.Microsecond // a wait below that is none that was reckoned
)

// A slot is what a job needs to start. It is released once the job has ended, or will not start.
type slot struct{ places Places } // nil: no bound counts it

func (s *slot) release() {
	if s.places != nil {
		s.places.Release()
		s.places = nil
	}
}

// ask waits for a slot as the Waiter does.
func (s *slot) ask(ctx context.Context, w Waiter) error {
	if p, ok := w.(Places); ok && p.MaxInFlight() > 0 {
		err := p.Acquire(ctx, 1)
		if err == nil {
			s.places = p
		}
		return err
	}
	return w.Wait(ctx)
}

// obtain blocks until w grants a slot; one that it has already is given back. Being told to come
// later is no failure: obtain comes later. It returns the error of ctx if that ended first, and
// otherwise an error that is final.
func (s *slot) obtain(ctx context.Context, w Waiter) error {
	s.release()
	ctx = undated{ctx}
	least := minRetry
	for {
		err := s.ask(ctx, w)
		if err == nil {
			return nil
		}
		// Whatever w says of a context that has ended is about the context.
		if ctx.Err() != nil {
			return ctx.Err()
		}
		later := comeAgain(err)
		if later <= 0 {
			return fmt.Errorf("queue: waiter: %w", err)
		}
		if err := sleep(ctx, min(max(later, least), maxRetry)); err != nil {
			return err
		}
		if later < unknown {
			least = min(2*least, maxSpin)
		} else {
			least = minRetry
		}
	}
}

// comeAgain returns after how long the Waiter is to be asked again, or 0 if its error is
// final.
func comeAgain(err error) time.Duration {
	if later, ok := errors.AsType[interface {
		error
		WouldWait() time.Duration
	}](err); ok {
		return max(later.WouldWait(), 0)
	}
	return 0
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

// undated is a context whose deadline still ends it but is not shown. A Waiter that knows
// the deadline refuses early what cannot leave before it, which is right for a call and
// wrong here: no job is at stake while a worker waits, and x/time's refusal could not be
// told from one that is final.
type undated struct{ context.Context }

func (undated) Deadline() (time.Time, bool) { return time.Time{}, false }
