package transport_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
	"github.com/sluice-go/sluice/transport"
	"github.com/stretchr/testify/require"
)

// The cases from the field, with the real Shaper as Waiter.

func newShaper(t *testing.T, r scheduler.Rate, opts ...shaper.Option) *shaper.Shaper {
	t.Helper()
	s, err := shaper.New(r, opts...)
	require.NoError(t, err)
	return s
}

// mustSend sends a request that is expected to leave at once.
func mustSend(t *testing.T, rt http.RoundTripper, path string) {
	t.Helper()
	began := time.Now()
	resp, err := rt.RoundTrip(get(t, t.Context(), path))
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Zero(t, time.Since(began))
}

// A request that never reaches the partner has its body closed all the same, or
// file handles and pipe writers leak.
//
// Sources: golang/oauth2#269, golang/go#48341, golang/go#61257,
// alexfalkowski/go-service#2571, improbable-eng/kedge#152.
func TestCaseE01BodyIsClosedWhenRefusedBeforeSending(t *testing.T) {
	for name, tc := range map[string]struct {
		opts    []shaper.Option
		prepare func(*shaper.Shaper, context.CancelFunc)
		want    error
	}{
		"a context already cancelled": {
			prepare: func(_ *shaper.Shaper, cancel context.CancelFunc) { cancel() },
			want:    context.Canceled,
		},
		"b queue full": {
			opts: []shaper.Option{shaper.WithQueue(1)},
			want: shaper.ErrQueueFull,
		},
		"c limiter closed": {
			prepare: func(s *shaper.Shaper, _ context.CancelFunc) { _ = s.Close() },
			want:    shaper.ErrClosed,
		},
		"d context ends while queued": {
			prepare: func(_ *shaper.Shaper, cancel context.CancelFunc) { time.AfterFunc(300*time.Millisecond, cancel) },
			want:    context.Canceled,
		},
		"e limiter closed while queued": {
			prepare: func(s *shaper.Shaper, _ context.CancelFunc) {
				time.AfterFunc(300*time.Millisecond, func() { _ = s.Close() })
			},
			want: shaper.ErrClosed,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPartner()
				s := newShaper(t, scheduler.PerSecond(1), tc.opts...)
				tr := transport.New(p, s)
				mustSend(t, tr, "/first")

				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if tc.prepare != nil {
					tc.prepare(s, cancel)
				}
				req, body, unchanged := post(t, ctx)
				resp, err := tr.RoundTrip(req)
				require.Nil(t, resp)
				require.ErrorIs(t, err, tc.want)
				require.Equal(t, 1, body.closed)
				require.Equal(t, []call{{"/first", 0}}, p.seen(), "the partner sees nothing of it")
				unchanged()
			})
		})
	}
}

// Every hop of a redirect is a request to the partner and takes its own turn behind
// the requests that wait already.
//
// Sources: transithq/tropel#261, ietf-wg-httpapi/ratelimit-headers#48.
func TestCaseE10EveryRedirectHopIsARequest(t *testing.T) {
	next := map[string]string{"/0": "/1", "/1": "/2"}
	redirecting := func(latency time.Duration) *partner {
		p := newPartner()
		p.answer = func(req *http.Request) (*http.Response, error) {
			time.Sleep(latency)
			to, ok := next[req.URL.Path]
			if !ok {
				return answer(req, http.StatusOK), nil
			}
			resp := answer(req, http.StatusFound)
			resp.Header.Set("Location", to)
			return resp, nil
		}
		return p
	}
	fetch := func(t *testing.T, client *http.Client, path string) {
		resp, err := client.Get("http://api.example" + path)
		if err != nil {
			t.Error(err)
			return
		}
		if resp.StatusCode != http.StatusOK {
			t.Errorf("%s: status %d", path, resp.StatusCode)
		}
		resp.Body.Close()
	}

	t.Run("alone", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := redirecting(0)
			client := &http.Client{Transport: transport.New(p, newShaper(t, scheduler.PerSecond(10)))}
			fetch(t, client, "/0")
			require.Equal(t, []call{{"/0", 0}, {"/1", 100 * time.Millisecond}, {"/2", 200 * time.Millisecond}}, p.seen())
		})
	})
	t.Run("with another caller", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := redirecting(time.Millisecond) // fast, yet /x is in the line before the first answer
			client := &http.Client{Transport: transport.New(p, newShaper(t, scheduler.PerSecond(10)))}
			go fetch(t, client, "/0")
			synctest.Wait() // /0 has left and its answer is under way
			go fetch(t, client, "/x")
			time.Sleep(time.Second)
			require.Equal(t, []call{
				{"/0", 0},
				{"/x", 100 * time.Millisecond},
				{"/1", 200 * time.Millisecond},
				{"/2", 300 * time.Millisecond},
			}, p.seen())
		})
	})
}

