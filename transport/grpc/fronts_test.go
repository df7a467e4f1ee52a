package grpcpace_test

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/sluice-go/sluice/transport"
	grpcpace "github.com/sluice-go/sluice/transport/grpc"
	"github.com/sluice-go/sluice/transport/internal/engine"
)

// A saying is what a partner answers, over HTTP or gRPC. The zero saying is a success.
type saying struct {
	refused bool
	wait    time.Duration // until the partner wants the next call; below 0: not stated
	spent   time.Duration // of a success: no more than left remains for so long
	left    int
	takes   time.Duration
}

func refuses(wait time.Duration) saying { return saying{refused: true, wait: wait} }

func seconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) }

// needs are the options of both fronts.
type needs struct {
	maxHold  time.Duration
	adaptive float64
	inFlight int
}

// A front sends calls to hosts of a partner.
type front struct {
	started time.Time
	send    func(ctx context.Context, host string) error // nil, or why it was not sent

	mu   sync.Mutex
	sent map[string][]time.Duration // when calls of each host arrived; guarded by mu
}

// arrives notes that a call has arrived, and returns which one of its host it is.
func (f *front) arrives(host string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sent[host] = append(f.sent[host], time.Since(f.started))
	return len(f.sent[host])
}

func (f *front) seen(host string) []time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.sent[host])
}

// overHTTP and overGRPC make the two fronts over a Waiter or a KeyedWaiter, whose key is the host.
// The partner answers the n-th call of a host, from 1 on, as it is told.
func overHTTP(t *testing.T, w any, o needs, _ []string, answer func(host string, n int) saying) *front {
	f := &front{started: time.Now(), sent: map[string][]time.Duration{}}
	base := roundTripper(func(req *http.Request) (*http.Response, error) {
		a := answer(req.URL.Host, f.arrives(req.URL.Host))
		time.Sleep(a.takes)
		resp := &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: http.NoBody, Request: req}
		switch {
		case a.refused:
			resp.StatusCode = http.StatusTooManyRequests
			if a.wait >= 0 {
				resp.Header.Set("Retry-After", seconds(a.wait))
			}
		case a.spent > 0:
			resp.Header.Set("RateLimit-Remaining", strconv.Itoa(a.left))
			resp.Header.Set("RateLimit-Reset", seconds(a.spent))
		}
		return resp, nil
	})
	var opts []transport.Option
	if o.maxHold > 0 {
		opts = append(opts, transport.WithMaxHold(o.maxHold))
	}
	if o.adaptive > 0 {
		opts = append(opts, transport.WithAdaptiveRate(o.adaptive))
	}
	if o.inFlight > 0 {
		opts = append(opts, transport.WithMaxInFlight(o.inFlight))
	}
	var rt *transport.Transport
	switch w := w.(type) {
	case transport.KeyedWaiter:
		rt = transport.NewKeyed(base, func(req *http.Request) string { return req.URL.Host }, w, opts...)
	case transport.Waiter:
		rt = transport.New(base, w, opts...)
	}
	f.send = func(ctx context.Context, host string) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+host+"/", nil)
		require.NoError(t, err)
		_, err = rt.RoundTrip(req)
		return err
	}
	return f
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

func overGRPC(t *testing.T, w any, o needs, hosts []string, answer func(host string, n int) saying) *front {
	f := &front{started: time.Now(), sent: map[string][]time.Duration{}}
	var opts []grpcpace.Option
	if o.maxHold > 0 {
		opts = append(opts, grpcpace.WithMaxHold(o.maxHold))
	}
	if o.adaptive > 0 {
		opts = append(opts, grpcpace.WithAdaptiveRate(o.adaptive))
	}
	if o.inFlight > 0 {
		opts = append(opts, grpcpace.WithMaxInFlight(o.inFlight))
	}
	var p *grpcpace.Pacer
	conns := map[string]*grpc.ClientConn{}
	switch w := w.(type) {
	case transport.KeyedWaiter:
		p = grpcpace.NewKeyed(func(_ context.Context, _ string, cc *grpc.ClientConn) string {
			for host, conn := range conns {
				if conn == cc {
					return host
				}
			}
			return ""
		}, w, opts...)
	case transport.Waiter:
		p = grpcpace.New(w, opts...)
	}
	for _, host := range hosts {
		s := &server{}
		s.answer = func(_ int, stream grpc.ServerStream) error {
			a := answer(host, f.arrives(host))
			time.Sleep(a.takes)
			switch {
			case a.refused && a.wait < 0:
				return status.Error(codes.ResourceExhausted, "quota")
			case a.refused:
				return refusal(t, codes.ResourceExhausted, a.wait)
			case a.spent > 0:
				stream.SetTrailer(metadata.Pairs("ratelimit-remaining", strconv.Itoa(a.left), "ratelimit-reset", seconds(a.spent)))
			}
			return s.echo(stream)
		}
		conns[host] = dial(t, s, host, through(p)...)
	}
	f.send = func(ctx context.Context, host string) error {
		err := send(ctx, conns[host])
		if status.Code(err) == codes.ResourceExhausted && !errors.Is(err, transport.ErrNotSent) {
			return nil // a refusal is an answer
		}
		return err
	}
	return f
}

