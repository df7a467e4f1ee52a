// Package sluice_test holds the README to its word, through the public API alone.
package sluice_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/internal/partner"
	"github.com/sluice-go/sluice/queue"
	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
	"github.com/sluice-go/sluice/transport"
)

const ms = time.Millisecond

// TestPromises goes through the README's list, in its order.
func TestPromises(t *testing.T) {
	t.Run("at most the rate, in any window", func(t *testing.T) {
		bubble(t, func(t *testing.T, line *line) {
			pace := line.pace(shaper.New(scheduler.PerSecond(10)))
			line.wait(pace, 25)
			time.Sleep(time.Hour) // idle time saves no burst up
			line.wait(pace, 3)
			time.Sleep(time.Hour)
			left := line.departures()
			require.Len(t, left, 28)
			for i := range left[1:] {
				assert.GreaterOrEqual(t, left[i+1]-left[i], 100*ms)
			}
		})
	})
	t.Run("never early, and as early as the limit allows", func(t *testing.T) {
		bubble(t, func(t *testing.T, line *line) {
			line.wait(line.pace(shaper.New(scheduler.PerSecond(3))), 4)
			time.Sleep(time.Hour)
			assert.Equal(t, []time.Duration{0, 333_333_334, 666_666_667, time.Second}, line.departures())
		})
	})
	t.Run("first come, first out, and no call overtakes", func(t *testing.T) {
		bubble(t, func(t *testing.T, line *line) {
			pace := line.pace(shaper.New(scheduler.PerSecond(10)))
			line.wait(pace, 3)
			assert.False(t, pace.Allow())
			time.Sleep(time.Hour)
			assert.Equal(t, []int{0, 1, 2}, line.order())
		})
	})
	t.Run("a call that gives up frees its slot", func(t *testing.T) {
		bubble(t, func(t *testing.T, line *line) {
			pace := line.pace(shaper.New(scheduler.PerSecond(10)))
			line.wait(pace, 2)
			ctx, cancel := context.WithCancel(t.Context())
			for range 50 {
				line.waitWith(ctx, pace)
			}
			line.wait(pace, 1)
			time.Sleep(150 * ms)
			cancel()
			time.Sleep(time.Hour)
			assert.Equal(t, []time.Duration{0, 100 * ms, 200 * ms}, line.departures())
		})
	})
	t.Run("the line is bounded", func(t *testing.T) {
		bubble(t, func(t *testing.T, line *line) {
			line.wait(line.pace(shaper.New(scheduler.PerSecond(10), shaper.WithQueue(10))), 15)
			time.Sleep(time.Hour)
			assert.Len(t, line.departures(), 10)
			for _, err := range line.errors() {
				assert.ErrorIs(t, err, shaper.ErrQueueFull)
			}
		})
	})
	t.Run("a call that cannot make its deadline is told at once", func(t *testing.T) {
		bubble(t, func(t *testing.T, line *line) {
			pace := line.pace(shaper.New(scheduler.PerMinute(1)))
			require.NoError(t, pace.Wait(t.Context()))
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			start := time.Now()
			err := pace.Wait(ctx)
			assert.Zero(t, time.Since(start))
			assert.ErrorIs(t, err, context.DeadlineExceeded)
			var refusal *shaper.Refusal
			require.ErrorAs(t, err, &refusal)
			assert.Equal(t, time.Minute, refusal.Delay)
		})
	})
	t.Run("each call has one outcome", func(t *testing.T) {
		bubble(t, func(t *testing.T, line *line) {
			pace := line.pace(shaper.New(scheduler.PerSecond(10), shaper.WithQueue(10)))
			ctx, cancel := context.WithTimeout(t.Context(), 550*ms)
			defer cancel()
			for range 15 {
				line.waitWith(ctx, pace)
			}
			pace.Pause()
			time.Sleep(time.Hour)
			st := pace.Stats()
			assert.Equal(t, st.Submitted, st.Left+st.Cancelled+st.Refused+st.Waiting)
			assert.EqualValues(t, 15, len(line.departures())+len(line.errors()))
		})
	})
	t.Run("changes reach waiting calls", func(t *testing.T) {
		bubble(t, func(t *testing.T, line *line) {
			pace := line.pace(shaper.New(scheduler.PerHour(1)))
			line.wait(pace, 3)
			pace.HoldUntil(time.Now().Add(time.Minute))
			require.NoError(t, pace.SetRate(scheduler.PerSecond(10)))
			time.Sleep(time.Hour)
			assert.Equal(t, []time.Duration{0, time.Minute, time.Minute + 100*ms}, line.departures())
		})
	})
}

