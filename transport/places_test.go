package transport_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
	"github.com/sluice-go/sluice/transport"
	"github.com/stretchr/testify/require"
)

// bounded are all ways to bound the requests in flight that a Transport knows. Each returns a
// Transport over p with the given rate and bound, and what holds its line.
var bounded = map[string]func(t *testing.T, p http.RoundTripper, r scheduler.Rate, most, queue int, opts ...transport.Option) (*transport.Transport, func(time.Time)){
	"the option, a Shaper": func(t *testing.T, p http.RoundTripper, r scheduler.Rate, most, queue int, opts ...transport.Option) (*transport.Transport, func(time.Time)) {
		s := newShaper(t, r, shaper.WithQueue(queue))
		return transport.New(p, s, append(opts, transport.WithMaxInFlight(most))...), s.HoldUntil
	},
	"a Shaper": func(t *testing.T, p http.RoundTripper, r scheduler.Rate, most, queue int, opts ...transport.Option) (*transport.Transport, func(time.Time)) {
		s := newShaper(t, r, shaper.WithQueue(queue), shaper.WithMaxInFlight(most))
		return transport.New(p, s, opts...), s.HoldUntil
	},
	"the option, a Group": func(t *testing.T, p http.RoundTripper, r scheduler.Rate, most, queue int, opts ...transport.Option) (*transport.Transport, func(time.Time)) {
		g := newGroup(t, r, shaper.WithQueue(queue))
		return transport.NewKeyed(p, nil, g, append(opts, transport.WithMaxInFlight(most))...), g.Of(keyOfGet(t)).HoldUntil
	},
	"a Group": func(t *testing.T, p http.RoundTripper, r scheduler.Rate, most, queue int, opts ...transport.Option) (*transport.Transport, func(time.Time)) {
		g := newGroup(t, r, shaper.WithQueue(queue), shaper.WithMaxInFlight(most))
		return transport.NewKeyed(p, nil, g, opts...), g.Of(keyOfGet(t)).HoldUntil
	},
	"a key": func(t *testing.T, p http.RoundTripper, r scheduler.Rate, most, queue int, opts ...transport.Option) (*transport.Transport, func(time.Time)) {
		k := newGroup(t, r, shaper.WithQueue(queue)).Of(keyOfGet(t))
		require.NoError(t, k.SetMaxInFlight(most))
		return transport.New(p, k, opts...), k.HoldUntil
	},
	"a key under an account": func(t *testing.T, p http.RoundTripper, r scheduler.Rate, most, queue int, opts ...transport.Option) (*transport.Transport, func(time.Time)) {
		account := newShaper(t, scheduler.Unlimited)
		g := newGroup(t, r, shaper.Under(account), shaper.WithQueue(queue), shaper.WithMaxInFlight(most))
		return transport.NewKeyed(p, nil, g, opts...), g.Of(keyOfGet(t)).HoldUntil
	},
	"an account": func(t *testing.T, p http.RoundTripper, r scheduler.Rate, most, queue int, opts ...transport.Option) (*transport.Transport, func(time.Time)) {
		account := newShaper(t, r, shaper.WithMaxInFlight(most), shaper.WithQueue(queue))
		g := newGroup(t, scheduler.Unlimited, shaper.Under(account))
		return transport.NewKeyed(p, nil, g, opts...), account.HoldUntil
	},
}

