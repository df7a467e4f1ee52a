package redis_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/sluice-go/sluice/scheduler"
)

// Four that share a limit get all of it, with many callers and with few, at rates at
// which a run is one slot and at rates at which it is hundreds.
func TestAllOfTheRateIsUsed(t *testing.T) {
	for _, tc := range []struct {
		perSecond int64
		callers   int
		span      time.Duration
		least     int
	}{
		{20, 2, time.Second, 20},
		{20, 64, time.Second, 20},
		// Eight callers in all, and a round trip of 1 ms for each of their calls.
		{10_000, 2, 200 * ms, 780},
		{10_000, 64, 200 * ms, 1_970},
	} {
		t.Run(fmt.Sprintf("%d per second, %d callers", tc.perSecond, tc.callers), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := newScripted(t, ms)
				r := scheduler.PerSecond(tc.perSecond)
				all := store.joinFour(t, r, tc.callers)
				time.Sleep(tc.span)
				left := merge(all)
				t.Logf("%d left, %d steps", len(left), store.stepsTaken())
				assertConforms(t, left, r, 1, 5*ms+ms)
				assert.GreaterOrEqual(t, len(left), tc.least)
			})
		})
	}
}

// At full load the store sees one step per run, and not one per call.
func TestStepsPerCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newScripted(t, ms)
		all := store.joinFour(t, scheduler.PerSecond(10_000), 1000)
		time.Sleep(time.Second)
		assert.Greater(t, len(merge(all)), 9_900)
		// A run is 50 ms of the rate, so 20 would do; each of the four begins with less.
		assert.LessOrEqual(t, store.stepsTaken(), 40)
	})
}

// Four processes, clocks that are wrong by up to 5 s, a store that hangs, and one that
// fails and has lost all when it is back.
func TestFourShareThroughOutages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newScripted(t, 2*ms)
		r := scheduler.PerSecond(100)
		all := store.joinFour(t, r, 20)
		const span = 2 * time.Second
		time.Sleep(500 * ms)
		up, down := []time.Time{time.Now()}, []time.Time{}
		time.Sleep(span)
		for _, fails := range []error{nil, errors.New("gone")} {
			store.set(fails == nil, fails)
			time.Sleep(400 * ms) // all notice, and use what they have in hand
			down = append(down, time.Now())
			time.Sleep(span)
			if fails != nil {
				store.server.FlushAll()
			}
			store.set(false, nil)
			time.Sleep(time.Second)
			up = append(up, time.Now())
			time.Sleep(span)
		}
		merged := merge(all)
		for _, from := range up {
			in := between(merged, from, from.Add(span))
			assertConforms(t, in, r, 1, 5*ms+2*ms)
			assert.InDelta(t, 200, len(in), 2)
			for i, m := range all {
				assert.InDelta(t, 50, len(between(m.diary.times(), from, from.Add(span))), 2, "the share of process %d", i)
			}
		}
		for _, from := range down {
			for i, m := range all {
				in := between(m.diary.times(), from, from.Add(span))
				assertConforms(t, in, scheduler.PerSecond(25), 1, 0)
				assert.InDelta(t, 50, len(in), 1, "process %d on its own", i)
			}
		}
		// From the first to the last, with all comings and goings: one more for each process
		// that went its own way.
		assertConforms(t, merged, r, 1+len(all), 5*ms+2*ms)
	})
}

// merge returns when calls of all members left, in order.
func merge(all []member) []time.Time {
	var merged []time.Time
	for _, m := range all {
		merged = append(merged, m.diary.times()...)
	}
	sortTimes(merged)
	return merged
}
