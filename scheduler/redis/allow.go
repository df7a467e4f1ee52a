package redis

import (
	"context"
	"fmt"
	"time"
)

// A Decision is what a meter says of a call. Its times are lengths of time, which mean
// the same on all clocks.
type Decision struct {
	OK         bool          // the call may leave, and has been charged
	RetryAfter time.Duration // if not: when it may, if no other call takes the slot; 0 if OK
	ResetAfter time.Duration // until nothing is owed any more
}

// Allow is the limit as a meter: it asks Redis, in one step, whether a call of n units
// may leave now, and charges it if so. It never takes a slot ahead, so it never overtakes
// calls that wait. A cost above the burst needs a full bucket, and is paid off afterwards.
//
// RetryAfter is exact to the microsecond: after it the call is allowed, and before it is
// not, if no other call is asked about meanwhile.
//
// It returns the error of ctx, an error about a cost below 1 or above
// [Schedule.MaxCost], [ErrClosed], and with [FailClosed] an [*UnavailableError]. With the
// other policies it decides without Redis while that is away.
func (s *Schedule) Allow(ctx context.Context, n int64) (Decision, error) {
	s.mustBeMade()
	if err := ctx.Err(); err != nil {
		return Decision{}, err
	}
	if n < 1 || n > s.MaxCost() {
		return Decision{}, fmt.Errorf("redis: cost %d: must be from 1 to %d", n, s.MaxCost())
	}
	if err := s.link.failure(); err != nil {
		return s.alone(n, err)
	}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return Decision{}, ErrClosed
	}
	r := request{units: n, known: s.told, rejoin: s.rejoins, forfeits: s.even}
	s.rejoins, s.even = false, false
	s.counts.Steps++
	s.mu.Unlock()

	got, err := s.link.step(ctx, s.keys, s.pace, s.burst, r)
	if err != nil {
		s.mu.Lock()
		s.counts.Failed++
		s.rejoins = s.rejoins || r.rejoin
		s.even = s.even || r.forfeits
		s.mu.Unlock()
		if ctx.Err() != nil {
			return Decision{}, ctx.Err()
		}
		s.link.failed(err)
		return s.alone(n, s.link.failure())
	}
	s.link.answered()
	received := s.config.now()
	s.mu.Lock()
	tail := s.pace.add(got.tat, got.granted)
	s.tail = received.Add(s.pace.after(tail, got.now))
	s.told = told{tail, got.now}
	s.counts.Reserved += got.granted
	s.counts.Used += got.granted
	s.mu.Unlock()
	if got.granted > 0 {
		return Decision{OK: true, ResetAfter: s.pace.after(s.pace.add(got.tat, n), got.now)}, nil
	}
	due := s.pace.sub(got.tat, s.burst-min(n, s.burst))
	return Decision{
		RetryAfter: roundUp(s.pace.after(due, got.now), time.Microsecond),
		ResetAfter: s.pace.after(got.tat, got.now),
	}, nil
}

// alone decides by the policy.
func (s *Schedule) alone(n int64, why *UnavailableError) (Decision, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.config.now()
	s.lookAtStoreLocked(now)
	s.planLocked(now, 0, 0) // which looks for the store
	switch {
	case s.closed:
		return Decision{}, ErrClosed
	case s.policy.kind == open:
		s.counts.Alone += n
		return Decision{OK: true}, nil
	case s.policy.kind == closed && why != nil:
		return Decision{}, why
	case s.share == nil:
		return Decision{RetryAfter: probeEvery}, nil // it has come back this very moment
	}
	at := s.share.Next(now, 0, n)
	if at.After(now) {
		return Decision{RetryAfter: at.Sub(now), ResetAfter: s.share.TAT().Sub(now)}, nil
	}
	s.share.Commit(at, now, n)
	s.counts.Alone += n
	return Decision{OK: true, ResetAfter: s.share.TAT().Sub(now)}, nil
}

func roundUp(d, unit time.Duration) time.Duration {
	if rest := d % unit; rest > 0 {
		d += unit - rest
	}
	return d
}
