package queue_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/internal/trial"
	"github.com/sluice-go/sluice/queue"
	"github.com/sluice-go/sluice/scheduler"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// A panicking job costs one job, not one worker. Source: openclaw/wacli#179,
// infiniflow/ragflow#16795, alitto/pond#137, RHEnVision/provisioning-backend#385.
func TestCaseF01_PanicCostsOneJob(t *testing.T) {
	for name, rate := range map[string]scheduler.Rate{"": scheduler.Per(10, time.Second)} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var l errorLog
				q := newQueue(t, newShaper(t, rate), queue.WithErrorHandler(l.handle))
				j := newJournal()
				submit(t, q,
					j.job(1),
					func(context.Context) error { j.note(2); explode(); return nil },
					func(context.Context) error { j.note(3); leave(); return nil },
					j.job(4))
				time.Sleep(301 * ms)
				ids, at := j.starts()
				assert.Equal(t, upTo(1, 4), ids)
				assert.Equal(t, every(0, 100*ms, 4), at)
				assert.Equal(t, queue.Stats{Submitted: 4, Done: 2, Failed: 2}, q.Stats())

				require.Len(t, l.all(), 2)
				for i, where := range []string{"explode", "leave"} {
					p, ok := errors.AsType[*queue.PanicError](l.all()[i])
					require.True(t, ok)
					assert.Contains(t, string(p.Stack), where)
				}
				begin := time.Now()
				assert.NoError(t, q.Close())
				_, err := q.Shutdown(context.Background())
				assert.NoError(t, err)
				assert.Zero(t, time.Since(begin))
			})
		})
	}
}

// Submit racing Close. Source: alitto/pond#20, #43, miniflux/v2#4472,
// dsx-ai-factory/infra-controller#3540, Jeffail/tunny#33.
func TestCaseF02_SubmitRacingClose(t *testing.T) {
	const rounds, goroutines, each = 200, 20, 50
	for round := range rounds {
		var unrun atomic.Int64
		q := newQueue(t, free(t), queue.WithWorkers(1+round%4), queue.WithCapacity(1+round%64),
			queue.WithErrorHandler(func(err error) {
				if u, ok := errors.AsType[*queue.UnrunError[queue.Job]](err); ok {
					u.Item(context.Background())
					unrun.Add(1)
				}
			}))
		var outcomes [goroutines * each]atomic.Int32
		var accepted [goroutines * each]bool
		var wg sync.WaitGroup
		var done atomic.Int64
		for g := range goroutines {
			wg.Go(func() {
				for i := range each {
					id := g*each + i
					job := func(context.Context) error { outcomes[id].Add(1); done.Add(1); return nil }
					var err error
					if i%2 == 0 {
						err = q.Submit(context.Background(), job)
					} else {
						err = q.TrySubmit(job)
					}
					accepted[id] = err == nil
					if err != nil && !errors.Is(err, queue.ErrClosed) && (i%2 == 0 || !errors.Is(err, queue.ErrFull)) {
						t.Errorf("unexpected: %v", err)
					}
				}
			})
		}
		for range round % 10 * 20 {
			runtime.Gosched()
		}
		var handedBack int64
		for closer := range 2 {
			wg.Go(func() {
				if (round+closer)%3 != 0 {
					assert.NoError(t, q.Close())
					return
				}
				jobs, _ := q.Shutdown(dead())
				for _, j := range jobs {
					j(context.Background())
				}
				atomic.AddInt64(&handedBack, int64(len(jobs)))
			})
		}
		wg.Wait()
		assert.NoError(t, q.Close())
		assert.ErrorIs(t, q.Submit(context.Background(), func(context.Context) error { return nil }), queue.ErrClosed)
		q.Shutdown(context.Background()) // waits for those that run

		for id := range outcomes {
			want := int32(0)
			if accepted[id] {
				want = 1
			}
			if got := outcomes[id].Load(); got != want {
				t.Fatalf("round %d: job %d: accepted %v, outcomes %d", round, id, accepted[id], got)
			}
		}
		s := q.Stats()
		require.NoError(t, conserved(s))
		require.Zero(t, s.Waiting+s.Running+s.Failed)
		require.Equal(t, s.Returned, unrun.Load()+handedBack)
	}
}

