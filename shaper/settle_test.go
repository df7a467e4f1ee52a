package shaper_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
)

// depart submits a call that may be settled and returns where its departure will be.
func (r *recorder) depart(ctx context.Context, depart departer, c shaper.Call) (*submitted, **shaper.Departure) {
	d := new(*shaper.Departure)
	return r.submit(func() (err error) {
		*d, err = depart(ctx, c)
		return err
	}), d
}

// typedef-ai/fenic#313, BerriAI/litellm#36143, teleport#69116: the cost is known only after
// the answer, and the worst case is reserved or nothing.
func TestCostKnownAfterTheAnswer(t *testing.T) {
	forEachFront(t, scheduler.PerMinute(6_000), 600, func(t *testing.T, f front) {
		t.Run("more than was stated", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, depart := newRecorder(), f.make(t)
				_, d := r.depart(t.Context(), depart, shaper.Call{Cost: 100})
				r.until(time.Second)
				require.NoError(t, (*d).Settle(500))
				r.depart(t.Context(), depart, shaper.Call{Cost: 600})
				r.until(time.Minute)
				assert.Equal(t, []time.Duration{0, 5 * time.Second}, r.left())
			})
		})
		t.Run("less than was stated", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, depart := newRecorder(), f.make(t)
				_, d := r.depart(t.Context(), depart, shaper.Call{Cost: 600})
				r.depart(t.Context(), depart, shaper.Call{Cost: 600})
				r.depart(t.Context(), depart, shaper.Call{Cost: 600})
				r.until(time.Second)
				require.NoError(t, (*d).Settle(100))
				assert.ErrorIs(t, (*d).Settle(100), shaper.ErrFinal)
				r.until(time.Minute)
				assert.Equal(t, []time.Duration{0, time.Second, 7 * time.Second}, r.left())
			})
		})
		t.Run("debit makes a deadline impossible", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, depart := newRecorder(), f.make(t)
				_, d := r.depart(t.Context(), depart, shaper.Call{Cost: 600})
				late, _ := r.depart(t.Context(), depart, shaper.Call{Cost: 100, Deadline: time.Now().Add(1100 * ms)})
				patient, _ := r.depart(t.Context(), depart, shaper.Call{Cost: 100})
				r.until(500 * ms)
				require.NoError(t, (*d).Settle(700))
				synctest.Wait()
				assert.ErrorIs(t, late.err, shaper.ErrDeadline)
				assert.Equal(t, 500*ms, late.at)
				r.until(time.Minute)
				assert.Equal(t, 2*time.Second, patient.at)
			})
		})
		t.Run("never settled", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, depart := newRecorder(), f.make(t)
				_, d := r.depart(t.Context(), depart, shaper.Call{Cost: 600})
				r.until(10 * time.Minute)
				assert.ErrorIs(t, (*d).Settle(0), shaper.ErrFinal, "its time is over")
				_, d = r.depart(t.Context(), depart, shaper.Call{Cost: 600})
				r.until(20*time.Minute - 1)
				assert.NoError(t, (*d).Settle(0), "1 ns before")
				assert.Error(t, (*d).Settle(-1))
			})
		})
		t.Run("given up", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, depart := newRecorder(), f.make(t)
				r.depart(t.Context(), depart, shaper.Call{Cost: 600})
				ctx, cancel := context.WithCancel(t.Context())
				gone, d := r.depart(ctx, depart, shaper.Call{Cost: 600})
				next, _ := r.depart(t.Context(), depart, shaper.Call{Cost: 100})
				r.until(500 * ms)
				cancel()
				r.until(time.Minute)
				assert.ErrorIs(t, gone.err, context.Canceled)
				assert.Nil(t, *d)
				assert.Equal(t, time.Second, next.at)
				dead, _ := r.depart(ctx, depart, shaper.Call{})
				assert.ErrorIs(t, dead.err, context.Canceled)
			})
		})
	})
}

// A front is one of the things that calls depart from.
type front struct {
	name string
	make func(t *testing.T) departer
}

type departer func(context.Context, shaper.Call) (*shaper.Departure, error)

