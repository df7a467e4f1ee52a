package shaper_test

import (
	"context"
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
// one.
func assertShape(t testing.TB, left []time.Duration, r scheduler.Rate, burst int, tolerance time.Duration) {
	t.Helper()
	for i := range left {
		for k := i + burst; k < len(left); k++ {
			// k-i+1 units are too many if k-i+1-burst intervals take longer than w+J.
			if w := left[k] - left[i]; r.For(int64(k-i+1-burst)) > w+tolerance+1 {
				t.Fatalf("%d units left within %v at rate %v, burst %d, tolerance %v", k-i+1, w, r, burst, tolerance)
			}
		}
	}
}
