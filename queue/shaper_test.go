package queue_test

import (
	"context"
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

func newShaper(t *testing.T, r scheduler.Rate, opts ...shaper.Option) *shaper.Shaper {
	t.Helper()
	s, err := shaper.New(r, opts...)
	require.NoError(t, err)
	return s
}

// Three queues with four workers each share a Shaper whose line has less room than there
// are workers. Workers that are refused come back at the right time: no job fails, no
// slot is left unused, and each queue keeps its order.
func TestWorkersRefusedByAFullShaperKeepThePace(t *testing.T) {
	for _, room := range []int{1, 2, 5, 20} {
		synctest.Test(t, func(t *testing.T) {
			const queues, jobs = 3, 30
			s := newShaper(t, scheduler.PerSecond(10), shaper.WithQueue(room))
			var l errorLog
			all := newJournal()
			var each [queues]*journal
			var qs [queues]*queue.Queue
			for i := range qs {
				qs[i] = newQueue(t, s, queue.WithWorkers(4), queue.WithErrorHandler(l.handle))
				each[i] = newJournal()
				for id := range jobs {
					submit(t, qs[i], func(context.Context) error { all.note(id); each[i].note(id); return nil })
				}
			}
			for i := range qs {
				_, err := qs[i].Shutdown(context.Background())
				require.NoError(t, err)
				ids, _ := each[i].starts()
				assert.Equal(t, upTo(0, jobs-1), ids)
			}
			assert.Empty(t, l.all())
			_, at := all.starts()
			assert.Equal(t, every(0, 100*ms, queues*jobs), at)
		})
	}
}

func TestClosedShaperStopsTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t, scheduler.PerSecond(10))
		var l errorLog
		q := newQueue(t, s, queue.WithWorkers(2), queue.WithErrorHandler(l.handle))
		j := newJournal()
		for i := range 5 {
			submit(t, q, j.job(i))
		}
		time.Sleep(150 * ms)
		require.NoError(t, s.Close())
		synctest.Wait()
		assert.ErrorIs(t, q.TrySubmit(j.job(9)), shaper.ErrClosed)
		unrun, err := q.Shutdown(context.Background())
		assert.ErrorIs(t, err, shaper.ErrClosed)
		assert.Len(t, unrun, 3)
		require.Len(t, l.all(), 1)
		assert.ErrorIs(t, l.all()[0], shaper.ErrClosed)
	})
}

// keyed is the pace of one key of a Group.
type keyed struct {
	group *shaper.Group[string]
	key   string
}

func (k keyed) Wait(ctx context.Context) error { return k.group.Wait(ctx, k.key) }

// No room for a key now is no reason to give the queue up for good.
func TestTooManyKeysIsNotFinal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, err := shaper.NewGroup[string](scheduler.PerSecond(1), shaper.WithMaxKeys(1))
		require.NoError(t, err)
		require.NoError(t, g.Wait(t.Context(), "a")) // owes something for a second
		var l errorLog
		q := newQueue(t, keyed{g, "b"}, queue.WithErrorHandler(l.handle))
		j := newJournal()
		submit(t, q, j.job(0))
		time.Sleep(time.Minute)
		submit(t, q, j.job(1))
		unrun, err := q.Shutdown(context.Background())
		require.NoError(t, err)
		assert.Empty(t, unrun)
		assert.Empty(t, l.all())
		ids, at := j.starts()
		assert.Equal(t, []int{0, 1}, ids)
		assert.GreaterOrEqual(t, at[0], time.Second)
		assert.LessOrEqual(t, at[0], 1100*ms)
	})
}

// All that a Shaper refuses for now is waited for: a line without room, a wait that is
// too long for it, a hold and a pause.
func TestRefusalsOfAShaperPass(t *testing.T) {
	for name, c := range map[string]struct {
		opts   []shaper.Option
		before func(s *shaper.Shaper)
		after  func(s *shaper.Shaper) // after ten minutes
		want   time.Duration
	}{
		"full": {
			[]shaper.Option{shaper.WithQueue(2)},
			func(s *shaper.Shaper) { go s.Wait(context.Background()) },
			func(*shaper.Shaper) {}, 2 * time.Second,
		},
		"too long": {
			[]shaper.Option{shaper.WithMaxDelay(time.Second)},
			func(s *shaper.Shaper) { s.Charge(10) },
			func(*shaper.Shaper) {}, 11 * time.Second,
		},
		"held": {
			[]shaper.Option{shaper.WithMaxDelay(time.Second)},
			func(s *shaper.Shaper) { s.HoldUntil(time.Now().Add(90 * time.Second)) },
			func(*shaper.Shaper) {}, 90 * time.Second,
		},
		"paused": {
			[]shaper.Option{shaper.WithQueue(1)},
			func(s *shaper.Shaper) { s.Pause(); go s.Wait(context.Background()) },
			func(s *shaper.Shaper) { s.Resume() }, 10 * time.Minute,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newShaper(t, scheduler.PerSecond(1), c.opts...)
				require.NoError(t, s.Wait(t.Context()))
				c.before(s)
				synctest.Wait()
				var l errorLog
				q := newQueue(t, s, queue.WithErrorHandler(l.handle))
				j := newJournal()
				submit(t, q, j.job(0))
				time.Sleep(10 * time.Minute)
				c.after(s)
				_, err := q.Shutdown(context.Background())
				require.NoError(t, err)
				assert.Empty(t, l.all())
				_, at := j.starts()
				require.Len(t, at, 1)
				assert.GreaterOrEqual(t, at[0], c.want)
				assert.LessOrEqual(t, at[0], c.want+time.Minute, "looked for once a minute")
			})
		})
	}
}

// What the Shaper's owner changes reaches jobs that wait in the queue.
func TestHoldAndRateReachTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t, scheduler.PerSecond(10))
		q := newQueue(t, s, queue.WithWorkers(2))
		j := newJournal()
		for i := range 6 {
			submit(t, q, j.job(i))
		}
		time.Sleep(150 * ms)
		s.Pause()
		time.Sleep(850 * ms)
		s.Resume()
		time.Sleep(50 * ms)
		require.NoError(t, s.SetRate(scheduler.PerSecond(1)))
		_, err := q.Shutdown(context.Background())
		require.NoError(t, err)
		_, at := j.starts()
		// After the resume at 1 s the third leaves; half of T is owed at 1.05 s, and half
		// of the new T is half a second.
		assert.Equal(t, []time.Duration{0, 100 * ms, 1000 * ms, 1550 * ms, 2550 * ms, 3550 * ms}, at)
	})
}

// A drain of a source that fetches ahead, and of one that tells when it is ready, against
// the real Shaper.
func TestDrainThroughAShaper(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		f := newFeed(j, slices.Concat(make([]time.Duration, 5), every(time.Hour, 0, 5))...)
		s := newShaper(t, scheduler.PerSecond(3))
		require.NoError(t, queue.Drain(context.Background(), readyFeed{f}, s, queue.WithWorkers(4)))
		_, at := j.starts()
		third := 333_333_334 * time.Nanosecond
		two := 666_666_667 * time.Nanosecond
		sec := time.Second
		assert.Equal(t, []time.Duration{0, third, two, sec, sec + third,
			time.Hour, time.Hour + third, time.Hour + two, time.Hour + sec, time.Hour + sec + third}, at)
		assert.Zero(t, s.Stats().Refused)
		assert.Equal(t, at, f.taken)
	})
}
