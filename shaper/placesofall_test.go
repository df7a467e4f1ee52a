package shaper_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/internal/trial"
	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
)

// Places of all keys of a Group go to the calls that came first, whatever their keys, and the
// calls that wait for one are in no other Group's way.
func TestMaxInFlightOfAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		account := newShaper(t, scheduler.PerSecond(10))
		jobs := newGroup[int](t, scheduler.Unlimited, shaper.Under(account), shaper.WithMaxInFlightOfAll(2), shaper.WithMaxInFlight(1))
		require.Equal(t, 1, jobs.MaxInFlight(0))
		r, others := newRecorder(), newRecorder()
		for _, key := range []int{0, 0, 1, 2, 3} {
			r.submit(func() error {
				if err := jobs.Acquire(t.Context(), key, 1); err != nil {
					return err
				}
				time.AfterFunc(time.Second, func() { jobs.Release(key) })
				return nil
			})
		}
		others.until(250 * ms)
		others.wait(t.Context(), account)
		pass(time.Minute)
		assert.Equal(t, []time.Duration{0, 1000 * ms, 100 * ms, 1100 * ms, 2000 * ms}, r.left())
		assert.Equal(t, []time.Duration{250 * ms}, others.left())
	})
}

// Whatever calls come, leave, give up, end, or are held: never are more in flight than may be, and
// no call waits that its key allows while a place is free. Of those the longest waiting goes first.
func TestPlacesOfAllAreUsed(t *testing.T) {
	trial.Bubble(t, 300, func(t *testing.T, rng *rand.Rand) {
		const keys = 4
		most, ofKey := 1+rng.IntN(3), 1+rng.IntN(2)
		account := newShaper(t, scheduler.Unlimited, shaper.WithQueue(1000))
		g := newGroup[int](t, scheduler.Unlimited, shaper.Under(account), shaper.WithMaxInFlightOfAll(most), shaper.WithMaxInFlight(ofKey))
		type waiting struct {
			key    int
			came   time.Duration
			cancel func() bool
			left   bool
		}
		var line []*waiting
		var running []int
		paused := map[int]bool{}
		opened := map[int]time.Duration{}
		perKey := map[int]int{}
		start := time.Now()
		for range 60 {
			switch rng.IntN(6) {
			case 0:
				if len(line) > 0 {
					i := rng.IntN(len(line))
					require.True(t, line[i].cancel())
					line = append(line[:i:i], line[i+1:]...)
				}
			case 1:
				if len(running) > 0 {
					i := rng.IntN(len(running))
					key := running[i]
					running = append(running[:i:i], running[i+1:]...)
					perKey[key]--
					g.Release(key)
				}
			case 2:
				key := rng.IntN(keys)
				if paused[key] = !paused[key]; paused[key] {
					require.NoError(t, g.Pause(key))
				} else {
					g.Resume(key)
					opened[key] = time.Since(start)
				}
			default:
				w := &waiting{key: rng.IntN(keys), came: time.Since(start)}
				var err error
				w.cancel, err = g.Enqueue(w.key, shaper.Call{InFlight: true}, func(err error) { w.left = err == nil })
				require.NoError(t, err)
				line = append(line, w)
			}
			synctest.Wait()
			for len(running) < most { // the model
				var next *waiting
				first := map[int]bool{} // keys whose first call has been looked at
				for _, w := range line {
					if first[w.key] || paused[w.key] || perKey[w.key] == ofKey {
						continue
					}
					first[w.key] = true
					if next == nil || max(w.came, opened[w.key]) < max(next.came, opened[next.key]) {
						next = w
					}
				}
				if next == nil {
					break
				}
				require.True(t, next.left, "key %d, %d running", next.key, len(running))
				perKey[next.key]++
				running = append(running, next.key)
				line = slices.DeleteFunc(line, func(w *waiting) bool { return w == next })
			}
			for _, w := range line {
				require.False(t, w.left, "key %d, %d running", w.key, len(running))
			}
			pass(ms)
		}
	})
}

// Places are shared by weight, too, whether they or the rate are what is short, and whether a key
// was there from the start.
func TestPlacesOfAllByWeight(t *testing.T) {
	weights := map[string]int{"one": 1, "three": 3}
	for _, short := range []struct {
		places int
		lasts  time.Duration
	}{{1, 0}, {1, time.Second}, {3, time.Second}, {3, 10 * ms}} {
		synctest.Test(t, func(t *testing.T) {
			account := newShaper(t, scheduler.PerSecond(10))
			g := newGroup[string](t, scheduler.Unlimited, shaper.Under(account), shaper.WithMaxInFlightOfAll(short.places),
				shaper.WithWeights(func(key string) int { return weights[key] }), shaper.WithQueueOfAll(10_000))
			left := map[string]int{}
			come := func(key string, n int) {
				for range n {
					_, err := g.Enqueue(key, shaper.Call{InFlight: true}, func(err error) {
						if err == nil {
							left[key]++
							time.AfterFunc(short.lasts, func() { g.Release(key) })
						}
					})
					require.NoError(t, err)
				}
			}
			come("one", 2000)
			pass(100 * time.Second)
			one := left["one"]
			come("three", 1000)
			pass(100 * time.Second)
			one = left["one"] - one
			all := one + left["three"]
			require.Greater(t, all, 90)
			assert.InDelta(t, all/4, one, 3, "%+v", short)
			require.NoError(t, g.Close())
			pass(time.Minute)
		})
	}
}