var fronts = map[string]func(*testing.T, any, needs, []string, func(string, int) saying) *front{"HTTP": overHTTP, "gRPC": overGRPC}

// all sends n calls to the host at once, in order, and waits for them.
func (f *front) all(t *testing.T, host string, n int) {
	t.Helper()
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() { require.NoError(t, f.send(t.Context(), host)) })
		synctest.Wait()
	}
	wg.Wait()
}

// one sends calls to the host one after the other.
func (f *front) one(t *testing.T, host string, n int) {
	t.Helper()
	for range n {
		require.NoError(t, f.send(t.Context(), host))
	}
}

// The same answers make both fronts send at the same instants.
func TestBothFronts(t *testing.T) {
	jitter := engine.Jitter
	engine.Jitter = func(time.Duration) time.Duration { return 0 }
	t.Cleanup(func() { engine.Jitter = jitter })

	const sec = time.Second
	at := func(first time.Duration, apart time.Duration, n int) (all []time.Duration) {
		for i := range n {
			all = append(all, first+time.Duration(i)*apart)
		}
		return all
	}
	script := func(answers ...saying) func(string, int) saying {
		return func(_ string, n int) saying {
			if n > len(answers) {
				return saying{}
			}
			return answers[n-1]
		}
	}
	for name, tc := range map[string]struct {
		waiter func(t *testing.T) any // nil: a Shaper of 10/s
		needs  needs
		answer func(host string, n int) saying
		run    func(t *testing.T, f *front, w any)
		want   map[string][]time.Duration // by host
	}{
		"now, eight times": {
			answer: script(slices.Repeat([]saying{refuses(0)}, 8)...),
			run:    func(t *testing.T, f *front, _ any) { f.one(t, "a", 9) },
			want:   map[string][]time.Duration{"a": {0, T, 11 * T, 31 * T, 71 * T, 151 * T, 311 * T, 631 * T, 1231 * T}},
		},
		"60 s, Resume, 10 s": {
			answer: script(refuses(60*sec), refuses(10*sec)),
			run: func(t *testing.T, f *front, w any) {
				f.one(t, "a", 1)
				w.(interface{ Resume() }).Resume()
				f.one(t, "a", 2)
			},
			want: map[string][]time.Duration{"a": {0, T, 10*sec + T}},
		},
		"above the cap, 20 callers": {
			needs:  needs{maxHold: time.Minute},
			answer: func(_ string, n int) saying { return map[bool]saying{true: refuses(24 * time.Hour)}[n <= 4] },
			run:    func(t *testing.T, f *front, _ any) { f.one(t, "a", 1); f.all(t, "a", 20) },
			want:   map[string][]time.Duration{"a": append(at(0, time.Minute, 4), at(4*time.Minute, T, 17)...)},
		},
		"a Group that is full when the hold comes": {
			waiter: func(t *testing.T) any { return group(t, time.Second, 3) },
			answer: func(host string, n int) saying {
				if host == "a" && n == 1 {
					return saying{refused: true, wait: 60 * sec, takes: 2 * sec} // the key is forgotten meanwhile
				}
				return saying{}
			},
			run: func(t *testing.T, f *front, _ any) {
				var wg sync.WaitGroup
				wg.Go(func() { f.one(t, "a", 1) })
				time.Sleep(1900 * ms)
				for _, host := range []string{"b", "c", "d"} {
					f.one(t, host, 1)
				}
				wg.Wait()
				require.ErrorContains(t, f.send(t.Context(), "a"), "too many keys")
				time.Sleep(2 * sec)
				f.one(t, "a", 1)
			},
			want: map[string][]time.Duration{"a": {0, 62 * sec}},
		},
		"Resume costs no slot": {
			waiter: func(t *testing.T) any { return every(t, time.Minute) },
			answer: script(refuses(10 * time.Minute)),
			run: func(t *testing.T, f *front, w any) {
				f.one(t, "a", 1)
				w.(interface{ Resume() }).Resume()
				f.one(t, "a", 2)
			},
			want: map[string][]time.Duration{"a": at(0, time.Minute, 3)},
		},
		"no time stated": {
			answer: script(refuses(-1), refuses(-1), saying{}, refuses(-1)),
			run:    func(t *testing.T, f *front, _ any) { f.one(t, "a", 5) },
			want:   map[string][]time.Duration{"a": {0, sec, 3 * sec, 3*sec + T, 4*sec + T}},
		},
		"nothing remains": {
			needs:  needs{adaptive: 0.1}, // which is not cut
			answer: script(saying{}, saying{spent: 5 * sec}),
			run:    func(t *testing.T, f *front, _ any) { f.all(t, "a", 4) },
			want:   map[string][]time.Duration{"a": {0, T, 5*sec + T, 5*sec + 2*T}},
		},
		"nothing remains for longer than the cap": {
			needs:  needs{maxHold: time.Minute},
			answer: script(saying{spent: 90 * sec}, saying{spent: 30 * sec}),
			run:    func(t *testing.T, f *front, _ any) { f.one(t, "a", 1); f.all(t, "a", 3) },
			want:   map[string][]time.Duration{"a": {0, 60 * sec, 90 * sec, 90*sec + T}},
		},
		"two remain": {
			answer: script(saying{spent: 60 * sec, left: 2}, saying{takes: 5 * sec}, saying{takes: 5 * sec}),
			run:    func(t *testing.T, f *front, _ any) { f.one(t, "a", 1); f.all(t, "a", 4) },
			want:   map[string][]time.Duration{"a": {0, T, 2 * T, 60 * sec, 60*sec + T}},
		},
		"two remain, a Group": {
			waiter: func(t *testing.T) any { return group(t, T, 100) },
			answer: script(saying{spent: 60 * sec, left: 2}, saying{takes: 5 * sec}, saying{takes: 5 * sec}),
			run:    func(t *testing.T, f *front, _ any) { f.one(t, "a", 1); f.one(t, "b", 1); f.all(t, "a", 4) },
			want:   map[string][]time.Duration{"a": {0, T, 2 * T, 60 * sec, 60*sec + T}, "b": {0}},
		},
		"a trial that others wait for": {
			needs:  needs{maxHold: time.Minute},
			answer: script(refuses(time.Hour), saying{takes: 3 * sec}),
			run:    func(t *testing.T, f *front, _ any) { f.one(t, "a", 1); f.all(t, "a", 2) },
			want:   map[string][]time.Duration{"a": {0, 60 * sec, 63 * sec}},
		},
		"an adaptive rate": {
			needs:  needs{adaptive: 0.1},
			answer: script(refuses(0), saying{}),
			run:    func(t *testing.T, f *front, _ any) { f.all(t, "a", 2) },
			want:   map[string][]time.Duration{"a": {0, 142857143}}, // 7/10 of the rate
		},
		"places": {
			needs:  needs{inFlight: 2},
			answer: func(string, int) saying { return saying{takes: sec} },
			run:    func(t *testing.T, f *front, _ any) { f.all(t, "a", 4) },
			want:   map[string][]time.Duration{"a": {0, T, sec, sec + T}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			for front, over := range fronts {
				t.Run(front, func(t *testing.T) {
					bubble(t, func(t *testing.T) {
						var w any = every(t, T)
						if tc.waiter != nil {
							w = tc.waiter(t)
						}
						f := over(t, w, tc.needs, []string{"a", "b", "c", "d"}, tc.answer)
						tc.run(t, f, w)
						for _, host := range slices.Sorted(maps.Keys(tc.want)) {
							require.Equal(t, tc.want[host], f.seen(host), host)
						}
					})
				})
			}
		})
	}
}