// In a bubble time is exact, so a partner without any slack refuses nothing that
// is paced, and would refuse a call that came a nanosecond too early.
func TestPartnerWithoutSlackRefusesNothing(t *testing.T) {
	limit := partner.Limit{Units: 10, Window: time.Second, Even: true}
	for _, tt := range []struct {
		rate    scheduler.Rate
		refused bool
	}{
		{scheduler.PerSecond(10), false},
		{scheduler.Every(100*ms - 1), true},
	} {
		synctest.Test(t, func(t *testing.T) {
			p, err := partner.New(partner.Config{SMS: partner.Endpoint{Limit: limit}})
			require.NoError(t, err)
			pace, err := shaper.New(tt.rate)
			require.NoError(t, err)
			client := &http.Client{Transport: transport.New(handled{p}, pace)}
			for range 100 {
				send(t, client, "http://partner.example")
			}
			score := p.Stats().SMS
			assert.EqualValues(t, 100, score.Accepted+score.Refused)
			assert.Equal(t, tt.refused, score.Refused > 0, "%+v", score)
		})
	}
}

// A real round trip on loopback: the partner refuses what goes beyond its limit, and
// so what is not paced. Its slack is for a busy machine, which may deliver requests
// closer together than they left, even beyond the slack, but not each time;
// TestPartnerWithoutSlackRefusesNothing is the exact one.
func TestPartnerOnLoopback(t *testing.T) {
	const calls = 12
	run := func(t *testing.T, opts ...func(*http.Client)) partner.Score {
		p, err := partner.New(partner.Config{SMS: partner.Endpoint{
			Limit: partner.Limit{Units: 10, Window: time.Second, Slack: 400 * ms}}})
		require.NoError(t, err)
		url, stop, err := p.Start()
		require.NoError(t, err)
		defer stop()
		client := &http.Client{}
		for _, opt := range opts {
			opt(client)
		}
		var wg sync.WaitGroup
		for range calls {
			wg.Go(func() { send(t, client, url) })
		}
		wg.Wait()
		client.CloseIdleConnections()
		return p.Stats().SMS
	}
	t.Run("paced", func(t *testing.T) {
		var score partner.Score
		for range 10 {
			pace, err := shaper.New(scheduler.PerSecond(10))
			require.NoError(t, err)
			start := time.Now()
			score = run(t, func(c *http.Client) { c.Transport = transport.New(nil, pace) })
			assert.GreaterOrEqual(t, time.Since(start), (calls-1)*100*ms)
			if score.Refused == 0 {
				break
			}
		}
		assert.EqualValues(t, calls, score.Accepted)
		assert.Zero(t, score.Refused)
	})
	t.Run("unpaced", func(t *testing.T) {
		assert.NotZero(t, run(t).Refused)
	})
}

// Jobs run at the pace, in order, and each one runs or comes back.
func TestQueueKeepsThePace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pace, err := shaper.New(scheduler.PerSecond(10))
		require.NoError(t, err)
		q, err := queue.New(pace, queue.Run, queue.WithWorkers(4))
		require.NoError(t, err)
		start := time.Now()
		started := make(chan time.Duration, 100)
		for range 10 {
			require.NoError(t, q.Submit(t.Context(), func(context.Context) error {
				started <- time.Since(start)
				return errors.New("a failure costs no slot of others")
			}))
		}
		ctx, cancel := context.WithTimeout(t.Context(), 650*ms)
		defer cancel()
		unrun, err := q.Shutdown(ctx)
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Len(t, unrun, 3)
		close(started)
		var at []time.Duration
		for s := range started {
			at = append(at, s)
		}
		assert.Equal(t, []time.Duration{0, 100 * ms, 200 * ms, 300 * ms, 400 * ms, 500 * ms, 600 * ms}, at)
	})
}

func send(t *testing.T, client *http.Client, url string) {
	resp, err := client.Post(url+"/v1/messages", "application/json",
		strings.NewReader(`{"from":"sluice","to":"+15550100","text":"hello"}`))
	if assert.NoError(t, err) {
		resp.Body.Close()
	}
}

// handled sends requests straight to a handler, in no time.
type handled struct{ http.Handler }

func (h handled) RoundTrip(r *http.Request) (*http.Response, error) {
	defer r.Body.Close()
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, r)
	return rec.Result(), nil
}

// A line submits calls in a bubble and records what becomes of them.
type line struct {
	t     *testing.T
	start time.Time

	mu        sync.Mutex
	submitted int
	left      []time.Duration
	ids       []int
	errs      []error
}

func bubble(t *testing.T, f func(*testing.T, *line)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(t, &line{t: t, start: time.Now()}) })
}

func (l *line) pace(s *shaper.Shaper, err error) *shaper.Shaper {
	l.t.Helper()
	require.NoError(l.t, err)
	return s
}

func (l *line) wait(s *shaper.Shaper, calls int) {
	for range calls {
		l.waitWith(l.t.Context(), s)
	}
}

func (l *line) waitWith(ctx context.Context, s *shaper.Shaper) {
	id := l.submitted
	l.submitted++
	go func() {
		err := s.Wait(ctx)
		l.mu.Lock()
		defer l.mu.Unlock()
		if err != nil {
			l.errs = append(l.errs, err)
			return
		}
		l.left = append(l.left, time.Since(l.start))
		l.ids = append(l.ids, id)
	}()
	synctest.Wait() // until it has left or waits
}

func (l *line) departures() []time.Duration { l.settle(); return l.left }
func (l *line) order() []int                { l.settle(); return l.ids }
func (l *line) errors() []error             { l.settle(); return l.errs }

func (l *line) settle() {
	synctest.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
}
