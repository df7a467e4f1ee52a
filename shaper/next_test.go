package shaper_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
)

// The figures of docs/next.md: calls that are told on arrival when they leave, as by a
// reservation, beside calls that are told when they leave.

// stamps gives calls their departure times on arrival: the first instant that suits all
// limits, after all calls of each that came before.
type stamps struct{ start time.Time }

func (s stamps) stamp(at time.Duration, limits ...*scheduler.GCRA) time.Duration {
	due := s.start.Add(at)
	for again := true; again; {
		again = false
		for _, l := range limits {
			if next := l.Next(due, 0, 1); next.After(due) {
				due, again = next, true
			}
		}
	}
	for _, l := range limits {
		l.Commit(due, due, 1)
	}
	return due.Sub(s.start)
}

func newGCRA(t *testing.T, r scheduler.Rate) *scheduler.GCRA {
	t.Helper()
	s, err := scheduler.NewGCRA(r, 1)
	require.NoError(t, err)
	return s
}

// waits enqueues a call, and notes when it leaves.
func waits(t *testing.T, start time.Time, left *[]time.Duration, enqueue enqueuer) (cancel func() bool) {
	t.Helper()
	cancel, err := enqueue(func(err error) {
		assert.NoError(t, err)
		*left = append(*left, time.Since(start))
	})
	require.NoError(t, err)
	return cancel
}

// An enqueuer has one call more wait.
type enqueuer = func(done func(error)) (cancel func() bool, err error)

// 600 calls of a campaign at 0, 10/s, and one more call at 1.025 s.
func TestDocsOneMoreCall(t *testing.T) {
	st, pace := stamps{time.Now()}, newGCRA(t, scheduler.PerSecond(10))
	for i := range 600 {
		require.Equal(t, time.Duration(i)*100*ms, st.stamp(0, pace))
	}
	assert.Equal(t, 60*time.Second, st.stamp(1025*ms, pace), "on arrival")

	for _, test := range []struct {
		name     string
		way      func(t *testing.T) (campaign, more enqueuer)
		givesUp  bool // the campaign, before the call comes
		leavesAt time.Duration
	}{
		{"first come, first out", ofOneKind, false, 60 * time.Second},
		{"a call of class 0", ofTwoClasses, false, 1100 * ms},
		{"of another tenant", ofTwoTenants, false, 1200 * ms},
		{"the campaign has been cancelled", ofOneKind, true, 1100 * ms},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				campaign, more := test.way(t)
				first, second := oneMoreCall(t, campaign, more, test.givesUp)
				assert.Equal(t, []time.Duration{test.leavesAt}, second)
				if all := slices.Concat(first, second); !test.givesUp {
					assert.Len(t, all, 601)
					assert.Equal(t, 60*time.Second, slices.Max(all), "no slot is lost")
				}
			})
		})
	}
}

func oneMoreCall(t *testing.T, campaign, more enqueuer, givesUp bool) (first, second []time.Duration) {
	t.Helper()
	start := time.Now()
	var cancels []func() bool
	for range 600 {
		cancels = append(cancels, waits(t, start, &first, campaign))
	}
	pass(1025 * ms)
	if givesUp {
		for _, cancel := range cancels {
			cancel()
		}
	}
	waits(t, start, &second, more)
	pass(time.Minute)
	return first, second
}

func ofOneKind(t *testing.T) (campaign, more enqueuer) {
	s := newShaper(t, scheduler.PerSecond(10))
	all := func(done func(error)) (func() bool, error) { return s.Enqueue(shaper.Call{}, done) }
	return all, all
}

func ofTwoClasses(t *testing.T) (campaign, more enqueuer) {
	s := newShaper(t, scheduler.PerSecond(10), shaper.WithClasses(2, time.Minute))
	of := func(class int) enqueuer {
		return func(done func(error)) (func() bool, error) { return s.Enqueue(shaper.Call{Class: class}, done) }
	}
	return of(1), of(0)
}

func ofTwoTenants(t *testing.T) (campaign, more enqueuer) {
	g, err := shaper.NewGroup[string](scheduler.Unlimited, shaper.Under(newShaper(t, scheduler.PerSecond(10))),
		shaper.WithWeights(func(string) int { return 1 }))
	require.NoError(t, err)
	of := func(key string) enqueuer {
		return func(done func(error)) (func() bool, error) { return g.Enqueue(key, shaper.Call{}, done) }
	}
	return of("campaign"), of("other")
}

// An account of 20/s and senders of 2/s each: at 0 come four calls of one sender, then one of
// each of thirty others.
func TestDocsTwoLimits(t *testing.T) {
	st, account := stamps{time.Now()}, newGCRA(t, scheduler.PerSecond(20))
	var stamped []time.Duration
	sender := newGCRA(t, scheduler.PerSecond(2))
	for range 4 {
		stamped = append(stamped, st.stamp(0, sender, account))
	}
	for range 30 {
		stamped = append(stamped, st.stamp(0, newGCRA(t, scheduler.PerSecond(2)), account))
	}
	assert.Equal(t, steps(0, 500*ms, 4), stamped[:4])
	assert.Equal(t, steps(1550*ms, 50*ms, 30), stamped[4:], "after the last one of the first sender")

	synctest.Test(t, func(t *testing.T) {
		account := newShaper(t, scheduler.PerSecond(20))
		senders, err := shaper.NewGroup[int](scheduler.PerSecond(2), shaper.Under(account))
		require.NoError(t, err)
		start := time.Now()
		var first, others []time.Duration
		enqueue := func(left *[]time.Duration, key int) {
			waits(t, start, left, func(done func(error)) (func() bool, error) { return senders.Enqueue(key, shaper.Call{}, done) })
		}
		for range 4 {
			enqueue(&first, 0)
		}
		for i := range 30 {
			enqueue(&others, i+1)
		}
		pass(time.Minute)
		assert.Equal(t, steps(0, 500*ms, 4), first)
		require.Len(t, others, 30)
		assert.Equal(t, []time.Duration{50 * ms, 1650 * ms}, []time.Duration{others[0], others[29]})
	})
}

// Urgent calls come without end at the rate of the limit, and one of the last class after
// 20 of them that still wait.
func TestDocsOvertake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t, scheduler.PerSecond(10), shaper.WithClasses(2, 5*time.Second))
		start := time.Now()
		var urgent, last []time.Duration
		enqueue := func(left *[]time.Duration, class int) {
			waits(t, start, left, func(done func(error)) (func() bool, error) { return s.Enqueue(shaper.Call{Class: class}, done) })
		}
		for range 21 {
			enqueue(&urgent, 0) // one leaves at once
		}
		pass(50 * ms)
		enqueue(&last, 1)
		for range 150 {
			pass(100 * ms)
			enqueue(&urgent, 0)
		}
		assert.Equal(t, []time.Duration{7100 * ms}, last)
	})
}
