package transport_test

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
	"github.com/sluice-go/sluice/transport"
)

// A hold that was lifted by hand is over. What the partner says after that counts, also if
// it is less than what was said before.
func TestRefusalAfterResume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPartner()
		script(p, status(429, "Retry-After: 600"), status(429, "Retry-After: 10"))
		s := newShaper(t, scheduler.PerSecond(10))
		tr := transport.New(p, s)
		send := func() {
			_, err := tr.RoundTrip(get(t, t.Context(), "/"))
			require.NoError(t, err)
		}
		send()
		s.Resume()
		send()
		send()
		require.Equal(t, []time.Duration{0, 100 * ms, 10*sec + 100*ms}, times(p.seen()))
	})
}

// A hold that is lifted costs no slot: the Waiter knows that there is none, and is asked once for
// each request.
func TestResumeCostsNoSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPartner()
		script(p, status(429, "Retry-After: 600"))
		s := newShaper(t, scheduler.PerMinute(1))
		tr := transport.New(p, s)
		mustSend(t, tr, "/")
		s.Resume()
		for range 2 {
			_, err := tr.RoundTrip(get(t, t.Context(), "/"))
			require.NoError(t, err)
		}
		require.Equal(t, steps(0, time.Minute, 3), times(p.seen()))
		require.EqualValues(t, 3, s.Stats().Left)
	})
}

// A partner that accepts has forgotten the refusal, and so is everything about it: no request
// waits where the hold would have ended.
func TestAcceptedAfterResume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPartner()
		script(p, status(429, "Retry-After: 86400"))
		s := newShaper(t, scheduler.PerSecond(1))
		tr := transport.New(p, s, transport.WithMaxHold(time.Minute))
		mustSend(t, tr, "/")
		s.Resume()
		for range 70 {
			_, err := tr.RoundTrip(get(t, t.Context(), "/"))
			require.NoError(t, err)
		}
		require.Equal(t, steps(sec, sec, 70), times(p.seen())[1:])
	})
}

// However fast the pace, one request tries whether the partner is there again.
func TestOneRequestTries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPartner()
		var tried atomic.Int64
		p.answer = func(req *http.Request) (*http.Response, error) {
			switch tried.Add(1) {
			case 1:
				return says(req, 429, "", "Retry-After: 86400"), nil
			case 2:
				time.Sleep(3 * sec)
			}
			return answer(req, http.StatusOK), nil
		}
		tr := transport.New(p, newShaper(t, scheduler.Unlimited), transport.WithMaxHold(time.Minute))
		mustSend(t, tr, "/")
		for _, err := range sendAll(t, tr, 200, func(int) *http.Request { return get(t, t.Context(), "/") })() {
			require.NoError(t, err)
		}
		at := times(p.seen())
		require.Equal(t, time.Minute, at[1])
		require.Equal(t, 63*sec, at[2], "the others wait for the answer")
		require.Equal(t, 63*sec, at[200])
	})
}

// A trial that gets no answer keeps the others for ten seconds at most.
func TestTrialThatTakesLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPartner()
		var n atomic.Int64
		p.answer = func(req *http.Request) (*http.Response, error) {
			switch n.Add(1) {
			case 1:
				return says(req, 429, "", "Retry-After: 86400"), nil
			case 2:
				time.Sleep(time.Hour)
			}
			return answer(req, http.StatusOK), nil
		}
		tr := transport.New(p, newShaper(t, scheduler.PerSecond(10)), transport.WithMaxHold(time.Minute))
		mustSend(t, tr, "/")
		ctx, cancel := context.WithTimeout(t.Context(), 65*sec)
		defer cancel()
		wait := sendAll(t, tr, 3, func(i int) *http.Request {
			if i == 1 {
				return get(t, ctx, "/") // gives up while another one tries
			}
			return get(t, t.Context(), "/")
		})
		errs := wait()
		require.NoError(t, errs[0])
		require.ErrorIs(t, errs[1], context.DeadlineExceeded)
		require.NoError(t, errs[2])
		require.GreaterOrEqual(t, times(p.seen())[2], 70*sec)
		require.LessOrEqual(t, times(p.seen())[2], 71*sec)
	})
}

