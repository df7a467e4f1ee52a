package redis_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/scheduler"
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

func TestOneProcess(t *testing.T) {
	onEach(t, func(t *testing.T, addr string) {
		r := scheduler.PerSecond(100)
		sched := newSchedule(t, client(t, addr), "one", r, 1)
		s := newShaper(t, sched)
		began := time.Now()
		left := crowd(t, 51, func() error { return s.Wait(t.Context()) })
		require.Len(t, left, 51)
		assert.GreaterOrEqual(t, left[50].Sub(began), 500*ms)
		assertConforms(t, left, r, 1, 15*ms)
		st := sched.Stats()
		t.Logf("last after %v, %+v", left[50].Sub(began), st)
		assert.EqualValues(t, 51, st.Used+st.Alone)
		assert.Less(t, st.Steps, int64(40), "one step per run, not per call")
	})
}

func sortTimes(at []time.Time) { slices.SortFunc(at, time.Time.Compare) }