// forEachFront tests a limit as that of a Shaper, a key, and an account.
func forEachFront(t *testing.T, r scheduler.Rate, burst int, test func(t *testing.T, f front)) {
	with := shaper.WithBurst(burst)
	for _, f := range []front{
		{"Shaper", func(t *testing.T) departer { return newShaper(t, r, with).Depart }},
		{"All", func(t *testing.T) departer {
			return newShaper(t, r, with, shaper.WithLimits(scheduler.PerCall(scheduler.Must(scheduler.NewGCRA(scheduler.PerSecond(1000), 10))))).Depart
		}},
		{"TokenBucket", func(t *testing.T) departer {
			s, err := shaper.NewFrom(scheduler.Must(scheduler.NewTokenBucket(r, int64(burst))))
			require.NoError(t, err)
			return s.Depart
		}},
		{"Key", func(t *testing.T) departer {
			g, err := shaper.NewGroup[string](r, with)
			require.NoError(t, err)
			return g.Of("a").Depart
		}},
		{"Key with a schedule", func(t *testing.T) departer {
			g, err := shaper.NewGroup[string](scheduler.Unlimited, shaper.WithSchedules(func(string) (scheduler.Scheduler, error) {
				return scheduler.NewGCRA(r, int64(burst))
			}))
			require.NoError(t, err)
			return g.Of("a").Depart
		}},
		{"Key under an account", func(t *testing.T) departer {
			g, err := shaper.NewGroup[string](r, with, shaper.Under(newShaper(t, scheduler.Unlimited)))
			require.NoError(t, err)
			return g.Of("a").Depart
		}},
		{"Account of a key", func(t *testing.T) departer {
			g, err := shaper.NewGroup[string](scheduler.Unlimited, shaper.Under(newShaper(t, r, with)))
			require.NoError(t, err)
			return g.Of("a").Depart
		}},
		{"Both", func(t *testing.T) departer {
			g, err := shaper.NewGroup[string](r, with, shaper.Under(newShaper(t, r, with)),
				shaper.WithWeights(func(string) int { return 2 }))
			require.NoError(t, err)
			return g.Of("a").Depart
		}},
	} {
		t.Run(f.name, func(t *testing.T) { test(t, f) })
	}
}

// While nothing is unsettled any more, calls leave without the lock again; and while something
// is, those that do not wait are told to it.
func TestSettleBesideCallsThatNeedNoWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t, scheduler.PerSecond(1), shaper.WithBurst(10), shaper.WithTolerance(0))
		r := newRecorder()
		_, d := r.depart(t.Context(), s.Depart, shaper.Call{Cost: 10})
		r.until(20 * time.Second) // the line has run dry at 10 s
		for range 10 {
			assert.True(t, s.Allow())
		}
		require.NoError(t, (*d).Settle(0))
		assert.False(t, s.Allow(), "what came back would have been lost")
		require.NoError(t, s.Wait(t.Context()))
		assert.Equal(t, 21*time.Second, time.Since(r.start))
		assert.False(t, s.LeaveNow(1))
		time.Sleep(20 * time.Second)
		assert.True(t, s.LeaveNow(1))
	})
}

// A key is not forgotten while one of its calls may cost more.
func TestUnsettledKeyIsRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, err := shaper.NewGroup[string](scheduler.PerSecond(1), shaper.WithUnsettled(10, time.Hour), shaper.WithTolerance(0))
		require.NoError(t, err)
		d, err := g.Depart(t.Context(), "a", shaper.Call{})
		require.NoError(t, err)
		other, err := g.Depart(t.Context(), "b", shaper.Call{})
		require.NoError(t, err)
		time.Sleep(time.Minute)
		assert.Equal(t, 2, g.Stats().Keys)
		require.NoError(t, d.Settle(100))
		assert.Equal(t, 40*time.Second, g.Delay("a"))
		time.Sleep(time.Hour)
		assert.Zero(t, g.Stats().Keys)
		assert.ErrorIs(t, other.Settle(7), shaper.ErrFinal)
		assert.ErrorIs(t, d.Settle(7), shaper.ErrFinal)
	})
}

