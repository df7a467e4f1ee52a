package queue_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/queue"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// feed is a Source whose messages arrive at given times after begin. Then it returns end,
// or blocks if end is nil.
type feed struct {
	begin   time.Time
	arrive  []time.Duration
	fetch   time.Duration // how long Next takes once the message has arrived
	job     func(id int) queue.Job
	end     error
	next    int
	inside  atomic.Int32
	overlap atomic.Bool
	taken   []time.Duration
}

func (f *feed) Next(ctx context.Context) (queue.Job, error) {
	if f.inside.Add(1) > 1 {
		f.overlap.Store(true)
	}
	defer f.inside.Add(-1)
	if err := f.arrival(ctx); err != nil {
		return nil, err
	}
	time.Sleep(f.fetch)
	id := f.next
	f.next++
	f.taken = append(f.taken, time.Since(f.begin))
	return f.job(id), nil
}

// arrival blocks until the next message is there.
func (f *feed) arrival(ctx context.Context) error {
	var timer <-chan time.Time
	if f.next < len(f.arrive) {
		timer = time.After(f.arrive[f.next] - time.Since(f.begin))
	} else if f.end != nil {
		return f.end
	}
	select {
	case <-timer:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// readyFeed tells when a message is there.
type readyFeed struct{ *feed }

func (f readyFeed) Ready(ctx context.Context) error { return f.arrival(ctx) }

func newFeed(j *journal, arrive ...time.Duration) *feed {
	return &feed{begin: j.begin, arrive: arrive, job: j.job, end: io.EOF}
}

func TestDrainRunsAllAtPace(t *testing.T) {
	for _, workers := range []int{1, 4} {
		synctest.Test(t, func(t *testing.T) {
			j := newJournal()
			f := newFeed(j, make([]time.Duration, 10)...)
			p := &pacer{T: 100 * ms}
			require.NoError(t, queue.Drain(context.Background(), f, p, queue.WithWorkers(workers)))
			ids, at := j.starts()
			assert.Equal(t, upTo(0, 9), ids)
			assert.Equal(t, every(0, 100*ms, 10), at)
			assert.Equal(t, at, f.taken, "a message is taken when its slot is there, not before")
			_, _, crowd := p.counts()
			assert.Equal(t, 1, crowd, "only the worker at the source asks for a slot")
			assert.False(t, f.overlap.Load())
		})
	}
}

// Nine messages in two bunches, the second after long idleness. A slot that was obtained
// before the idle spell must not be spent after it, with or without Ready.
func TestDrainIsExactAfterIdleness(t *testing.T) {
	arrive := []time.Duration{0, 0, 0, time.Minute, time.Minute, time.Minute, time.Minute, time.Minute + 350*ms, time.Hour}
	want := []time.Duration{0, 100 * ms, 200 * ms, time.Minute, time.Minute + 100*ms, time.Minute + 200*ms, time.Minute + 300*ms,
		time.Minute + 400*ms, time.Hour}
	for _, workers := range []int{1, 3} {
		for _, ready := range []bool{true, false} {
			t.Run(fmt.Sprint(workers, ready), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					j := newJournal()
					f := newFeed(j, arrive...)
					p := &pacer{T: 100 * ms}
					var src queue.Source = f
					if ready {
						src = readyFeed{f}
					}
					require.NoError(t, queue.Drain(context.Background(), src, p, queue.WithWorkers(workers)))
					ids, at := j.starts()
					assert.Equal(t, upTo(0, 8), ids)
					for i := range at[1:] {
						assert.GreaterOrEqual(t, at[i+1]-at[i], 100*ms, "%d", i+1)
					}
					slots, _, _ := p.counts()
					if ready {
						assert.Equal(t, want, at)
						assert.Equal(t, 9, slots, "one slot per job")
					}
				})
			})
		}
	}
}

// Up to the tolerance a slow Next costs nothing; beyond it a second slot.
func TestDrainFreshness(t *testing.T) {
	for _, c := range []struct {
		fetch time.Duration
		want  []time.Duration
	}{
		{5 * ms, []time.Duration{5 * ms, 105 * ms, 205 * ms}},
		{5*ms + 1, []time.Duration{100 * ms, 300 * ms, 500 * ms}},
	} {
		synctest.Test(t, func(t *testing.T) {
			j := newJournal()
			f := newFeed(j, 0, 0, 0)
			f.fetch = c.fetch
			require.NoError(t, queue.Drain(context.Background(), f, &pacer{T: 100 * ms}))
			_, at := j.starts()
			assert.Equal(t, c.want, at)
		})
	}
}