// A refusal that comes when a Group has no room for the key holds it all the same.
func TestHoldOfAKeyWithoutRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPartner()
		var first atomic.Bool
		first.Store(true)
		p.answer = func(req *http.Request) (*http.Response, error) {
			if req.URL.Host == "x.example" && first.CompareAndSwap(true, false) {
				time.Sleep(2 * sec) // the key is forgotten meanwhile
				return says(req, 429, "", "Retry-After: 60"), nil
			}
			return answer(req, http.StatusOK), nil
		}
		g, err := shaper.NewGroup[string](scheduler.PerSecond(1), shaper.WithMaxKeys(3))
		require.NoError(t, err)
		tr := transport.NewKeyed(p, nil, g)
		to := func(host string) *http.Request {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+host+"/", nil)
			require.NoError(t, err)
			return req
		}
		wait := sendAll(t, tr, 1, func(int) *http.Request { return to("x.example") })
		time.Sleep(1900 * ms)
		for _, host := range []string{"a.example", "b.example", "c.example"} {
			_, err := tr.RoundTrip(to(host))
			require.NoError(t, err)
		}
		require.NoError(t, wait()[0])
		_, err = tr.RoundTrip(to("x.example"))
		require.ErrorIs(t, err, shaper.ErrTooManyKeys)
		time.Sleep(2 * sec)
		_, err = tr.RoundTrip(to("x.example"))
		require.NoError(t, err)
		require.Equal(t, 62*sec, time.Since(p.started))
	})
}

// A refusal of a request that was sent before another one was refused counts once, though
// the partner has accepted requests in between.
func TestLateSibling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPartner()
		var n atomic.Int64
		p.answer = func(req *http.Request) (*http.Response, error) {
			switch n.Add(1) {
			case 1:
				time.Sleep(10 * ms)
				return says(req, 429, ""), nil
			case 2:
				time.Sleep(5 * sec)
				return says(req, 429, ""), nil
			}
			return answer(req, http.StatusOK), nil
		}
		s := newShaper(t, scheduler.PerSecond(1000))
		tr := transport.New(p, s, transport.WithAdaptiveRate(0.1))
		wait := sendAll(t, tr, 2, func(int) *http.Request { return get(t, t.Context(), "/") })
		time.Sleep(2 * sec)
		mustSend(t, tr, "/")
		wait()
		require.Zero(t, s.Stats().HeldUntil)
		require.Greater(t, s.Stats().Rate.Cmp(scheduler.PerSecond(600)), 0, "cut once")
	})
}

// A request that cannot make it is told so, though others are in flight.
func TestToldAtOnceThoughOthersAreInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPartner()
		p.answer = func(req *http.Request) (*http.Response, error) {
			time.Sleep(30 * sec)
			return answer(req, http.StatusOK), nil
		}
		s := newShaper(t, scheduler.PerSecond(10))
		tr := transport.New(p, s, transport.WithMaxInFlight(1))
		wait := sendAll(t, tr, 1, func(int) *http.Request { return get(t, t.Context(), "/") })
		s.HoldUntil(time.Now().Add(time.Minute))
		ctx, cancel := context.WithTimeout(t.Context(), 10*sec)
		defer cancel()
		_, err := tr.RoundTrip(get(t, ctx, "/"))
		var e *transport.Error
		require.ErrorAs(t, err, &e)
		require.ErrorIs(t, err, shaper.ErrDeadline)
		require.Zero(t, e.Waited)
		require.Equal(t, time.Minute, e.Wait)
		wait()
	})
}

// Nothing of a request is in flight while it waits to be sent again.
func TestNoPlaceWhileWaitingToRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPartner()
		script(p, func(*http.Request) (*http.Response, error) { return nil, http.ErrServerClosed })
		tr := transport.New(p, newShaper(t, scheduler.PerSecond(100)),
			transport.WithMaxInFlight(1), transport.WithRetry(transport.Retry{}))
		for _, err := range sendAll(t, tr, 2, func(int) *http.Request { return get(t, t.Context(), "/") })() {
			require.NoError(t, err)
		}
		at := times(p.seen())
		require.Equal(t, 10*ms, at[1])
		require.GreaterOrEqual(t, at[2], sec)
	})
}
