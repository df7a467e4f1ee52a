package transport_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
	"github.com/sluice-go/sluice/transport"
	"github.com/stretchr/testify/require"
)

// A request that would wait longer is refused on arrival, with the wait that it would
// have needed, and it takes no slot. The caller's context is not to blame.
func TestMaxDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPartner()
		s := newShaper(t, scheduler.PerSecond(10))
		tr := transport.New(p, s, transport.WithMaxDelay(250*ms))
		wait := sendAll(t, tr, 3, func(int) *http.Request { return get(t, t.Context(), "/") })
		req, body, unchanged := post(t, t.Context())
		_, err := tr.RoundTrip(req)
		require.Zero(t, time.Since(p.started))
		var e *transport.Error
		require.ErrorAs(t, err, &e)
		require.ErrorIs(t, err, transport.ErrMaxDelay)
		require.ErrorIs(t, err, transport.ErrNotSent)
		require.NotErrorIs(t, err, context.DeadlineExceeded, "the caller has set none")
		require.NotErrorIs(t, err, shaper.ErrDeadline)
		require.True(t, e.Timeout())
		require.Zero(t, e.Waited)
		require.Equal(t, 300*ms, e.Wait)
		require.True(t, e.RetryAt.Equal(p.started.Add(300*ms)))
		require.Zero(t, e.HeldUntil)
		require.Equal(t, 1, body.closed)
		unchanged()
		for _, err := range wait() {
			require.NoError(t, err)
		}
		require.Equal(t, steps(0, 100*ms, 3), times(p.seen()))
	})
}

func TestMaxDelayAndTheRest(t *testing.T) {
	for name, tc := range map[string]struct {
		timeout time.Duration
		max     time.Duration
		want    error
	}{
		"a nearer deadline of the caller's": {50 * ms, 60 * ms, context.DeadlineExceeded},
		"a later one":                       {60 * ms, 50 * ms, transport.ErrMaxDelay},
		"both at once: the caller's":        {50 * ms, 50 * ms, context.DeadlineExceeded},
		"neither":                           {time.Second, time.Second, nil},
		"as much as the wait":               {time.Hour, 100 * ms, nil},
		"a nanosecond less":                 {time.Hour, 100*ms - 1, transport.ErrMaxDelay},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tr := transport.New(newPartner(), newShaper(t, scheduler.PerSecond(10)), transport.WithMaxDelay(tc.max))
				mustSend(t, tr, "/")
				ctx, cancel := context.WithTimeout(t.Context(), tc.timeout)
				defer cancel()
				_, err := tr.RoundTrip(get(t, ctx, "/"))
				if tc.want == nil {
					require.NoError(t, err)
					return
				}
				require.ErrorIs(t, err, tc.want)
				require.Equal(t, tc.want == context.DeadlineExceeded, errors.Is(err, context.DeadlineExceeded))
				require.NoError(t, ctx.Err(), "told on arrival")
			})
		})
	}
}