func TestDrainWaitsForRunningJobsAtEOF(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		f := newFeed(j, 0, 0)
		f.job = func(id int) queue.Job {
			return func(ctx context.Context) error {
				j.note(id)
				time.Sleep(time.Second)
				assert.NoError(t, ctx.Err(), "the end of the source is no reason to stop a job")
				return nil
			}
		}
		require.NoError(t, queue.Drain(context.Background(), f, free{}, queue.WithWorkers(5)))
		assert.Equal(t, time.Second, time.Since(j.begin))
		ids, _ := j.starts()
		assert.Len(t, ids, 2)
	})
}

func TestDrainSourceErrors(t *testing.T) {
	gone := errors.New("gone")
	for _, c := range []struct{ end, want error }{
		{gone, gone},
		{fmt.Errorf("read: %w", io.EOF), io.EOF}, // a connection that broke is no orderly end
	} {
		for _, ready := range []bool{true, false} {
			synctest.Test(t, func(t *testing.T) {
				j := newJournal()
				f := newFeed(j, 0, 0)
				f.end = c.end
				f.job = func(id int) queue.Job {
					return func(ctx context.Context) error { j.note(id); time.Sleep(time.Second); return ctx.Err() }
				}
				var src queue.Source = f
				if ready {
					src = readyFeed{f}
				}
				err := queue.Drain(context.Background(), src, free{}, queue.WithWorkers(3),
					queue.WithErrorHandler(func(err error) { assert.NoError(t, err) }))
				assert.ErrorIs(t, err, c.want)
				assert.ErrorContains(t, err, "queue: source: ")
				assert.Equal(t, time.Second, time.Since(j.begin), "the two that run are waited for")
			})
		}
	}
}

type sourceFunc func(ctx context.Context) (queue.Job, error)

func (f sourceFunc) Next(ctx context.Context) (queue.Job, error) { return f(ctx) }

func TestDrainSourceMisbehaves(t *testing.T) {
	for name, c := range map[string]struct {
		next sourceFunc
		want error
	}{
		"panic":  {func(context.Context) (queue.Job, error) { panic(io.ErrClosedPipe) }, io.ErrClosedPipe},
		"goexit": {func(context.Context) (queue.Job, error) { runtime.Goexit(); return nil, nil }, queue.ErrGoexit},
	} {
		t.Run(name, func(t *testing.T) {
			assert.ErrorIs(t, queue.Drain(context.Background(), c.next, free{}, queue.WithWorkers(2)), c.want)
		})
	}
	err := queue.Drain(context.Background(), sourceFunc(func(context.Context) (queue.Job, error) { return nil, nil }), free{})
	assert.EqualError(t, err, "queue: source: Next returned neither a job nor an error")

	// Both a job and an error: the job is not run, and not lost, and the end is no
	// clean one.
	var l errorLog
	j := newJournal()
	src := sourceFunc(func(context.Context) (queue.Job, error) { return j.job(0), io.EOF })
	err = queue.Drain(context.Background(), src, free{}, queue.WithErrorHandler(l.handle))
	assert.ErrorIs(t, err, io.EOF)
	assert.ErrorContains(t, err, "a job together with an error")
	require.Len(t, l.all(), 1)
	_, ok := errors.AsType[*queue.UnrunError](l.all()[0])
	assert.True(t, ok)
	ids, _ := j.starts()
	assert.Empty(t, ids)
}

func TestDrainEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		f := newFeed(j, make([]time.Duration, 100)...)
		f.job = func(id int) queue.Job {
			return func(ctx context.Context) error {
				j.note(id)
				<-ctx.Done()
				time.Sleep(time.Second) // it takes a while to stop
				return nil
			}
		}
		ctx, cancel := context.WithTimeout(context.Background(), 350*ms)
		defer cancel()
		err := queue.Drain(ctx, f, &pacer{T: 100 * ms}, queue.WithWorkers(3))
		assert.Equal(t, context.DeadlineExceeded, err)
		assert.Equal(t, 1350*ms, time.Since(j.begin), "Drain returns after its workers")
		_, at := j.starts()
		assert.Equal(t, every(0, 100*ms, 3), at)
		assert.Equal(t, 3, f.next, "nothing was taken in vain")
	})
}