// A bound in flight holds, wherever it was set: for the request, its place and its turn are one
// wait in one line, so that what cannot make it is told at once, and what can leaves when
// both allow it.
func TestCaseJ13PlacesAndPace(t *testing.T) {
	for name, tc := range map[string]struct {
		rate     scheduler.Rate
		most     int
		queue    int
		requests int
		patience time.Duration
		ends     func(left time.Duration) time.Duration // when an answer to what left then ends
		hold     time.Duration                          // set at 1 s
		want     []time.Duration
		toldAt   time.Duration // to the others
	}{
		"a: all end at once": {
			rate: scheduler.PerSecond(10), most: 5, requests: 12,
			ends: func(left time.Duration) time.Duration { return max(2*sec, left) },
			want: append(steps(0, 100*ms, 5), steps(2*sec, 100*ms, 7)...),
		},
		"b: a stream in the only place": {
			rate: scheduler.PerSecond(10), most: 1, requests: 2,
			ends: func(left time.Duration) time.Duration { return left + 30*sec },
			want: []time.Duration{0, 30 * sec},
		},
		"c: a deadline": {
			rate: scheduler.PerSecond(1), most: 2, requests: 10, patience: 4500 * ms,
			ends: func(left time.Duration) time.Duration { return left },
			want: steps(0, sec, 5),
		},
		"d: a hold": {
			rate: scheduler.PerSecond(10), most: 2, requests: 6, patience: 30 * sec, hold: time.Minute,
			ends: func(left time.Duration) time.Duration { return left + 15*sec },
			want: steps(0, 100*ms, 2), toldAt: sec,
		},
		"e: a short line": {
			rate: scheduler.PerSecond(1), most: 2, queue: 5, requests: 20,
			ends: func(left time.Duration) time.Duration { return left + 3*sec },
			want: []time.Duration{0, sec, 3 * sec, 4 * sec, 6 * sec},
		},
	} {
		for kind, bind := range bounded {
			t.Run(name+"/"+kind, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					p := newPartner()
					p.answer = func(req *http.Request) (*http.Response, error) {
						left := time.Since(p.started)
						time.Sleep(tc.ends(left) - left)
						return answer(req, http.StatusOK), nil
					}
					queue := tc.queue
					if queue == 0 {
						queue = 1000
					}
					var log eventLog
					tr, hold := bind(t, p, tc.rate, tc.most, queue, transport.WithHooks(&transport.Trace{Refused: log.add("refused")}))
					wait := sendAll(t, tr, tc.requests, func(int) *http.Request {
						if tc.patience == 0 {
							return get(t, t.Context(), "/")
						}
						ctx, cancel := context.WithTimeout(t.Context(), tc.patience)
						t.Cleanup(cancel)
						return get(t, ctx, "/")
					})
					time.Sleep(tc.toldAt - time.Since(p.started))
					if tc.hold > 0 {
						hold(time.Now().Add(tc.hold))
					}
					synctest.Wait()
					require.Len(t, log.take(), tc.requests-len(tc.want), "told at once")
					wait()
					require.Equal(t, tc.want, times(p.seen()))
				})
			})
		}
	}
}

// With as many places as connections, what the pace lets go is on the wire at that moment: it
// waits for no connection.
func TestCaseJ13PlacesAndConnections(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { time.Sleep(2 * ms) }))
	defer srv.Close()
	wire := srv.Client().Transport.(*http.Transport)
	wire.MaxConnsPerHost = 1
	// A connection is free once the body's end was read, and so before the place is given back.
	var busy atomic.Int64
	base := roundTripFunc(func(req *http.Request) (*http.Response, error) {
		if busy.Add(1) > 1 {
			t.Error("the connection is not free")
		}
		resp, err := wire.RoundTrip(req)
		if err == nil {
			resp.Body = bodyWithEnd{resp.Body, func() { busy.Add(-1) }}
		}
		return resp, err
	})
	tr := transport.New(base, newShaper(t, scheduler.PerSecond(1000), shaper.WithMaxInFlight(1)))
	wait := make(chan error)
	for range 20 {
		go func() {
			resp, err := tr.RoundTrip(to(t, t.Context(), srv.URL))
			if err == nil {
				_, err = io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
			wait <- err
		}()
	}
	for range 20 {
		require.NoError(t, <-wait)
	}
}

// bodyWithEnd calls ended when its end has been read.
type bodyWithEnd struct {
	io.ReadCloser
	ended func()
}

func (b bodyWithEnd) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		b.ended()
	}
	return n, err
}

// A bound that is set, or lifted from one key, while requests are under way counts from the next
// request on, and no place is lost or given back twice.
func TestBoundThatComesLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPartner()
		p.answer = func(req *http.Request) (*http.Response, error) {
			time.Sleep(10 * sec)
			return answer(req, http.StatusOK), nil
		}
		s := newShaper(t, scheduler.PerSecond(10))
		tr := transport.New(p, s)
		first := sendAll(t, tr, 2, func(int) *http.Request { return get(t, t.Context(), "/") })
		time.Sleep(sec)
		require.NoError(t, s.SetMaxInFlight(1))
		wait := sendAll(t, tr, 2, func(int) *http.Request { return get(t, t.Context(), "/") })
		for _, err := range append(first(), wait()...) {
			require.NoError(t, err)
		}
		require.Equal(t, []time.Duration{0, 100 * ms, sec, 11 * sec}, times(p.seen()))
		require.Panics(t, s.Release, "all places have been given back")
	})
}

// keyOfGet is the key of the requests that get makes.
func keyOfGet(t *testing.T) string { return transport.HostKey(get(t, t.Context(), "/").URL) }
