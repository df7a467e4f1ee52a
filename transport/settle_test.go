package transport_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
	"github.com/sluice-go/sluice/transport"
	"github.com/sluice-go/sluice/transport/feedback"
)

func contextFor(t *testing.T, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(t.Context(), d)
}

// usage is a partner that tells the cost of its first answer after a second.
func usage(cost int) *partner {
	p := newPartner()
	var n atomic.Int64
	p.answer = func(req *http.Request) (*http.Response, error) {
		if n.Add(1) > 1 {
			return answer(req, http.StatusOK), nil
		}
		time.Sleep(sec)
		return says(req, http.StatusOK, strconv.Itoa(cost), "X-Usage: "+strconv.Itoa(cost)), nil
	}
	return p
}

func usageOf(resp *http.Response) (int64, bool) {
	cost, err := strconv.ParseInt(resp.Header.Get("X-Usage"), 10, 64)
	return cost, err == nil
}

// The cost is known only after the answer, by its header or its body.
//
// Sources: typedef-ai/fenic#313, BerriAI/litellm#36143, gravitational/teleport#69116,
// Kuadrant/kuadrant-operator#2263, bespokelabsai/curator#235, Helicone/helicone#4492.
func TestCaseJ01CostIsKnownAfterTheAnswer(t *testing.T) {
	for name, tc := range map[string]struct {
		estimates []int64
		actual    int
		want      []time.Duration
	}{
		"a: it was more":          {[]int64{100, 0, 600}, 500, []time.Duration{0, 5 * sec}}, // 0: the next one comes when the first is answered
		"b: it was less":          {[]int64{600, 600, 600}, 100, []time.Duration{0, sec, 7 * sec}},
		"as it was stated":        {[]int64{600, 600}, 600, []time.Duration{0, 6 * sec}},
		"it was nothing":          {[]int64{600, 600, 600}, 0, []time.Duration{0, sec, 7 * sec}},
		"below 0 is not believed": {[]int64{600, 600}, -5, []time.Duration{0, 6 * sec}},
	} {
		for by, settles := range map[string]func(t *testing.T, w any) (http.RoundTripper, *partner){
			"the header": func(t *testing.T, w any) (http.RoundTripper, *partner) {
				p := usage(tc.actual)
				return over(p, w, transport.WithSettle(usageOf)), p
			},
			"the body": func(t *testing.T, w any) (http.RoundTripper, *partner) {
				p := usage(tc.actual)
				tr := over(p, w)
				return roundTripFunc(func(req *http.Request) (*http.Response, error) {
					ctx := transport.ContextWithSettle(req.Context())
					resp, err := tr.RoundTrip(req.WithContext(ctx))
					if err != nil {
						return resp, err
					}
					body, _ := io.ReadAll(resp.Body)
					if cost, err := strconv.Atoi(string(body)); err == nil {
						if err := transport.Settle(ctx, cost); (err != nil) != (cost < 0) {
							t.Error(err)
						}
						if err := transport.Settle(ctx, cost); err == nil {
							t.Error("settled twice")
						} else if cost >= 0 {
							require.ErrorIs(t, err, shaper.ErrFinal)
						}
					}
					return resp, nil
				}), p
			},
		} {
			for line, make := range map[string]func(t *testing.T) any{
				"a Shaper": func(t *testing.T) any {
					return newShaper(t, scheduler.PerMinute(6000), shaper.WithBurst(600))
				},
				"a Group": func(t *testing.T) any {
					return newGroup(t, scheduler.PerMinute(6000), shaper.WithBurst(600))
				},
				"a key": func(t *testing.T) any {
					return newGroup(t, scheduler.PerMinute(6000), shaper.WithBurst(600)).Of("x")
				},
				"places": func(t *testing.T) any {
					return newShaper(t, scheduler.PerMinute(6000), shaper.WithBurst(600), shaper.WithMaxInFlight(10))
				},
			} {
				t.Run(name+" "+by+" "+line, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						w := make(t)
						rt, p := settles(t, w)
						for _, together := range split(tc.estimates) {
							wait := sendAll(t, rt, len(together), func(i int) *http.Request {
								return get(t, transport.ContextWithCost(t.Context(), together[i]), "/")
							})
							for _, err := range wait() {
								require.NoError(t, err)
							}
						}
						require.Equal(t, tc.want, times(p.seen()))
						if s, ok := w.(*shaper.Shaper); ok {
							require.Zero(t, s.Stats().InFlight)
						}
					})
				})
			}
		}
	}
}