// A full queue must not bypass the limiter: block policy.
// Source: flyingsquirrel0419/layercache#77, PostHog/posthog-go#258, nuonco/nuon#2511.
func TestCaseF04_FullQueueBlocks(t *testing.T) {
	for name, rate := range map[string]scheduler.Rate{"": scheduler.Per(10, time.Second)} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := newQueue(t, newShaper(t, rate), queue.WithCapacity(5))
				j := newJournal()
				for i := range 20 {
					go submit(t, q, j.job(i))
					synctest.Wait()
				}
				// Five more are blocked behind them and give up at 250 ms, while the line
				// is still full.
				ctx, cancel := context.WithTimeout(context.Background(), 250*ms)
				defer cancel()
				var left atomic.Int64
				for range 5 {
					go func() {
						assert.Equal(t, context.DeadlineExceeded, q.Submit(ctx, j.job(99)))
						assert.Equal(t, 250*ms, time.Since(j.begin))
						left.Add(1)
					}()
				}
				time.Sleep(1900 * ms)
				synctest.Wait()
				assert.Equal(t, int64(5), left.Load())
				ids, at := j.starts()
				assert.Equal(t, upTo(0, 19), ids)
				assert.Equal(t, every(0, 100*ms, 20), at)
				_, err := q.Shutdown(context.Background())
				assert.NoError(t, err)
			})
		})
	}
}

// A full queue must not bypass the limiter: reject policy. The job that starts at 0 is
// not in the line any more. Source: flyingsquirrel0419/layercache#77,
// PostHog/posthog-go#258, nuonco/nuon#2511.
func TestCaseF04_FullQueueRejects(t *testing.T) {
	for name, rate := range map[string]scheduler.Rate{"": scheduler.Per(10, time.Second)} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := newQueue(t, newShaper(t, rate), queue.WithCapacity(4))
				j := newJournal()
				full := 0
				for i := range 20 {
					if err := q.TrySubmit(j.job(i)); err != nil {
						assert.ErrorIs(t, err, queue.ErrFull)
						full++
					}
					synctest.Wait()
				}
				assert.Equal(t, 15, full)
				assert.Zero(t, time.Since(j.begin), "told at once")
				_, err := q.Shutdown(context.Background())
				assert.NoError(t, err)
				ids, at := j.starts()
				assert.Equal(t, upTo(0, 4), ids)
				assert.Equal(t, every(0, 100*ms, 5), at)
			})
		})
	}
}

// Waiting for a slot is not a failed attempt; a backlog drains in N*T. Source:
// sidekiq/sidekiq#6141, #6010, laravel/framework#36250,
// spatie/laravel-rate-limited-job-middleware#30, ixti/sidekiq-throttled#36.
func TestCaseF06_BacklogDrainsInNT(t *testing.T) {
	const n = 10_000
	for name, rate := range map[string]scheduler.Rate{"": scheduler.Per(10, time.Minute)} {
		for _, workers := range []int{1, 4} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var l errorLog
					q := newQueue(t, newShaper(t, rate), queue.WithCapacity(n), queue.WithWorkers(workers), queue.WithErrorHandler(l.handle))
					j := newJournal()
					for i := range n {
						require.NoError(t, q.TrySubmit(j.job(i)))
					}
					_, err := q.Shutdown(context.Background())
					require.NoError(t, err)
					ids, at := j.starts()
					require.Equal(t, upTo(0, n-1), ids)
					require.Equal(t, every(0, 6*time.Second, n), at)
					assert.Equal(t, 59_994*time.Second, at[n-1])
					assert.Empty(t, l.all())
					assert.Equal(t, queue.Stats{Submitted: n, Done: n}, q.Stats())
				})
			})
		}
	}
}

