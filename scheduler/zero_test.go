package scheduler_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/scheduler"
)

// zeros returns the zero value of every kind of schedule.
func zeros() map[string]stater {
	return map[string]stater{
		"GCRA": new(scheduler.GCRA), "TokenBucket": new(scheduler.TokenBucket), "LeakyBucket": new(scheduler.LeakyBucket),
		"FixedWindow": new(scheduler.FixedWindow), "SlidingLog": new(scheduler.SlidingLog),
		"SlidingCounter": new(scheduler.SlidingCounter), "Hours": new(scheduler.Hours),
	}
}

// A zero value says what it is, whatever is asked of it first.
func TestZeroSchedulesPanicWithTheirName(t *testing.T) {
	type limited interface {
		SetLimit(time.Time, int64) error
	}
	for name, s := range zeros() {
		assert.Zero(t, s.MaxCost(), name)
		uses := map[string]func(){
			"Next":        func() { s.Next(origin, 0, 1) },
			"Next, ahead": func() { s.Next(origin, 5, 100) },
			"Commit":      func() { s.Commit(origin, origin, 1) },
			"Allow":       func() { scheduler.Allow(s, origin, 1) },
			"Allow 0":     func() { scheduler.Allow(s, origin, 0) },
			"All":         func() { scheduler.Allow(scheduler.All(s), origin, 1) },
			"Next of All": func() { scheduler.All(s).Next(origin, 0, 1) },
			"PerCall":     func() { scheduler.Allow(scheduler.PerCall(s), origin, 1) },
		}
		if s, ok := s.(scheduler.RateSetter); ok {
			uses["SetRate"] = func() { _ = s.SetRate(origin, scheduler.PerSecond(1)) }
		}
		if s, ok := s.(scheduler.Forfeiter); ok {
			uses["Forfeit"] = func() { s.Forfeit(origin, 1) }
			uses["Forfeited"] = func() { s.Forfeited(origin, 1) }
		}
		if s, ok := s.(limited); ok {
			uses["SetLimit"] = func() { _ = s.SetLimit(origin, 1) }
		}
		if s, ok := s.(scheduler.Settler); ok {
			uses["CommitUnsettled"] = func() { s.CommitUnsettled(1, origin, origin, 1) }
			uses["Settle"] = func() { _ = s.Settle(1, 1) }
		}
		if s, ok := s.(scheduler.UsedSetter); ok {
			uses["SetUsed"] = func() { _ = s.SetUsed(origin, 1) }
		}
		if s, ok := s.(*scheduler.GCRA); ok {
			uses["Ticks"] = func() { s.Ticks() }
		}
		for use, f := range uses {
			message := func() (said any) {
				defer func() { said = recover() }()
				f()
				return nil
			}()
			assert.Regexp(t, `^scheduler: .*zero`, message, "%s: %s", name, use)
		}
		_, err := s.MarshalBinary()
		assert.ErrorContains(t, err, "scheduler: state: a zero "+name)
		_, err = scheduler.All(s).(stater).MarshalBinary()
		assert.ErrorContains(t, err, "scheduler: state: a zero "+name)
	}
}

// A zero value, alone or in All, takes a state: to load one the limits need not be known.
func TestStateLoadsIntoAZeroValue(t *testing.T) {
	kinds := each(t)
	targets := zeros()
	targets["Unlimited"] = new(scheduler.GCRA)
	targets["All"] = scheduler.All(new(scheduler.GCRA), new(scheduler.SlidingLog)).(stater)
	require.Len(t, targets, len(kinds))
	for name, loaded := range targets {
		saved := kinds[name]
		data, err := saved.MarshalBinary()
		require.NoError(t, err, name)
		require.NoError(t, loaded.UnmarshalBinary(data), name)
		assert.Equal(t, saved.MaxCost(), loaded.MaxCost(), name)
		now := origin.Add(2 * time.Second)
		for range 20 {
			due := saved.Next(now, 0, 1)
			assert.True(t, due.Equal(loaded.Next(now, 0, 1)), name)
			saved.Commit(due, due, 1)
			loaded.Commit(due, due, 1)
		}
	}
}

// A zero Rate is refused by all that takes one, and harmless where it is asked.
func TestZeroRate(t *testing.T) {
	var r scheduler.Rate
	assert.ErrorContains(t, r.Validate(), "rate 0/0s")
	assert.Zero(t, r.Interval())
	assert.Zero(t, r.For(5))
	_, err := r.Scale(1, 2)
	assert.Error(t, err)
	_, err = r.MarshalText()
	assert.Error(t, err)
	assert.Negative(t, r.Cmp(scheduler.Unlimited))
	for name, build := range map[string]func() error{
		"GCRA":        func() error { _, err := scheduler.NewGCRA(r, 1); return err },
		"TokenBucket": func() error { _, err := scheduler.NewTokenBucket(r, 1); return err },
		"LeakyBucket": func() error { _, err := scheduler.NewLeakyBucket(r, 1); return err },
		"SetRate":     func() error { return newGCRA(t, scheduler.PerSecond(1), 1).SetRate(origin, r) },
	} {
		assert.ErrorContains(t, build(), "rate 0/0s", name)
	}
}

// A zero Ticks covers nothing, so the schedule is asked.
func TestZeroTicks(t *testing.T) {
	var k scheduler.Ticks
	assert.False(t, k.Covers(0, 1))
	_, ok := k.Leave(0, 0, 1)
	assert.False(t, ok)
	_, ok = k.Pack(newGCRA(t, scheduler.PerSecond(1), 1), origin)
	assert.False(t, ok)
}