// The error names the cause that really stopped the request, so that no user turns
// the wrong knob.
//
// Sources: kubernetes/kubernetes#137694, kubernetes/kubernetes#108342,
// basecamp/basecamp-cli#766, upbound/universal-crossplane#280.
func TestCaseI01BlameTheRightCause(t *testing.T) {
	const ms = time.Millisecond
	// run sends one request at 0 and reports on a second one that is submitted with
	// ctx.
	run := func(t *testing.T, ctx context.Context, during func(*shaper.Shaper), opts ...shaper.Option) (*transport.Error, error) {
		t.Helper()
		p := newPartner()
		s := newShaper(t, scheduler.PerSecond(10), opts...)
		client := &http.Client{Transport: transport.New(p, s)}
		mustSend(t, client.Transport, "/first")
		if during != nil {
			during(s)
		}
		_, err := client.Do(get(t, ctx, "/v1/messages?token=hunter2"))
		require.Len(t, p.seen(), 1)
		var ue *url.Error
		require.ErrorAs(t, err, &ue)
		e, _ := ue.Err.(*transport.Error)
		return e, ue.Err
	}

	t.Run("context cancelled before the call", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			e, err := run(t, ctx, nil)
			require.Nil(t, e)
			require.Equal(t, context.Canceled, err)
		})
	})
	t.Run("deadline too near for the line", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 50*ms)
			defer cancel()
			began := time.Now()
			e, err := run(t, ctx, nil)
			require.Equal(t, began, time.Now(), "told at once")
			require.NotNil(t, e)
			require.ErrorIs(t, err, shaper.ErrDeadline)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.ErrorIs(t, err, transport.ErrNotSent)
			require.Zero(t, e.HeldUntil, "the pace is to blame, and no hold")
			require.True(t, e.Timeout())
			require.Zero(t, e.Waited)
			require.Equal(t, 100*ms, e.Wait)
			require.True(t, e.RetryAt.Equal(began.Add(100*ms)))
			require.Equal(t, "http://api.example", e.Key)
			require.NotContains(t, e.Error(), "hunter2")
		})
	})
	t.Run("deadline passes in the line", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 150*ms)
			defer cancel()
			e, err := run(t, ctx, func(s *shaper.Shaper) {
				time.AfterFunc(20*ms, s.Pause) // it would have made it
			})
			require.NotNil(t, e)
			require.Equal(t, context.DeadlineExceeded, e.Reason)
			require.ErrorIs(t, err, transport.ErrNotSent)
			require.True(t, e.Timeout())
			require.Equal(t, 150*ms, e.Waited)
		})
	})
	t.Run("cancelled in the line", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(30*ms, cancel)
			e, err := run(t, ctx, nil)
			require.NotNil(t, e)
			require.Equal(t, context.Canceled, e.Reason)
			require.ErrorIs(t, err, transport.ErrNotSent)
			require.False(t, e.Timeout())
			require.Equal(t, 30*ms, e.Waited)
		})
	})
	t.Run("deadline before the end of a hold", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			until := time.Now().Add(time.Hour)
			e, err := run(t, ctx, func(s *shaper.Shaper) { s.HoldUntil(until) })
			require.NotNil(t, e)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.True(t, e.Timeout())
			require.Equal(t, time.Hour, e.Wait)
			require.True(t, e.RetryAt.Equal(until))
			require.True(t, e.HeldUntil.Equal(until), "the hold is to blame, and not the pace")
		})
	})
	t.Run("deadline before the partner wants another request", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := newPartner()
			script(p, status(http.StatusTooManyRequests, "Retry-After: 60"))
			client := &http.Client{Transport: transport.New(p, newShaper(t, scheduler.PerSecond(10)))}
			mustSend(t, client.Transport, "/refused")
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			_, err := client.Do(get(t, ctx, "/v1/messages?token=hunter2"))
			require.Zero(t, time.Since(p.started), "told at once")
			var e *transport.Error
			require.ErrorAs(t, err, &e)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.ErrorIs(t, err, transport.ErrNotSent)
			require.True(t, e.Timeout())
			require.Equal(t, http.StatusTooManyRequests, e.Status)
			require.True(t, e.HeldUntil.Equal(p.started.Add(time.Minute)))
			require.Equal(t, time.Minute, e.Wait)
			require.Contains(t, e.Error(), "held by the partner (status 429) until 2000-01-01T00:01:00Z")
			require.NotContains(t, e.Error(), "hunter2")
		})
	})
	t.Run("cancelled behind the partner's hold", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := newPartner()
			script(p, status(http.StatusServiceUnavailable, "Retry-After: 60"))
			tr := transport.New(p, newShaper(t, scheduler.PerSecond(10)))
			mustSend(t, tr, "/refused")
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Second, cancel)
			_, err := tr.RoundTrip(get(t, ctx, "/"))
			var e *transport.Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, context.Canceled, e.Reason)
			require.Equal(t, http.StatusServiceUnavailable, e.Status)
			require.True(t, e.HeldUntil.Equal(p.started.Add(time.Minute)))
		})
	})
	t.Run("longer than the longest delay", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			e, err := run(t, t.Context(), nil, shaper.WithMaxDelay(99*ms))
			require.NotNil(t, e)
			require.ErrorIs(t, err, shaper.ErrMaxDelay)
			require.NotErrorIs(t, err, context.DeadlineExceeded, "the caller set none")
			require.True(t, e.Timeout())
			require.Equal(t, 100*ms, e.Wait)
		})
	})
	t.Run("line full", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			e, err := run(t, t.Context(), nil, shaper.WithQueue(1))
			require.NotNil(t, e)
			require.ErrorIs(t, err, shaper.ErrQueueFull)
			require.False(t, e.Timeout())
		})
	})
	t.Run("closed", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			e, err := run(t, t.Context(), func(s *shaper.Shaper) { _ = s.Close() })
			require.NotNil(t, e)
			require.ErrorIs(t, err, shaper.ErrClosed)
			require.False(t, e.Timeout())
			require.Zero(t, e.Wait)
			require.True(t, e.RetryAt.IsZero())
		})
	})
}