// The queue never wedges: whatever was submitted, cancelled, panicked or left by Goexit
// before, a job that comes when a slot and a worker are there starts at that instant.
// TestStartsAgreeWithModel has the exact recurrence. Source: SGrondin/bottleneck#152,
// #194, diegosouzapw/OmniRoute#9041, #8616, aio-libs/aiojobs#290.
func TestCaseF09_NeverWedges(t *testing.T) {
	const operations = 10_000
	for name, rate := range map[string]scheduler.Rate{"": scheduler.Per(1000, time.Second)} {
		t.Run(name, func(t *testing.T) {
			trial.Bubble(t, 1, func(t *testing.T, rnd *rand.Rand) {
				q := newQueue(t, newShaper(t, rate), queue.WithCapacity(32), queue.WithWorkers(3), queue.WithErrorHandler(func(error) {}))
				j := newJournal()
				for range operations {
					end := misbehave(rnd.IntN(50))
					job := func(ctx context.Context) error { j.note(0); return end(ctx) }
					switch rnd.IntN(4) {
					case 0:
						time.Sleep(upto(rnd, 4*ms))
					case 1:
						q.TrySubmit(job)
					case 2:
						patience := 1 + upto(rnd, 20*ms)
						go func() {
							ctx, cancel := context.WithTimeout(context.Background(), patience)
							defer cancel()
							q.Submit(ctx, job)
						}()
					case 3:
						synctest.Wait()
						s := q.Stats()
						require.NoError(t, conserved(s))
						// Jobs take no time here, so while any wait, the last start is
						// less than T ago.
						if s.Waiting > 0 {
							require.Less(t, j.sinceLast(), ms)
						}
					}
				}
				time.Sleep(time.Second)
				s := q.Stats()
				require.NoError(t, conserved(s))
				require.Zero(t, s.Waiting+s.Running+s.Blocked)
				_, at := j.starts()
				for i := range at[1:] {
					require.GreaterOrEqual(t, at[i+1]-at[i], ms)
				}

				probe := time.Now()
				submit(t, q, func(context.Context) error { assert.Zero(t, time.Since(probe)); return nil })
				_, err := q.Shutdown(context.Background())
				require.NoError(t, err)
			})
		})
	}
}

// Life cycle: after Close nothing is left, and an idle queue may be dropped without it.
// Source: vitessio/vitess#13012, #10755, go-pg/pg#29, google/oss-rebuild#1401,
// moonrhythm/parapet#243, theopenlane/core#2004, temporalio/temporal#11065.
func TestCaseH01_LifeCycle(t *testing.T) {
	before := goleak.IgnoreCurrent()
	for i := range 2000 {
		q := newQueue(t, free(t), queue.WithWorkers(4))
		ran := make(chan struct{})
		submit(t, q, func(context.Context) error { close(ran); return nil })
		<-ran
		if i%2 == 0 {
			require.NoError(t, q.Close())
			require.NoError(t, q.Close())
		}
	}
	goleak.VerifyNone(t, before)
}

// Cancelled waits leave nothing behind. Source: kubernetes/kubernetes#79375,
// hashicorp/vault#14814, hashicorp/nomad#11982, eapache/go-resiliency#36,
// sourcegraph/sourcegraph-public-snapshot#19720.
func TestCaseH02_CancelledSubmitsLeaveNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, lineOf(t, time.Hour), queue.WithCapacity(1))
		j := newJournal()
		submit(t, q, j.job(0))
		synctest.Wait()
		submit(t, q, j.job(1))
		heap := func() int64 {
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			return int64(m.HeapAlloc)
		}
		before := heap()
		for range 10 {
			ctx, cancel := context.WithCancel(context.Background())
			for range 1000 {
				pinned := make([]byte, 4096)
				go q.Submit(ctx, func(context.Context) error { pinned[0]++; return nil })
			}
			time.Sleep(ms)
			assert.Equal(t, int64(1000), q.Stats().Blocked)
			cancel()
			synctest.Wait()
			assert.Zero(t, q.Stats().Blocked)
		}
		assert.Less(t, heap()-before, int64(5<<20))

		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		begin := time.Now()
		var wg sync.WaitGroup
		for range 1000 {
			wg.Go(func() { assert.Equal(t, context.DeadlineExceeded, q.Submit(ctx, j.job(9))) })
		}
		wg.Wait()
		assert.Equal(t, time.Second, time.Since(begin))
		unrun, _ := q.Shutdown(dead())
		assert.Len(t, unrun, 1)
	})
}
