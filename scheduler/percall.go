package scheduler

import (
	"encoding"
	"time"
)

// PerCall returns the schedule as one that counts calls, whatever they cost: beside a limit of
// tokens a minute it keeps one of requests a minute. Keep the two together with [All], or by
// shaper.WithLimits:
//
//	shaper.New(tokens, shaper.WithLimits(scheduler.PerCall(requests)))
//
// It counts one for each departure, so its MaxCost is the largest int64.
// How many calls units ahead will be it cannot know: for ahead > 0 its Next takes them for a
// single one, which is a lower bound. To settle a departure changes nothing about it: it was
// a call. Its rate is none of units, so it is neither a [Rated] nor a [RateSetter]; of the
// others it is what the schedule is.
//
// A nil Scheduler is a programming error and panics.
func PerCall(s Scheduler) Scheduler {
	if s == nil {
		panic("scheduler: PerCall: nil Scheduler")
	}
	c := perCall{s}
	if _, ok := s.(Notifier); ok {
		return notifiedPerCall{c, herald{all{s}}, keeper{all{s}}}
	}
	return c
}

type perCall struct{ calls Scheduler }

// A schedule that notifies is one that processes share, as is one to which holds are passed on.
type notifiedPerCall struct {
	perCall
	herald
	keeper
}

// Next implements [Scheduler].
func (c perCall) Next(t time.Time, ahead, n int64) time.Time {
	return c.calls.Next(t, min(ahead, 1), 1)
}

// Commit implements [Scheduler].
func (c perCall) Commit(due, left time.Time, n int64) { c.calls.Commit(due, left, 1) }

// MaxCost returns the largest int64, as a call of any cost is one; 0 if the schedule is a zero
// value.
func (c perCall) MaxCost() int64 {
	if c.calls.MaxCost() < 1 {
		return 0
	}
	return maxInt64
}

// Limits returns the schedule itself. What concerns it alone, such as to load its state, is
// done to it.
func (c perCall) Limits() []Scheduler { return []Scheduler{c.calls} }

// Forfeit implements [Forfeiter]: of the calls that might leave one may.
func (c perCall) Forfeit(t time.Time, keep int64) { all{c.calls}.Forfeit(t, 1) }

// Forfeited implements [Forfeiter].
func (c perCall) Forfeited(t time.Time, keep int64) Scheduler {
	if s, ok := c.calls.(Forfeiter); ok {
		return perCall{s.Forfeited(t, 1)}
	}
	return c
}

// Tolerance implements [Tolerant].
func (c perCall) Tolerance() time.Duration { return all{c.calls}.Tolerance() }

// Demand implements [Demander]. Units that wait are taken for calls of the cost of the one that
// is next.
func (c perCall) Demand(from time.Time, units, cost int64, deadline time.Time) {
	if s, ok := c.calls.(Demander); ok {
		calls, one := int64(0), int64(0)
		if units > 0 {
			calls, one = max(units/max(cost, 1), 1), 1
		}
		s.Demand(from, calls, one, deadline)
	}
}

// Refusal implements [Refuser].
func (c perCall) Refusal() error { return all{c.calls}.Refusal() }

// FreshAt implements [Forgettable].
func (c perCall) FreshAt() (at time.Time, ok bool) { return all{c.calls}.FreshAt() }

// MarshalBinary returns the state of the schedule. It may be one of [errors.ErrUnsupported].
func (c perCall) MarshalBinary() ([]byte, error) {
	if s, ok := c.calls.(stater); ok {
		return s.MarshalBinary()
	}
	return nil, errStateless(c.calls)
}

// UnmarshalBinary hands the schedule its state back.
func (c perCall) UnmarshalBinary(data []byte) error {
	if s, ok := c.calls.(encoding.BinaryUnmarshaler); ok {
		return s.UnmarshalBinary(data)
	}
	return errStateless(c.calls)
}

var (
	_ Forfeiter   = perCall{}
	_ Tolerant    = perCall{}
	_ Demander    = perCall{}
	_ Refuser     = perCall{}
	_ Forgettable = perCall{}
	_ stater      = perCall{}
)