// A request that cannot be sent takes no slot from those that can.
//
// Sources: golang/time#22, golang/go#52584, golang/go#54541,
// kubernetes-sigs/cli-utils#635, mjpieters/aiolimiter#176.
func TestCaseA06DeadOrTooShortContextTakesNoSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ms = time.Millisecond
		p := newPartner()
		tr := transport.New(p, newShaper(t, scheduler.PerSecond(1)))
		mustSend(t, tr, "/0")

		time.Sleep(10 * ms)
		dead, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := tr.RoundTrip(get(t, dead, "/dead"))
		require.Equal(t, context.Canceled, err)
		require.Equal(t, 10*ms, time.Since(p.started))

		time.Sleep(10 * ms)
		short, cancel := context.WithTimeout(t.Context(), 300*ms)
		defer cancel()
		_, err = tr.RoundTrip(get(t, short, "/short"))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, 20*ms, time.Since(p.started))

		time.Sleep(10 * ms)
		_, err = tr.RoundTrip(get(t, t.Context(), "/1"))
		require.NoError(t, err)
		require.Equal(t, []call{{"/0", 0}, {"/1", time.Second}}, p.seen())
	})
}

// http.Client.Timeout reaches the Shaper as a deadline, so what it would cut off is
// refused on arrival, and the transport's own error, not net/http's, tells why.
func TestClientTimeoutIsRefusedOnArrival(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPartner()
		client := &http.Client{Transport: transport.New(p, newShaper(t, scheduler.PerSecond(1))), Timeout: 999 * time.Millisecond}
		mustSend(t, client.Transport, "/0")
		_, err := client.Get("http://api.example/1")
		require.Zero(t, time.Since(p.started))
		var e *transport.Error
		require.True(t, errors.As(err, &e))
		require.ErrorIs(t, err, shaper.ErrDeadline)
		require.Equal(t, time.Second, e.Wait)
		var ue *url.Error
		require.ErrorAs(t, err, &ue)
		require.True(t, ue.Timeout())
	})
}

// A message of 3 segments at 10 segments/s keeps the next one waiting for 300 ms.
func TestCostIsPaidToTheShaper(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPartner()
		tr := transport.New(p, newShaper(t, scheduler.PerSecond(10)))
		ctx := transport.ContextWithCost(t.Context(), 3)
		for _, path := range []string{"/0", "/1", "/2"} {
			_, err := tr.RoundTrip(get(t, ctx, path))
			require.NoError(t, err)
		}
		require.Equal(t, []call{{"/0", 0}, {"/1", 300 * time.Millisecond}, {"/2", 600 * time.Millisecond}}, p.seen())
	})
}

// The timers of the base start when the request leaves the line, not when it joins
// it.
func TestTimersOfTheBaseStartAfterTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		served := 0
		base, shut := pipeServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			served++
			w.WriteHeader(http.StatusNoContent)
		}))
		base.ResponseHeaderTimeout = time.Second
		base.ExpectContinueTimeout = time.Second
		tr := transport.New(base, newShaper(t, scheduler.Every(time.Minute)))
		began := time.Now()
		for i := range 3 {
			req := get(t, t.Context(), "/x")
			req.Header.Set("Expect", "100-continue")
			resp, err := tr.RoundTrip(req)
			require.NoError(t, err)
			_, err = io.Copy(io.Discard, resp.Body)
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			require.Equal(t, time.Duration(i)*time.Minute, time.Since(began))
		}
		require.Equal(t, 3, served)
		tr.CloseIdleConnections() // the bubble cannot end while a connection is open
		shut()
	})
}
