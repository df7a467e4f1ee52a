package queue_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/queue"
	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A tenant that submits far more than its share leaves room for the others, and they leave within
// two intervals. Source: windmill-labs/windmill#10197, kapitan-ai/orchard#10,
// morluto/jacobian#1083, #1152, ScreamingFace/screamingface#821.
func TestCaseK04_NoisyTenant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		var l errorLog
		q, err := queue.New(newShaper(t, scheduler.PerSecond(10)), func(_ context.Context, id int) error { j.note(id); return nil },
			queue.WithCapacity(100), queue.WithCapacityPerKey(90), queue.WithErrorHandler(l.handle),
			queue.WithKeys(scheduler.Unlimited, shaper.WithWeights(func(string) int { return 1 })))
		require.NoError(t, err)
		refused := 0
		noisy := func() {
			if err := q.TrySubmitTo("A", 0); err != nil {
				require.ErrorIs(t, err, queue.ErrFull)
				refused++
			}
		}
		for range 200 {
			noisy()
		}
		came := map[int]time.Duration{}
		for tick := range 1200 {
			time.Sleep(10 * ms)
			noisy()
			if tick%100 == 2 { // 1.030, 2.030 ...
				id := 1 + tick/100
				came[id] = time.Since(j.begin)
				require.NoError(t, q.TrySubmitTo("B", id), "B has room")
			}
		}
		q.Stop()
		ids, at := j.starts()
		for i, id := range ids {
			if id > 0 {
				assert.LessOrEqual(t, at[i]-came[id], 200*ms, "job %d", id)
				delete(came, id)
			}
		}
		assert.LessOrEqual(t, len(came), 1, "the last one may not have left yet")
		assert.Greater(t, refused, 1000)
		assert.Equal(t, every(0, 100*ms, len(at)), at, "and no slot is lost")
	})
}

// Stale work takes no slot. Source: taskforcesh/bullmq#2858, #301, hibiken/asynq#84, #1041,
// OptimalBits/bull#534, acaloiaro/neoq#52, escoffier-labs/brigade#1409.
func TestCaseK08_StaleWorkTakesNoSlot(t *testing.T) {
	for _, hold := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			j := newJournal()
			line := newShaper(t, scheduler.PerSecond(1))
			var expired []int
			q, err := queue.New(line, func(_ context.Context, id int) error { j.note(id); return nil },
				queue.WithErrorHandler(func(err error) {
					u, ok := errors.AsType[*queue.UnrunError[int]](err)
					require.True(t, ok)
					require.ErrorIs(t, err, queue.ErrExpired)
					require.LessOrEqual(t, time.Since(j.begin), 10*time.Second, "told in time")
					expired = append(expired, u.Item)
				}))
			require.NoError(t, err)
			for id := range 100 {
				require.NoError(t, q.TrySubmit(id, queue.NotAfter(j.begin.Add(10*time.Second))))
			}
			time.Sleep(500 * ms)
			want := []time.Duration{0, 60 * time.Second}
			if hold {
				line.HoldUntil(j.begin.Add(60 * time.Second))
			} else {
				want = append(every(0, time.Second, 10), 59500*ms)
			}
			time.Sleep(59 * time.Second)
			require.NoError(t, q.TrySubmit(100))
			_, err = q.Shutdown(context.Background())
			require.NoError(t, err)
			_, at := j.starts()
			assert.Equal(t, want, at)
			assert.Len(t, expired, 101-len(at))
			assert.True(t, slices.IsSorted(expired) || hold, "told in their order")
			assert.EqualValues(t, 101-len(at), q.Stats().Expired)
		})
	}
}

// Delayed jobs come to the line in the order of their time, and are handed back like any others.
// Source: sidekiq/sidekiq#3012, #2972, celery/celery#2541, #8069, #4766,
// resque/resque-scheduler#98, gocolly/colly#151.
func TestCaseK09_DelayedJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		q, err := queue.New(newShaper(t, scheduler.PerSecond(10), shaper.WithQueue(100)), func(_ context.Context, id int) error { j.note(id); return nil },
			queue.WithCapacity(100), queue.WithMaxDelayed(300))
		require.NoError(t, err)
		due := j.begin.Add(30 * time.Second)
		for id := range 300 {
			require.NoError(t, q.TrySubmit(1000+id, queue.NotBefore(due)))
		}
		require.ErrorIs(t, q.TrySubmit(0, queue.NotBefore(due)), queue.ErrFull)
		for id := range 20 {
			require.NoError(t, q.TrySubmit(id))
		}
		assert.EqualValues(t, 300, q.Stats().Delayed)
		time.Sleep(29950 * ms)
		for id := range 5 {
			require.NoError(t, q.TrySubmit(100+id))
		}
		time.Sleep(10050 * ms)
		back := q.Stop()
		ids, at := j.starts()
		assert.Equal(t, slices.Concat(upTo(0, 19), upTo(100, 104), upTo(1000, 1095)), ids)
		assert.Equal(t, slices.Concat(every(0, 100*ms, 20), every(29950*ms, 100*ms, 5), every(30450*ms, 100*ms, 96)), at)
		assert.Equal(t, upTo(1096, 1299), back)
		assert.Len(t, back, 204)
	})
	// By their time, not by when they were submitted.
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		q := newQueue(t, lineOf(t, time.Second))
		for id, d := range []time.Duration{3000 * ms, 1000 * ms, 2500 * ms, 1000 * ms} {
			require.NoError(t, q.TrySubmit(j.job(id), queue.NotBefore(j.begin.Add(d))))
		}
		_, err := q.Shutdown(context.Background())
		require.NoError(t, err)
		ids, at := j.starts()
		assert.Equal(t, []int{1, 3, 2, 0}, ids)
		assert.Equal(t, every(time.Second, time.Second, 4), at)
	})
}

