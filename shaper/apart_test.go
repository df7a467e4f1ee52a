package shaper_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
)

// Keys of one rate share what is the same for all of them. No change of one is seen by another, nor
// by a key that is new.
func TestChangesOfAKeyAreItsOwn(t *testing.T) {
	type key = *shaper.Key[string]
	plain := func(change func(key)) func(*testing.T, key, *shaper.Departure) error {
		return func(_ *testing.T, k key, _ *shaper.Departure) error { change(k); return nil }
	}
	tried := func(change func(key) error) func(*testing.T, key, *shaper.Departure) error {
		return func(_ *testing.T, k key, _ *shaper.Departure) error { return change(k) }
	}
	settled := func(actual int) func(*testing.T, key, *shaper.Departure) error {
		return func(_ *testing.T, _ key, d *shaper.Departure) error { return d.Settle(actual) }
	}
	slow := scheduler.PerMinute(1)
	changes := map[string]func(*testing.T, key, *shaper.Departure) error{
		"HoldUntil":      plain(func(k key) { k.HoldUntil(time.Now().Add(time.Hour)) }),
		"Pause":          tried(key.Pause),
		"SetRate":        tried(func(k key) error { return k.SetRate(slow) }),
		"Scale":          tried(func(k key) error { return k.Scale(1, 10) }),
		"SetMaxInFlight": tried(func(k key) error { return k.SetMaxInFlight(1) }),
		"Charge":         plain(func(k key) { k.Charge(1000) }),
		"Settle":         settled(1000),
		"Refund":         settled(0),
		"SetUsed":        tried(func(k key) error { return k.SetUsed(1000) }),
		"Update": tried(func(k key) error {
			return k.Update(func(s scheduler.Scheduler) error { return s.(scheduler.RateSetter).SetRate(time.Now(), slow) })
		}),
		"Depart": func(t *testing.T, k key, _ *shaper.Departure) error {
			_, err := k.Depart(t.Context(), shaper.Call{Cost: 1000})
			return err
		},
	}
	for name, under := range map[string]bool{"alone": false, "under": true} {
		for what, change := range changes {
			t.Run(name+"/"+what, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					opts := []shaper.Option{shaper.WithBurst(10), shaper.WithTolerance(0), shaper.WithMaxInFlight(5)}
					if under {
						opts = append(opts, shaper.Under(newShaper(t, scheduler.Unlimited)))
					}
					g, err := shaper.NewGroup[string](scheduler.PerSecond(1), opts...)
					require.NoError(t, err)
					var ds []*shaper.Departure
					for _, k := range []string{"a", "b"} {
						d, err := g.Depart(t.Context(), k, shaper.Call{Cost: 10})
						require.NoError(t, err)
						ds = append(ds, d)
					}
					require.NoError(t, change(t, g.Of("a"), ds[0]))
					time.Sleep(10 * time.Second)
					require.NoError(t, ds[1].Settle(10))
					for _, k := range []string{"b", "new"} {
						r := newRecorder()
						for range 5 {
							r.submit(func() error { return g.Acquire(t.Context(), k, 1) })
						}
						r.submit(func() error { g.Release(k); return g.Acquire(t.Context(), k, 1) })
						r.submit(func() error { return g.WaitN(t.Context(), k, 5) })
						r.until(time.Minute)
						assert.Equal(t, []time.Duration{0, 0, 0, 0, 0, 0, time.Second}, r.left(), k)
					}
				})
			})
		}
	}
}
