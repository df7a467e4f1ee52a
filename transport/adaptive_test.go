package transport_test

import (
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/transport"
	"github.com/stretchr/testify/require"
)

// strict is a base that lets at most limit requests through in any window, and keeps a
// log of all that came, which is all that it goes by.
type strict struct {
	window  time.Duration
	latency time.Duration
	refusal []string // lines of the header of a refusal

	mu       sync.Mutex
	limit    int
	accepted []time.Time
	refused  []time.Time
}

func (s *strict) setLimit(limit int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limit = limit
}

func (s *strict) RoundTrip(req *http.Request) (*http.Response, error) {
	ok := s.admit(time.Now())
	time.Sleep(s.latency)
	if !ok {
		return says(req, http.StatusTooManyRequests, "", s.refusal...), nil
	}
	return answer(req, http.StatusOK), nil
}

func (s *strict) admit(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if countBetween(s.accepted, now.Add(-s.window), now) >= s.limit {
		s.refused = append(s.refused, now)
		return false
	}
	s.accepted = append(s.accepted, now)
	return true
}

// countBetween counts the moments in (from, to], of which there are many, in order.
func countBetween(at []time.Time, from, to time.Time) (n int) {
	for i := len(at) - 1; i >= 0 && at[i].After(from); i-- {
		if !at[i].After(to) {
			n++
		}
	}
	return n
}

// between returns how many were accepted and refused from one moment to another.
func (s *strict) between(from, to time.Time) (accepted, refused int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return countBetween(s.accepted, from, to), countBetween(s.refused, from, to)
}

// callers keep sending through rt until stop is called.
func callers(t *testing.T, rt http.RoundTripper, n int) (stop func()) {
	t.Helper()
	quit := make(chan struct{})
	var wg sync.WaitGroup
	for range n {
		req := get(t, t.Context(), "/")
		wg.Go(func() {
			for {
				select {
				case <-quit:
					return
				default:
				}
				resp, err := rt.RoundTrip(req)
				if err != nil {
					t.Error(err)
					return
				}
				resp.Body.Close()
			}
		})
	}
	return sync.OnceFunc(func() { close(quit); wg.Wait() })
}

// The partner's limit drops to half and recovers. With an adaptive rate few are refused
// soon after, most of what is left is used, and most of what comes back: the moment of the
// recovery in the cycle of growth and cuts, of about 15 s, does not matter.
func TestAdaptiveRateFollowsTheLimit(t *testing.T) {
	for _, tc := range []struct {
		limit   int
		latency time.Duration
		refusal []string
		phases  []time.Duration
	}{
		{20, 30 * ms, []string{"Retry-After: 1"}, steps(0, 3*sec, 5)},
		{20, 30 * ms, nil, steps(sec, 3*sec, 5)},
		{100, 2 * ms, []string{"Retry-After: 1"}, steps(2*sec, 7*sec, 2)},
		{100, 30 * ms, nil, steps(4*sec, 7*sec, 2)},
		{100, 300 * ms, []string{"Retry-After: 1"}, steps(8*sec, 0, 1)},
		{200, 30 * ms, []string{"Retry-After: 1"}, steps(9*sec, 0, 1)},
	} {
		for _, phase := range tc.phases {
			t.Run(fmt.Sprintf("%d per second, latency %v, %v, phase %v", tc.limit, tc.latency, tc.refusal, phase), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					p := &strict{window: time.Second, latency: tc.latency, limit: tc.limit, refusal: tc.refusal}
					rate := must(scheduler.Within(int64(tc.limit), time.Second, 1)).Rate()
					s := newShaper(t, rate)
					var above atomic.Int64
					tr := transport.New(p, s, transport.WithAdaptiveRate(0.1), transport.WithHooks(&transport.Trace{
						Granted: func(transport.Event) {
							if s.Stats().Rate.Interval() < rate.Interval() {
								above.Add(1)
							}
						},
					}))
					stop := callers(t, tr, 2+int(time.Duration(tc.limit)*(2*tc.latency+100*ms)/sec))
					defer stop()
					time.Sleep(10 * sec)
					_, refused := p.between(time.Time{}, time.Now())
					require.Zero(t, refused)

					settled := time.Now().Add(10 * sec)
					p.setLimit(tc.limit / 2)
					const measured = 50
					time.Sleep((10 + measured) * sec)
					accepted, refused := p.between(settled, time.Now())
					used := float64(accepted) / float64(measured*tc.limit/2)
					require.GreaterOrEqual(t, used, 0.85)
					require.Less(t, float64(refused), 0.02*float64(accepted+refused))

					time.Sleep(phase)
					p.setLimit(tc.limit)
					time.Sleep(30 * sec)
					back := time.Now()
					time.Sleep(30 * sec)
					accepted, refused = p.between(back, time.Now())
					require.GreaterOrEqual(t, float64(accepted), 0.9*float64(30*tc.limit))
					require.Zero(t, refused)
					require.Equal(t, rate, s.Stats().Rate, "all of it")
					require.Zero(t, above.Load(), "never above the configured rate")
					t.Logf("used %.1f %%", 100*used)
				})
			})
		}
	}
}

