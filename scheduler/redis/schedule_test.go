package redis_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/scheduler/redis"
	"github.com/sluice-go/sluice/shaper"
)

// crowd submits count calls at once and returns when they left, in order.
func crowd(t *testing.T, count int, wait func() error) []time.Time {
	t.Helper()
	var mu sync.Mutex
	var left []time.Time
	var all sync.WaitGroup
	for range count {
		all.Go(func() {
			if !assert.NoError(t, wait()) {
				return
			}
			at := time.Now()
			mu.Lock()
			left = append(left, at)
			mu.Unlock()
		})
	}
	all.Wait()
	sortTimes(left)
	return left
}

// assertConforms checks that no closed window holds more than burst + floor((w+J)/T).
func assertConforms(t testing.TB, left []time.Time, r scheduler.Rate, burst int, tolerance time.Duration) {
	t.Helper()
	if len(left) == 0 {
		return
	}
	var latest time.Duration
	from := 0
	for k := range left {
		since := left[k].Sub(left[0])
		if at := since - r.For(int64(k)); at > latest {
			latest, from = at, k
		}
		if n := k - from + 1; n > burst && r.For(int64(n-burst)) > left[k].Sub(left[from])+tolerance {
			t.Errorf("%d units left within %v at rate %v, burst %d, tolerance %v", n, left[k].Sub(left[from]), r, burst, tolerance)
			return
		}
	}
}

// A watched line is one on the real clock that tells what it has let leave.
func watchedLine(t testing.TB, s *redis.Schedule, skew time.Duration, opts ...shaper.Option) (*shaper.Shaper, *redis.Watched) {
	t.Helper()
	w := redis.Watch(s, skew)
	return newShaper(t, w, append(opts, shaper.WithClock(skewed(skew)))...), w
}

// assertShared checks on the real clock what all processes together promise of the slots
// that they share: a tolerance counts as much as the slots were late for the way that the
// replies took, as is measured, however busy the machine is.
func assertShared(t testing.TB, left []redis.Departure, r scheduler.Rate, burst int) {
	t.Helper()
	var at []time.Time
	var late time.Duration
	for _, d := range left {
		if !d.Alone {
			at = append(at, d.At)
			late = max(late, d.Late)
		}
	}
	sortTimes(at)
	t.Logf("%d units left in slots, which were %v late at most", len(at), late)
	assertConforms(t, at, r, burst, 5*ms+late)
}

func TestOneProcess(t *testing.T) {
	onEach(t, func(t *testing.T, addr string) {
		r := scheduler.PerSecond(100)
		sched := newSchedule(t, client(t, addr), "one", r, 1)
		s, watched := watchedLine(t, sched, 0)
		began := time.Now()
		left := crowd(t, 51, func() error { return s.Wait(t.Context()) })
		require.Len(t, left, 51)
		assert.GreaterOrEqual(t, left[50].Sub(began), 500*ms)
		departures := watched.Take()
		assert.Len(t, departures, 51)
		assertShared(t, departures, r, 1)
		assert.EqualValues(t, 51, sched.Stats().Used)
	})
}

func sortTimes(at []time.Time) { slices.SortFunc(at, time.Time.Compare) }