func TestUnsettledIsBounded(t *testing.T) {
	for _, opt := range []shaper.Option{shaper.WithUnsettled(0, time.Second), shaper.WithUnsettled(1, 0)} {
		_, err := shaper.New(scheduler.PerSecond(1), opt)
		assert.ErrorContains(t, err, "unsettled")
	}
	_, err := shaper.NewGroup[string](scheduler.PerSecond(1), shaper.Under(newShaper(t, scheduler.PerSecond(1))), shaper.WithUnsettled(1, time.Second))
	assert.ErrorContains(t, err, "unsettled")

	s := newShaper(t, scheduler.PerSecond(1), shaper.WithBurst(100), shaper.WithUnsettled(2, time.Hour))
	var ds []*shaper.Departure
	for range 3 {
		d, err := s.Depart(t.Context(), shaper.Call{Cost: 10})
		require.NoError(t, err)
		ds = append(ds, d)
	}
	assert.ErrorIs(t, ds[0].Settle(0), shaper.ErrFinal, "the oldest")
	assert.NoError(t, ds[1].Settle(0))
	assert.NoError(t, ds[2].Settle(0))
}

// A call that no limit can settle is refused at once.
func TestDepartNeedsALimitThatSettles(t *testing.T) {
	s, err := shaper.NewFrom(scheduler.PerCall(scheduler.Must(scheduler.NewGCRA(scheduler.PerSecond(1), 1))))
	require.NoError(t, err)
	_, err = s.Depart(t.Context(), shaper.Call{})
	assert.ErrorIs(t, err, errors.ErrUnsupported)
	assert.ErrorContains(t, err, "perCall")
	conserved(t, s)
}

// Depart takes class and deadline from the call, or the context.
func TestDepartOfAClass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t, scheduler.PerSecond(1), shaper.WithClasses(2, time.Minute))
		r := newRecorder()
		r.wait(t.Context(), s)
		last, _ := r.depart(t.Context(), s.Depart, shaper.Call{Class: 1})
		stated, _ := r.depart(shaper.WithClass(t.Context(), 1), s.Depart, shaper.Call{})
		first, _ := r.depart(t.Context(), s.Depart, shaper.Call{})
		ctx, cancel := context.WithTimeout(t.Context(), 3500*ms)
		defer cancel()
		tooLate, _ := r.depart(ctx, s.Depart, shaper.Call{Class: 1, Deadline: time.Now().Add(time.Hour)})
		r.until(time.Minute)
		assert.Equal(t, []time.Duration{time.Second, 2 * time.Second, 3 * time.Second}, []time.Duration{first.at, last.at, stated.at})
		assert.ErrorIs(t, tooLate.err, shaper.ErrDeadline)
	})
}

// A state that is loaded makes final what was unsettled at those limits.
func TestUnmarshalMakesFinal(t *testing.T) {
	s := newShaper(t, scheduler.PerSecond(1), shaper.WithBurst(10), shaper.WithLimits(
		scheduler.Must(scheduler.NewFixedWindow(1000, time.Hour))))
	d, err := s.Depart(t.Context(), shaper.Call{Cost: 5})
	require.NoError(t, err)
	data, err := s.MarshalBinary()
	require.NoError(t, err)
	require.NoError(t, s.UnmarshalBinary(data))
	assert.ErrorIs(t, d.Settle(0), shaper.ErrFinal)
}

// Who goes next among keys is as if the cost had been known.
func TestSettleCountsForTheShare(t *testing.T) {
	order := func(t *testing.T, stated, actual int) (left []time.Duration) {
		synctest.Test(t, func(t *testing.T) {
			account := newShaper(t, scheduler.PerSecond(1), shaper.WithTolerance(0))
			g, err := shaper.NewGroup[string](scheduler.Unlimited, shaper.Under(account), shaper.WithWeights(func(string) int { return 1 }))
			require.NoError(t, err)
			r := newRecorder()
			_, d := r.depart(t.Context(), g.Of("a").Depart, shaper.Call{Cost: stated})
			for _, key := range []string{"a", "b", "a", "b", "a", "b", "b", "b"} {
				r.submit(func() error { return g.Wait(t.Context(), key) })
			}
			r.until(500 * ms)
			require.NoError(t, (*d).Settle(actual))
			r.until(time.Minute)
			left = r.left()
			conserved(t, account)
		})
		return left
	}
	assert.Equal(t, order(t, 4, 4), order(t, 1, 4), "a debit")
	assert.Equal(t, order(t, 1, 1), order(t, 4, 1), "a refund")
	assert.NotEqual(t, order(t, 4, 4)[1]-4*time.Second, order(t, 1, 1)[1]-time.Second, "the share depends on it")
}