// split cuts costs at 0.
func split(costs []int64) (parts [][]int64) {
	for i := slices.Index(costs, 0); i >= 0; i = slices.Index(costs, 0) {
		parts, costs = append(parts, costs[:i]), costs[i+1:]
	}
	return append(parts, costs)
}

// over makes a Transport over a Waiter of either kind.
func over(base http.RoundTripper, w any, opts ...transport.Option) *transport.Transport {
	if w, ok := w.(transport.KeyedWaiter); ok {
		return transport.NewKeyed(base, nil, w, opts...)
	}
	return transport.New(base, w.(transport.Waiter), opts...)
}

// What ends without an answer, or is hung up on, stays charged in full.
func TestWhatIsNotSettledIsCharged(t *testing.T) {
	for name, send := range map[string]func(t *testing.T, tr *transport.Transport, p *partner){
		"no answer": func(t *testing.T, tr *transport.Transport, p *partner) {
			script(p, func(*http.Request) (*http.Response, error) { return nil, errors.New("reset") })
			_, err := tr.RoundTrip(get(t, transport.ContextWithCost(t.Context(), 600), "/"))
			require.Error(t, err)
		},
		"not known": func(t *testing.T, tr *transport.Transport, p *partner) {
			_, err := tr.RoundTrip(get(t, transport.ContextWithCost(t.Context(), 600), "/"))
			require.NoError(t, err)
		},
		"hung up": func(t *testing.T, tr *transport.Transport, p *partner) {
			ctx, cancel := context.WithCancel(transport.ContextWithSettle(t.Context()))
			resp, err := tr.RoundTrip(get(t, transport.ContextWithCost(ctx, 600), "/"))
			require.NoError(t, err)
			cancel()
			resp.Body.Close()
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPartner()
				s := newShaper(t, scheduler.PerMinute(6000), shaper.WithBurst(600))
				send(t, transport.New(p, s, transport.WithSettle(usageOf)), p)
				synctest.Wait()
				require.Equal(t, 6*sec, s.DelayOf(shaper.Call{Cost: 600}))
			})
		})
	}
}

// Each attempt is charged, and settled by its own answer.
func TestEachAttemptIsSettled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPartner()
		script(p, status(429, "Retry-After: 0", "X-Usage: 0"), status(200, "X-Usage: 50"))
		s := newShaper(t, scheduler.PerMinute(6000), shaper.WithBurst(600))
		tr := transport.New(p, s, transport.WithSettle(usageOf), transport.WithRetry(transport.Retry{}))
		_, err := tr.RoundTrip(get(t, transport.ContextWithCost(t.Context(), 600), "/"))
		require.NoError(t, err)
		require.Equal(t, []time.Duration{0, 0}, times(p.seen()))
		require.Equal(t, 500*ms, s.DelayOf(shaper.Call{Cost: 600}))
	})
}

// There is nothing to settle where nothing has left, or nothing can be.
func TestNothingToSettle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		require.ErrorIs(t, transport.Settle(t.Context(), 1), transport.ErrUnsettled)
		ctx := transport.ContextWithSettle(t.Context())
		require.ErrorIs(t, transport.Settle(ctx, 1), transport.ErrUnsettled)
		_, err := transport.New(newPartner(), ready).RoundTrip(get(t, ctx, "/"))
		require.NoError(t, err)
		require.ErrorIs(t, transport.Settle(ctx, 1), transport.ErrUnsettled)

		s := newShaper(t, scheduler.PerSecond(1))
		_, err = transport.New(newPartner(), s).RoundTrip(get(t, ctx, "/"))
		require.NoError(t, err)
		require.NoError(t, transport.Settle(ctx, 0))
		require.Zero(t, s.Delay())
	})
}