func TestDrainReportsTheMessageInHand(t *testing.T) {
	gone := errors.New("gone")
	for name, c := range map[string]struct {
		second func(ctx context.Context) error // the second call of Wait
		want   error
	}{
		"ctx":    {func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, context.DeadlineExceeded},
		"waiter": {func(context.Context) error { return gone }, gone},
		"panic":  {func(context.Context) error { panic(gone) }, gone},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var l errorLog
				calls := 0
				w := waiterFunc(func(ctx context.Context) error {
					if calls++; calls == 2 {
						return c.second(ctx)
					}
					return nil
				})
				j := newJournal()
				ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
				defer cancel()
				err := queue.Drain(ctx, newFeed(j, time.Second), w, queue.WithErrorHandler(l.handle))
				assert.ErrorIs(t, err, c.want)
				require.Len(t, l.all(), 1)
				unrun, ok := errors.AsType[*queue.UnrunError](l.all()[0])
				require.True(t, ok)
				assert.ErrorIs(t, unrun, c.want)
				ids, _ := j.starts()
				require.Empty(t, ids)
				require.NoError(t, unrun.Job(context.Background()))
			})
		})
	}
}

// A message that comes together with the end of ctx is not started with a dead context.
func TestDrainMessageAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		var l errorLog
		j := newJournal()
		src := sourceFunc(func(context.Context) (queue.Job, error) { cancel(); return j.job(0), nil })
		assert.Equal(t, context.Canceled, queue.Drain(ctx, src, free{}, queue.WithErrorHandler(l.handle)))
		require.Len(t, l.all(), 1)
		assert.ErrorIs(t, l.all()[0], context.Canceled)
		ids, _ := j.starts()
		assert.Empty(t, ids)
	})
}

// x/time's Limiter refuses at once, with an untyped error, what cannot leave before the
// deadline. A Waiter must not see a deadline that is the drain's and not a call's.
func TestDrainHidesItsDeadlineFromTheWaiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		w := waiterFunc(func(ctx context.Context) error {
			if _, ok := ctx.Deadline(); ok {
				return errors.New("rate: Wait(n=1) would exceed context deadline")
			}
			<-ctx.Done()
			return ctx.Err()
		})
		begin := time.Now()
		assert.Equal(t, context.DeadlineExceeded, queue.Drain(ctx, newFeed(newJournal(), 0), w))
		assert.Equal(t, time.Second, time.Since(begin))
	})
}

func TestDrainRetriesRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var attempts atomic.Int64
		j := newJournal()
		require.NoError(t, queue.Drain(context.Background(), newFeed(j, 0), refuseFirst(2, later(300*ms), &attempts)))
		_, at := j.starts()
		assert.Equal(t, []time.Duration{600 * ms}, at)
	})
}

func TestDrainSurvivesItsJobs(t *testing.T) {
	for _, workers := range []int{1, 3} {
		synctest.Test(t, func(t *testing.T) {
			var l errorLog
			j := newJournal()
			f := newFeed(j, make([]time.Duration, 10)...)
			f.job = func(id int) queue.Job {
				return func(ctx context.Context) error { j.note(id); return misbehave(id)(ctx) }
			}
			require.NoError(t, queue.Drain(context.Background(), f, &pacer{T: 100 * ms},
				queue.WithWorkers(workers), queue.WithErrorHandler(l.handle)))
			_, at := j.starts()
			assert.Equal(t, every(0, 100*ms, 10), at)
			assert.Len(t, l.all(), 6)
		})
	}
}

func TestDrainArguments(t *testing.T) {
	bg := context.Background()
	assert.EqualError(t, queue.Drain(bg, &feed{}, free{}, queue.WithCapacity(5)),
		"queue: WithCapacity does not apply to Drain: it has no line")
	assert.EqualError(t, queue.Drain(bg, nil, free{}), "queue: nil source")
	assert.EqualError(t, queue.Drain(bg, &feed{}, nil), "queue: nil waiter")
	//lint:ignore SA1012 that it is refused is the point
	assert.EqualError(t, queue.Drain(nil, &feed{}, free{}), "queue: nil context")
	assert.Equal(t, context.Canceled, queue.Drain(dead(), &feed{}, free{}))
}