// A retry has its place, a slot of its own, and no worker asleep. Source:
// SGrondin/bottleneck#223, taskforcesh/bullmq#2162, #379, #1302, OptimalBits/bull#1961, #2082,
// #1148, NickTacke/brawltome#127, cofin/litestar-queues#105, rq/rq#2386.
func TestCaseK10_RetryHasItsPlace(t *testing.T) {
	for _, stop := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			j := newJournal()
			tries := 0
			var l errorLog
			q, err := queue.New(newShaper(t, scheduler.PerSecond(1)), func(_ context.Context, id int) error {
				j.note(id)
				if id == 0 {
					if tries++; tries == 1 {
						time.Sleep(100 * ms)
						return fmt.Errorf("busy: %w", queue.Again(2400*ms))
					}
				}
				return nil
			}, queue.WithCapacity(3), queue.WithErrorHandler(l.handle))
			require.NoError(t, err)
			require.NoError(t, q.TrySubmit(0))
			for id := 1; id <= 3; id++ {
				require.NoError(t, q.TrySubmit(id))
			}
			time.Sleep(200 * ms)
			assert.Equal(t, queue.Stats{Submitted: 4, Waiting: 3, Delayed: 1}, q.Stats())
			if stop {
				assert.Equal(t, []int{0, 1, 2, 3}, q.Stop())
				return
			}
			_, err = q.Shutdown(context.Background())
			require.NoError(t, err)
			ids, at := j.starts()
			assert.Equal(t, []int{0, 1, 2, 0, 3}, ids, "in front of those that came after it")
			assert.Equal(t, every(0, time.Second, 5), at)
			assert.Empty(t, l.all(), "it has not failed")
		})
	}
}

// A stop starts nothing more, hands back at once what waits, and lets run what runs. Source:
// riverqueue/river#1239, #1290, #78, hibiken/asynq#17, #878, OpenFn/kit#934, okpy/ok#1062,
// bensheldon/good_job#213.
func TestCaseK14_SoftStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		var l errorLog
		q, err := queue.New(lineOf(t, 10*time.Second), func(ctx context.Context, id int) error {
			j.note(id)
			if id == 0 {
				time.Sleep(25 * time.Second)
			} else {
				time.Sleep(5 * time.Second)
			}
			return ctx.Err()
		}, queue.WithWorkers(2), queue.WithErrorHandler(l.handle))
		require.NoError(t, err)
		for id := range 20 {
			require.NoError(t, q.TrySubmit(id))
		}
		time.Sleep(12 * time.Second)
		assert.Equal(t, upTo(2, 19), q.Stop())
		assert.Equal(t, 12*time.Second, time.Since(j.begin))
		assert.ErrorIs(t, q.TrySubmit(20), queue.ErrClosed)
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		unrun, err := q.Shutdown(ctx)
		assert.Equal(t, queue.ErrClosed, err, "not all have run")
		assert.Empty(t, unrun)
		assert.Equal(t, 25*time.Second, time.Since(j.begin))
		_, at := j.starts()
		assert.Equal(t, every(0, 10*time.Second, 2), at)
		assert.Equal(t, queue.Stats{Submitted: 20, Done: 2, Returned: 18}, q.Stats())
		assert.Empty(t, l.all(), "none was cancelled")
	})
}

// Too many are told at once, although those that run keep the places. Source:
// XeroAPI/xero-node#620, infinigence/octollm#41.
func TestCaseJ13e_TooManyAreToldAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		q := newQueue(t, newShaper(t, scheduler.PerSecond(1), shaper.WithMaxInFlight(2)), queue.WithWorkers(20), queue.WithCapacity(4))
		refused := 0
		for id := range 20 {
			if err := q.TrySubmit(func(context.Context) error { j.note(id); time.Sleep(4500 * ms); return nil }); err != nil {
				assert.ErrorIs(t, err, queue.ErrFull)
				refused++
			}
		}
		assert.Zero(t, time.Since(j.begin))
		assert.Equal(t, 15, refused)
		_, err := q.Shutdown(context.Background())
		require.NoError(t, err)
		_, at := j.starts()
		assert.Equal(t, []time.Duration{0, time.Second, 4500 * ms, 5500 * ms, 9 * time.Second}, at)
	})
}
