package redis

import (
	"context"
	"fmt"
	"time"
)

// A Decision is what a meter says of a call. Its times are lengths of time, which mean the same
// on all clocks.
type Decision struct {
	OK         bool          // the call may leave, and has been charged
	RetryAfter time.Duration // if not: when it may, if no other call takes the slot; 0 if OK
	ResetAfter time.Duration // until nothing is owed any more
}

// Allow is the limit as a meter: it asks Redis, in one step, whether a call of n units may leave
// now, and charges it if so. It never takes a slot ahead, so it never overtakes calls that wait. A
// cost above the burst needs a full bucket, and is paid off afterwards.
//
// RetryAfter is exact to the microsecond: after it the call is allowed, and before it is not, if
// no other call is asked about and no slot comes back meanwhile.
//
// It returns the error of ctx, an error about a cost below 1 or above [Schedule.MaxCost],
// [ErrClosed], and with [FailClosed] an [*UnavailableError]. With the other policies it decides
// without Redis while that is away.
func (s *Schedule) Allow(ctx context.Context, n int64) (Decision, error) {
	s.mustBeMade()
	if err := ctx.Err(); err != nil {
		return Decision{}, err
	}
	if n < 1 || n > s.most {
		return Decision{}, fmt.Errorf("redis: cost %d: must be from 1 to %d", n, s.most)
	}
	at := s.link.standing()
	if at.err != nil {
		return s.alone(n)
	}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return Decision{}, ErrClosed
	}
	now := s.config.now()
	s.lookAtStoreLocked(now)
	free := s.link.newLane
	if last := len(s.meters) - 1; last >= 0 {
		reused := s.meters[last]
		s.meters = s.meters[:last]
		free = func() *lane { return reused }
	}
	meter := free()
	r := s.request(meter, now)
	r.cost, r.lead, r.within = n, min(n, s.burst), 0
	r.even, s.even = s.even, false
	if s.rejoins {
		r.settle = probeEvery + s.link.timeout
		s.rejoins = false
	}
	s.counts.Steps++
	s.mu.Unlock()

	var got paceReply
	err := s.link.ask(ctx, &r.header, !at.up, func(ctx context.Context) (heard, error) {
		var err error
		got, err = s.link.store.pace(ctx, s.key, r)
		return got.heard, err
	})
	received := s.config.now()
	s.mu.Lock()
	meter.sent(r.header, now, err)
	s.meters = append(s.meters, meter)
	if err != nil {
		s.counts.Failed++
		s.rejoins = s.rejoins || r.settle > 0
		s.even = s.even || r.even
		s.mu.Unlock()
		if ctx.Err() != nil {
			return Decision{}, ctx.Err()
		}
		s.link.answered(err)
		return s.alone(n)
	}
	rows := got.rows
	got.rows = nil
	s.accept(r, got, received)
	ok := len(rows) > 0
	if ok {
		s.counts.Reserved += n
		s.counts.Used += n
	}
	s.mu.Unlock()
	s.link.answered(nil)
	reset := time.Duration(got.tat-got.now) * time.Microsecond
	if ok {
		return Decision{OK: true, ResetAfter: reset}, nil
	}
	return Decision{RetryAfter: roundUp(s.pace.after(got.next, got.now), time.Microsecond), ResetAfter: reset}, nil
}

// alone decides by the policy.
func (s *Schedule) alone(n int64) (Decision, error) {
	if err := s.Refusal(); err != nil {
		return Decision{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.config.now()
	s.planLocked(now) // which looks for the store
	switch {
	case s.standing.err == nil:
		return Decision{RetryAfter: probeEvery}, nil // it has come back this very moment
	case s.policy.kind == open:
		s.counts.Alone += n
		return Decision{OK: true}, nil
	}
	at := s.share.Next(now, 0, n)
	if at.After(now) {
		return Decision{RetryAfter: at.Sub(now), ResetAfter: at.Sub(now)}, nil
	}
	s.share.Commit(at, now, n)
	s.counts.Alone += n
	return Decision{OK: true}, nil
}

func roundUp(d, unit time.Duration) time.Duration {
	if rest := d % unit; rest > 0 {
		d += unit - rest
	}
	return d
}
