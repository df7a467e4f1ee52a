package shaper_test

import (
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/internal/trial"
	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
)

// A learned is a window whose limit the partner's answers tell. The line uses it under a lock
// that an answer does not have, so it has one of its own.
type learned struct {
	mu    sync.Mutex
	log   *scheduler.SlidingLog
	again func()
}

func (l *learned) Next(t time.Time, ahead, n int64) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.log.Next(t, ahead, n)
}

func (l *learned) Commit(due, left time.Time, n int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.log.Commit(due, left, n)
}

func (l *learned) MaxCost() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.log.MaxCost()
}

func (l *learned) Notify(again func()) { l.again = again }

func (l *learned) learn(t *testing.T, limit int64) {
	l.mu.Lock()
	err := l.log.SetLimit(time.Now(), limit)
	l.mu.Unlock()
	require.NoError(t, err)
	l.again() // the line asks, so no lock may be held
}

// A limit that an answer tells while calls wait applies to them at once, up or down.
// Source: BenFradet/RiotSharp#557, dolejska-daniel/riot-api#70, stravalib/stravalib#141,
// aishek/axios-rate-limit#99, amzn/selling-partner-api-docs#86, animir/node-rate-limiter-flexible#105.
func TestCaseJ12LimitIsLearnedWhileCallsWait(t *testing.T) {
	for name, tt := range map[string]struct {
		before, after int64
		left          [][2]int // how many, at which second
	}{
		"up":   {2, 5, [][2]int{{2, 0}, {3, 1}, {2, 10}, {3, 11}}},
		"down": {5, 2, [][2]int{{5, 0}, {2, 10}, {2, 20}, {1, 30}}},
		"same": {2, 2, [][2]int{{2, 0}, {2, 10}, {2, 20}, {2, 30}, {2, 40}}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				log, err := scheduler.NewSlidingLog(tt.before, 10*time.Second)
				require.NoError(t, err)
				limit := &learned{log: log}
				s, err := shaper.NewFrom(limit)
				require.NoError(t, err)
				r := newRecorder()
				for range 10 {
					r.wait(t.Context(), s)
				}
				r.until(time.Second)
				limit.learn(t, tt.after)
				pass(time.Hour)
				var want []time.Duration
				for _, some := range tt.left {
					want = append(want, steps(time.Duration(some[1])*time.Second, 0, some[0])...)
				}
				assert.Equal(t, want, r.left())
				conserved(t, s)
			})
		})
	}
}

// A firstRequest is a partner whose window begins with the first request after one has
// ended.
type firstRequest struct {
	limit   int
	window  time.Duration
	mu      sync.Mutex
	began   time.Time
	n       int
	served  int
	refused int
}

func (p *firstRequest) request() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now := time.Now(); now.Sub(p.began) >= p.window {
		p.began, p.n = now, 0
	}
	if p.n == p.limit {
		p.refused++
		return
	}
	p.n++
	p.served++
}

// The partner counts 90 a minute from the first request after a window has ended. What keeps
// to 90 in any minute is never refused, wherever those windows begin. A window that begins
// with the minute is: it lets up to 180 leave around its end.
// Source: AniList/docs#20, Colorfulstan/RiotRateLimiter-node#9, alisaifee/limits#250.
func TestCaseJ19WindowBeginsWithItsFirstRequest(t *testing.T) {
	const limit = 90
	trial.Run(t, 20, func(t *testing.T, rng *rand.Rand) {
		for name, schedule := range map[string]scheduler.Scheduler{
			"SlidingLog": must(scheduler.NewSlidingLog(limit, time.Minute)),
			"Within":     must(scheduler.Within(limit, time.Minute, 1+rng.Int64N(limit))),
		} {
			p := &firstRequest{limit: limit, window: time.Minute}
			p.visit(t, rng, schedule)
			assert.Equal(t, [2]int{5000, 0}, [2]int{p.served, p.refused}, "served and refused, %s", name)
		}
	})
	t.Run("control", func(t *testing.T) {
		p := &firstRequest{limit: limit, window: time.Minute}
		p.visit(t, rand.New(rand.NewPCG(1, 2)), must(scheduler.NewFixedWindow(limit, time.Minute)))
		assert.NotZero(t, p.refused)
	})
}

// visit has 5,000 calls come in crowds, about as many as the limit allows.
func (p *firstRequest) visit(t *testing.T, rng *rand.Rand, schedule scheduler.Scheduler) {
	const arrivals = 5000
	synctest.Test(t, func(t *testing.T) {
		s, err := shaper.NewFrom(schedule, shaper.WithQueue(arrivals))
		require.NoError(t, err)
		var calls sync.WaitGroup
		crowd := 1 + rng.IntN(200)
		for n := range arrivals {
			if n%crowd == 0 {
				time.Sleep(time.Duration(rng.Int64N(int64(crowd) * int64(2*time.Second))))
			}
			calls.Go(func() {
				assert.NoError(t, s.Wait(t.Context()))
				p.request()
			})
		}
		calls.Wait()
	})
}