// An option over a Waiter that cannot settle is an error when the Transport is made.
func TestWhatCannotSettle(t *testing.T) {
	settle := transport.WithSettle(usageOf)
	require.Contains(t, panicOf(func() { transport.New(nil, ready, settle) }), "transport: to settle needs a Waiter with DepartN")
	keyed := struct{ transport.KeyedWaiter }{newGroup(t, scheduler.PerSecond(1))}
	require.Contains(t, panicOf(func() { transport.NewKeyed(nil, nil, keyed, settle) }), "transport: to settle needs a Waiter with DepartN")
	require.Contains(t, panicOf(func() { transport.New(nil, must(shaper.NewFrom(unsettling{})), settle) }), "transport: to settle needs a Waiter that can: ")
	require.Contains(t, panicOf(func() {
		transport.New(nil, ready, transport.WithClassifier(nil), transport.WithLimits(func(string, feedback.Limit) {}))
	}), "is about answers")
}

// unsettling is a schedule of one's own.
type unsettling struct{}

func (unsettling) Next(t time.Time, _, _ int64) time.Time { return t }
func (unsettling) Commit(_, _ time.Time, _ int64)         {}
func (unsettling) MaxCost() int64                         { return 1 << 20 }

// unchecked can be scaled, so it says, and cannot.
type unchecked struct{ waitFunc }

func (unchecked) Scale(_, _ int64) error { return errFull }

// uncheckedKeyed does not tell whether it can be scaled.
type uncheckedKeyed struct{ transport.KeyedWaiter }

func (uncheckedKeyed) Scale(string, int64, int64) error { return errFull }

// A rate that cannot be cut is an error when the Transport is made, and never silence.
func TestCaseJ12AdaptiveRateThatCannotBeCut(t *testing.T) {
	adaptive := transport.WithAdaptiveRate(0.5)
	require.Contains(t, panicOf(func() { transport.New(nil, unchecked{ready}, adaptive) }), "transport: an adaptive rate needs a Waiter that can scale: line full")
	require.Contains(t, panicOf(func() {
		transport.NewKeyed(nil, nil, uncheckedKeyed{newGroup(t, scheduler.PerSecond(1))}, adaptive)
	}), "transport: an adaptive rate needs a KeyedWaiter with CanScale")
}

// What the partner states about its limit applies while requests wait.
//
// Sources: BenFradet/RiotSharp#557, dolejska-daniel/riot-api#70, stravalib/stravalib#141,
// aishek/axios-rate-limit#99.
func TestCaseJ12LimitIsLearnedFromTheAnswer(t *testing.T) {
	for _, line := range []string{`RateLimit-Policy: "app";q=5;w=10`, "RateLimit-Limit: 5, 5;w=10"} {
		synctest.Test(t, func(t *testing.T) {
			p := newPartner()
			p.answer = func(req *http.Request) (*http.Response, error) {
				time.Sleep(sec)
				return says(req, http.StatusOK, "", line), nil
			}
			s := must(shaper.NewFrom(must(scheduler.NewSlidingLog(2, 10*time.Second))))
			tr := transport.New(p, s, transport.WithLimits(func(key string, l feedback.Limit) {
				require.Empty(t, key)
				require.NoError(t, s.Update(func(limit scheduler.Scheduler) error {
					if window, ok := limit.(*scheduler.SlidingLog); ok && l.Window == 10*time.Second {
						return window.SetLimit(time.Now(), l.Units)
					}
					return nil
				}))
			}))
			for _, err := range sendAll(t, tr, 10, func(int) *http.Request { return get(t, t.Context(), "/") })() {
				require.NoError(t, err)
			}
			require.Equal(t, []time.Duration{0, 0, sec, sec, sec, 10 * sec, 10 * sec, 11 * sec, 11 * sec, 11 * sec}, times(p.seen()))
		})
	}
}