// A hold that sets in later, a place that does not become free and a Waiter that does not
// predict all count.
func TestMaxDelayInTheLine(t *testing.T) {
	t.Run("hold", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newShaper(t, scheduler.PerSecond(10))
			tr := transport.New(newPartner(), s, transport.WithMaxDelay(150*ms))
			mustSend(t, tr, "/")
			until := time.Now().Add(10 * sec)
			time.AfterFunc(50*ms, func() { s.HoldUntil(until) })
			_, err := tr.RoundTrip(get(t, t.Context(), "/"))
			var e *transport.Error
			require.ErrorAs(t, err, &e)
			require.ErrorIs(t, err, transport.ErrMaxDelay)
			require.Equal(t, 50*ms, e.Waited)
			require.True(t, e.HeldUntil.Equal(until))
			require.Zero(t, e.Status, "the partner has not set it")
		})
	})
	t.Run("no prediction", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			tr := transport.New(newPartner(), forever, transport.WithMaxDelay(150*ms))
			_, err := tr.RoundTrip(get(t, t.Context(), "/"))
			require.ErrorIs(t, err, transport.ErrMaxDelay)
			require.Equal(t, 150*ms+1, err.(*transport.Error).Waited, "a wait of exactly that is allowed")
		})
	})
	t.Run("place", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := newPartner()
			script(p, func(req *http.Request) (*http.Response, error) { return says(req, http.StatusOK, "x"), nil })
			tr := transport.New(p, placesOf(t, nil), transport.WithMaxDelay(150*ms), transport.WithMaxInFlight(1))
			resp, err := tr.RoundTrip(get(t, t.Context(), "/"))
			require.NoError(t, err)
			_, err = tr.RoundTrip(get(t, t.Context(), "/"))
			require.ErrorIs(t, err, transport.ErrMaxDelay)
			require.Equal(t, 150*ms+1, time.Since(p.started))
			require.NoError(t, resp.Body.Close())
		})
	})
	t.Run("cancelled", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(10*ms, cancel)
			tr := transport.New(newPartner(), forever, transport.WithMaxDelay(150*ms))
			_, err := tr.RoundTrip(get(t, ctx, "/"))
			require.ErrorIs(t, err, context.Canceled)
			require.NotErrorIs(t, err, transport.ErrMaxDelay)
		})
	})
}

// The bound is the same to the nanosecond, and the error of one type, over a Shaper, a Group
// and x/time's Limiter, which all tell on arrival.
func TestMaxDelayOverEveryWaiter(t *testing.T) {
	const bound = 200 * ms
	for name, make := range map[string]func(*testing.T, ...transport.Option) *transport.Transport{
		"Shaper": func(t *testing.T, opts ...transport.Option) *transport.Transport {
			return transport.New(newPartner(), newShaper(t, scheduler.PerSecond(10)), opts...)
		},
		"Group": func(t *testing.T, opts ...transport.Option) *transport.Transport {
			return transport.NewKeyed(newPartner(), nil, newGroup(t, scheduler.PerSecond(10)), opts...)
		},
		"x/time": func(_ *testing.T, opts ...transport.Option) *transport.Transport {
			return transport.New(newPartner(), &limiter{interval: 100 * ms}, opts...)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tr := make(t, transport.WithMaxDelay(bound))
				wait := sendAll(t, tr, 3, func(int) *http.Request { return get(t, t.Context(), "/") }) // the third waits as long as it may
				began := time.Now()
				_, err := tr.RoundTrip(get(t, t.Context(), "/"))
				var e *transport.Error
				require.ErrorAs(t, err, &e)
				require.ErrorIs(t, err, transport.ErrMaxDelay)
				require.NotErrorIs(t, err, context.DeadlineExceeded)
				require.ErrorContains(t, err, "transport: wait exceeds the maximum delay of 200ms")
				require.True(t, e.Timeout())
				require.Zero(t, e.Waited)
				require.Equal(t, began, time.Now())

				short, cancel := context.WithTimeout(t.Context(), 199*ms)
				defer cancel()
				_, err = tr.RoundTrip(get(t, short, "/"))
				require.ErrorIs(t, err, context.DeadlineExceeded, "the caller's own deadline is")
				require.True(t, err.(*transport.Error).Timeout())
				require.Equal(t, began, time.Now())
				for _, err := range wait() {
					require.NoError(t, err)
				}
				require.Equal(t, began.Add(bound), time.Now())
			})
		})
	}
}

// A cost that x/time's Limiter can never pay is no matter of time.
func TestCostAboveTheBurstIsNoDelay(t *testing.T) {
	tr := transport.New(newPartner(), &limiter{interval: 100 * ms, burst: 5}, transport.WithMaxDelay(time.Second))
	_, err := tr.RoundTrip(get(t, transport.ContextWithCost(t.Context(), 6), "/"))
	require.ErrorContains(t, err, "exceeds limiter's burst")
	require.NotErrorIs(t, err, transport.ErrMaxDelay)
	require.False(t, err.(*transport.Error).Timeout())
}