// A refusal cuts the rate to 7/10, once for all that were sent before, and never below the
// floor. Successes raise it again, up to where it was.
func TestAdaptiveCuts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPartner()
		refuse := true
		p.answer = func(req *http.Request) (*http.Response, error) {
			code := http.StatusOK
			if refuse {
				code = http.StatusTooManyRequests
			}
			time.Sleep(time.Second)
			return says(req, code, "", "Retry-After: 0"), nil
		}
		s := newShaper(t, scheduler.PerSecond(1000))
		tr := transport.New(p, s, transport.WithAdaptiveRate(0.3))
		send := func(n int) {
			for _, err := range sendAll(t, tr, n, func(int) *http.Request { return get(t, t.Context(), "/") })() {
				require.NoError(t, err)
			}
		}
		for _, want := range []int64{700, 490, 343, 300, 300} {
			send(20) // the answers come one after the other
			require.Equal(t, scheduler.PerSecond(want), s.Stats().Rate)
		}
		refuse = false
		last := s.Stats().Rate
		for range 60 {
			send(1)
			now := s.Stats().Rate
			require.LessOrEqual(t, now.Interval(), last.Interval())
			last = now
		}
		require.Equal(t, scheduler.PerSecond(1000), last)
	})
}

// Each key has a share of its own, and is forgotten once it has all of its rate again.
func TestAdaptiveKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPartner()
		script(p, status(http.StatusTooManyRequests, "Retry-After: 1"))
		g := newGroup(t, scheduler.PerSecond(10))
		tr := transport.NewKeyed(p, nil, g, transport.WithAdaptiveRate(0.1))
		send := func(host string) {
			_, err := tr.RoundTrip(to(t, t.Context(), "http://"+host))
			require.NoError(t, err)
		}
		send("a.example")
		send("b.example")
		rates := map[string]scheduler.Rate{}
		for key, state := range g.Range {
			rates[key] = state.Rate
		}
		require.Equal(t, map[string]scheduler.Rate{
			"http://a.example": scheduler.PerSecond(7),
			"http://b.example": scheduler.PerSecond(10),
		}, rates)
		for range 1000 {
			send("a.example")
		}
		time.Sleep(time.Second)
		require.Zero(t, g.Len())
	})
}

// Refusals do not touch the rate unless that is asked for.
func TestRateIsNotAdaptiveByDefault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPartner()
		script(p, always(status(http.StatusTooManyRequests, "Retry-After: 0"), 10)...)
		s := newShaper(t, scheduler.PerSecond(10))
		for range 5 {
			_, err := transport.New(p, s).RoundTrip(get(t, t.Context(), "/"))
			require.NoError(t, err)
		}
		require.Equal(t, steps(0, 100*ms, 5), times(p.seen()))
		require.Equal(t, scheduler.PerSecond(10), s.Stats().Rate)
	})
}
