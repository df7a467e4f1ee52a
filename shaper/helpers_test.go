package shaper_test

import (
	"context"
	"math"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
)

func newShaper(t testing.TB, r scheduler.Rate, opts ...shaper.Option) *shaper.Shaper {
	t.Helper()
	s, err := shaper.New(r, opts...)
	require.NoError(t, err)
	return s
}

const ms = time.Millisecond

// A recorder submits calls inside a bubble and keeps how and when each ended.
type recorder struct {
	start time.Time
	mu    sync.Mutex
	calls []*submitted
}

type submitted struct {
	ended bool
	err   error
	at    time.Duration // since the start of the recorder
}

func newRecorder() *recorder { return &recorder{start: time.Now()} }

// submit runs wait in a goroutine and returns once it has ended or blocks, so
// that calls join the line in the order in which they are submitted.
func (r *recorder) submit(wait func() error) *submitted {
	c := &submitted{}
	r.mu.Lock()
	r.calls = append(r.calls, c)
	r.mu.Unlock()
	go func() {
		err := wait()
		at := time.Since(r.start)
		r.mu.Lock()
		defer r.mu.Unlock()
		c.ended, c.err, c.at = true, err, at
	}()
	synctest.Wait()
	return c
}

// wait submits a call of one unit.
func (r *recorder) wait(ctx context.Context, s *shaper.Shaper) *submitted {
	return r.submit(func() error { return s.Wait(ctx) })
}

// until lets time pass until the given time since the start.
func (r *recorder) until(d time.Duration) { pass(d - time.Since(r.start)) }

// pass lets the time of the bubble pass, and everything happen that is due by then.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// left returns when calls left, in the order of their submission.
func (r *recorder) left() []time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	var left []time.Duration
	for _, c := range r.calls {
		if c.ended && c.err == nil {
			left = append(left, c.at)
		}
	}
	return left
}

// steps returns count times, from start on and interval apart.
func steps(start, interval time.Duration, count int) []time.Duration {
	out := make([]time.Duration, count)
	for i := range out {
		out[i] = start + time.Duration(i)*interval
	}
	return out
}

// conserved checks that each call has one outcome or waits.
func conserved(t testing.TB, s *shaper.Shaper) {
	t.Helper()
	st := s.Stats()
	assert.Equal(t, st.Submitted, st.Left+st.Cancelled+st.Refused+st.Waiting, "%+v", st)
}

// assertShape checks that no closed window holds more than burst + floor((w+J)/T)
// departures of one unit. It is enough to look at windows that begin and end with
// one: for all i <= k, k-i+1-burst intervals must not take longer than w+J.
func assertShape(t testing.TB, left []time.Duration, r scheduler.Rate, burst int, tolerance time.Duration) {
	t.Helper()
	const rounding = 2 // departures, and the sums below, are rounded to nanoseconds
	latest, from := time.Duration(math.MinInt64), 0
	for k := range left {
		// Of all windows that end here, that of the latest i - i·T is the worst.
		if at := left[k] - r.For(int64(k)); at > latest {
			latest, from = at, k
		}
		if n := k - from + 1; n > burst && r.For(int64(n-burst)) > left[k]-left[from]+tolerance+rounding {
			t.Fatalf("%d units left within %v at rate %v, burst %d, tolerance %v",
				n, left[k]-left[from], r, burst, tolerance)
		}
	}
}

// awaitWaiting returns once so many calls wait, on the real clock.
func awaitWaiting(waiting func() int64, n int64) {
	for waiting() < n {
		time.Sleep(100 * time.Microsecond)
	}
}

// alive returns how many goroutines there are. While garbage is collected, some that have ended may be
// counted; so that is done first.
func alive() int {
	runtime.GC()
	return runtime.NumGoroutine()
}
