package transport_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
	"github.com/sluice-go/sluice/transport"
	"github.com/sluice-go/sluice/transport/feedback"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// isFree reports whether a place is free: a request gets through at once. It must be the
// only place.
func isFree(t *testing.T, tr *transport.Transport) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
	defer cancel()
	resp, err := tr.RoundTrip(get(t, ctx, "/probe"))
	if err != nil {
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, transport.ErrNotSent)
		return false
	}
	require.NoError(t, resp.Body.Close())
	return true
}

// placesOf returns a Waiter with places that calls f, if that is not nil, before a request may
// leave.
func placesOf(t *testing.T, f func(context.Context) error) transport.Waiter {
	return &placesFunc{newShaper(t, scheduler.Unlimited), f}
}

// placesFunc is a Shaper that asks a function before it lets a call leave.
type placesFunc struct {
	*shaper.Shaper
	wait func(context.Context) error
}

func (p *placesFunc) Wait(ctx context.Context) error {
	if p.wait != nil {
		return p.wait(ctx)
	}
	return nil
}

func (p *placesFunc) LeaveNow(int) bool { return false }

func (p *placesFunc) Acquire(ctx context.Context, cost int) error {
	if err := p.Wait(ctx); err != nil {
		return err
	}
	return p.Shaper.Acquire(ctx, cost)
}

// A place is taken until the body of the answer has been read to its end, has failed, or
// is closed, or until the context has ended that the whole exchange lives by. Reading some of
// it frees nothing, closing it twice frees one.
func TestPlaceIsHeldUntilTheBodyEnds(t *testing.T) {
	cut := errors.New("unexpected EOF")
	for name, tc := range map[string]struct {
		body io.Reader
		end  func(t *testing.T, body io.ReadCloser) // nil: it is not closed
	}{
		"forgotten": {strings.NewReader("abc"), nil},
		"closed": {strings.NewReader("abc"), func(t *testing.T, body io.ReadCloser) {
			require.NoError(t, body.Close())
			require.NoError(t, body.Close())
		}},
		"read": {strings.NewReader("abc"), func(t *testing.T, body io.ReadCloser) {
			got, err := io.ReadAll(body)
			require.NoError(t, err)
			require.Equal(t, "bc", string(got))
		}},
		"broken": {io.MultiReader(strings.NewReader("abc"), failingReader{cut}), func(t *testing.T, body io.ReadCloser) {
			_, err := io.ReadAll(body)
			require.Equal(t, cut, err)
		}},
		"read and closed": {strings.NewReader("abc"), func(t *testing.T, body io.ReadCloser) {
			_, err := io.Copy(io.Discard, body)
			require.NoError(t, err)
			require.NoError(t, body.Close())
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPartner()
				script(p, func(req *http.Request) (*http.Response, error) {
					resp := answer(req, http.StatusOK)
					resp.Body, resp.ContentLength = &countedBody{Reader: tc.body}, -1
					return resp, nil
				})
				tr := transport.New(p, placesOf(t, nil), transport.WithMaxInFlight(1))
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				resp, err := tr.RoundTrip(get(t, ctx, "/"))
				require.NoError(t, err)
				require.False(t, isFree(t, tr))
				_, err = resp.Body.Read(make([]byte, 1))
				require.NoError(t, err)
				require.False(t, isFree(t, tr))
				if tc.end != nil {
					tc.end(t, resp.Body)
				} else {
					cancel()
					synctest.Wait()
				}
				require.True(t, isFree(t, tr))
				cancel()
				synctest.Wait()
				require.True(t, isFree(t, tr), "and no more than that one")
			})
		})
	}
}

type failingReader struct{ err error }

func (r failingReader) Read([]byte) (int, error) { return 0, r.err }

// Answers that need not be closed, and requests without an answer, cannot keep a place.
func TestPlaceCannotLeak(t *testing.T) {
	unread := func(req *http.Request, status int) *http.Response {
		resp := answer(req, status)
		resp.Body, resp.ContentLength = &countedBody{Reader: strings.NewReader("")}, -1
		return resp
	}
	with := func(status int) func(*http.Request) (*http.Response, error) {
		return func(req *http.Request) (*http.Response, error) { return unread(req, status), nil }
	}
	boom := func() { panic("boom") }
	panicking := func(yes *bool) func() {
		return func() {
			if *yes {
				boom()
			}
		}
	}
	yes := true
	mayPanic := panicking(&yes)
	for name, tc := range map[string]struct {
		method string
		answer func(*http.Request) (*http.Response, error)
		waiter func(context.Context) error
		opts   []transport.Option
		panics bool
	}{
		"204":        {answer: with(http.StatusNoContent)},
		"304":        {answer: with(http.StatusNotModified)},
		"101":        {answer: with(http.StatusSwitchingProtocols)},
		"HEAD":       {method: http.MethodHead, answer: with(http.StatusOK)},
		"NoBody":     {answer: func(req *http.Request) (*http.Response, error) { return answer(req, http.StatusOK), nil }},
		"no body":    {answer: func(*http.Request) (*http.Response, error) { return &http.Response{StatusCode: 200}, nil }},
		"base error": {answer: func(*http.Request) (*http.Response, error) { return nil, errors.New("broken pipe") }},
		"base panic": {answer: func(*http.Request) (*http.Response, error) { boom(); return nil, nil }, panics: true},
		"Goexit": {answer: func(*http.Request) (*http.Response, error) {
			runtime.Goexit()
			return nil, nil
		}, panics: true},
		"waiter error": {waiter: func(context.Context) error { return errors.New("no") }},
		"waiter panic": {waiter: func(context.Context) error { boom(); return nil }, panics: true},
		"hook panic, granted": {
			opts:   []transport.Option{transport.WithHooks(&transport.Trace{Granted: func(transport.Event) { mayPanic() }})},
			panics: true,
		},
		"hook panic, enqueued": {
			opts:   []transport.Option{transport.WithHooks(&transport.Trace{Enqueued: func(transport.Event) { mayPanic() }})},
			panics: true,
		},
		"cost panic": {
			opts:   []transport.Option{transport.WithCost(func(*http.Request) int64 { mayPanic(); return 1 })},
			panics: true,
		},
		"classifier panic": {
			answer: with(http.StatusOK),
			opts: []transport.Option{transport.WithClassifier(func(*feedback.Answer) feedback.Verdict {
				mayPanic()
				return feedback.Verdict{}
			})},
			panics: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPartner()
				if tc.answer != nil {
					script(p, tc.answer)
				}
				wait := tc.waiter
				tr := transport.New(p, placesOf(t, func(ctx context.Context) error {
					if f := wait; f != nil {
						wait = nil
						return f(ctx)
					}
					return nil
				}), append(tc.opts, transport.WithMaxInFlight(1))...)
				req := get(t, t.Context(), "/")
				if tc.method != "" {
					req.Method = tc.method
				}
				yes = true
				ended := make(chan bool)
				go func() {
					returned := false
					defer func() { _ = recover(); ended <- returned }()
					_, _ = tr.RoundTrip(req)
					returned = true
				}()
				require.Equal(t, tc.panics, !<-ended)
				yes = false
				require.True(t, isFree(t, tr))
			})
		})
	}
}

// After 101 the body is the connection, and it must stay one.
func TestUpgradedConnectionIsLeftAlone(t *testing.T) {
	var stream struct {
		io.ReadCloser
		io.Writer
	}
	stream.ReadCloser, stream.Writer = io.NopCloser(strings.NewReader("")), &bytes.Buffer{}
	p := newPartner()
	script(p, func(req *http.Request) (*http.Response, error) {
		resp := answer(req, http.StatusSwitchingProtocols)
		resp.Body = stream
		return resp, nil
	})
	tr := transport.New(p, placesOf(t, nil), transport.WithMaxInFlight(1), transport.WithRetry(transport.Retry{}),
		transport.WithClassifier(func(a *feedback.Answer) feedback.Verdict { a.Body(); return feedback.Verdict{} }))
	resp, err := tr.RoundTrip(get(t, t.Context(), "/"))
	require.NoError(t, err)
	_, ok := resp.Body.(io.Writer)
	require.True(t, ok)
	require.Equal(t, stream, resp.Body)
}

// First come, first served, for the places and then for the pace; each key has its own.
func TestPlacesAreTakenInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPartner()
		p.answer = func(req *http.Request) (*http.Response, error) {
			time.Sleep(time.Second)
			return says(req, http.StatusOK, "ok"), nil
		}
		tr := transport.NewKeyed(p, nil, newGroup(t, scheduler.PerSecond(10)), transport.WithMaxInFlight(2))
		wait := sendAll(t, tr, 6, func(i int) *http.Request { return get(t, t.Context(), "/"+string(rune('a'+i))) })
		other, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://other.example/other", nil)
		require.NoError(t, err)
		also := sendAll(t, tr, 1, func(int) *http.Request { return other })
		for _, err := range append(wait(), also()...) {
			require.NoError(t, err)
		}
		require.Equal(t, []call{
			{"/a", 0}, {"/other", 0}, {"/b", 100 * ms},
			{"/c", sec}, {"/d", sec + 100*ms},
			{"/e", 2 * sec}, {"/f", 2*sec + 100*ms},
		}, p.seen())
	})
}

// No request that has a unit waits for a place: what the pace lets go reaches the partner at
// that moment.
func TestUnitsDoNotWaitForPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPartner()
		s := newShaper(t, scheduler.PerSecond(10))
		p.answer = func(req *http.Request) (*http.Response, error) {
			time.Sleep(350 * ms)
			assert.EqualValues(t, len(p.seen()), s.Stats().Left)
			return answer(req, http.StatusOK), nil
		}
		tr := transport.New(p, s, transport.WithMaxInFlight(1))
		for _, err := range sendAll(t, tr, 4, func(int) *http.Request { return get(t, t.Context(), "/") })() {
			require.NoError(t, err)
		}
		require.Equal(t, steps(0, 350*ms, 4), times(p.seen()))
	})
}

// Requests wait for a place because those that have one are held: the hold is to blame.
func TestHoldIsBlamedWhileWaitingForAPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPartner()
		script(p, status(http.StatusTooManyRequests, "Retry-After: 60"))
		tr := transport.New(p, newShaper(t, scheduler.PerSecond(10)), transport.WithMaxInFlight(1))
		until := p.started.Add(time.Minute)
		mustSend(t, tr, "/refused")
		wait := sendAll(t, tr, 1, func(int) *http.Request { return get(t, t.Context(), "/held") })
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := tr.RoundTrip(get(t, ctx, "/"))
		var e *transport.Error
		require.ErrorAs(t, err, &e)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Zero(t, e.Waited, "told at once")
		require.True(t, e.HeldUntil.Equal(until), e.HeldUntil)
		require.Equal(t, http.StatusTooManyRequests, e.Status)
		require.NoError(t, wait()[0])
	})
}

// A bound that bounds nothing refuses nothing.
func TestInFlightOfAnyNumber(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := transport.New(newPartner(), placesOf(t, nil), transport.WithMaxInFlight(math.MaxInt))
		_, err := tr.RoundTrip(get(t, t.Context(), "/"))
		require.NoError(t, err)
	})
}

// A bound on those in flight takes nothing away from the bound of the line, and from being
// told at once.
func TestInFlightKeepsThePromises(t *testing.T) {
	for name, tc := range map[string]struct {
		queue    int
		deadline time.Duration
		opts     []transport.Option
		sent     int
	}{
		"line of 5": {queue: 5, sent: 5},
		"deadline":  {queue: 1000, deadline: sec, sent: 10},
		"max delay": {queue: 1000, opts: []transport.Option{transport.WithMaxDelay(sec)}, sent: 11},
	} {
		for bound, opts := range map[string][]transport.Option{"bounded": {transport.WithMaxInFlight(2)}, "unbounded": nil} {
			for kind, make := range map[string]func(*testing.T, http.RoundTripper, ...transport.Option) *transport.Transport{
				"Shaper": func(t *testing.T, p http.RoundTripper, opts ...transport.Option) *transport.Transport {
					return transport.New(p, newShaper(t, scheduler.PerSecond(10), shaper.WithQueue(tc.queue)), opts...)
				},
				"Group": func(t *testing.T, p http.RoundTripper, opts ...transport.Option) *transport.Transport {
					return transport.NewKeyed(p, nil, newGroup(t, scheduler.PerSecond(10), shaper.WithQueue(tc.queue)), opts...)
				},
			} {
				t.Run(name+"/"+bound+"/"+kind, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						p := newPartner()
						var log eventLog
						tr := make(t, p, append(append(opts, tc.opts...), transport.WithHooks(&transport.Trace{Refused: log.add("refused")}))...)
						wait := sendAll(t, tr, 50, func(int) *http.Request {
							if tc.deadline == 0 {
								return get(t, t.Context(), "/")
							}
							ctx, cancel := context.WithTimeout(t.Context(), tc.deadline)
							t.Cleanup(cancel)
							return get(t, ctx, "/")
						})
						require.Equal(t, p.started, time.Now())
						require.Len(t, log.take(), 50-tc.sent, "told at once")
						wait()
						require.Equal(t, steps(0, 100*ms, tc.sent), times(p.seen()))
					})
				})
			}
		}
	}
}

// An error answer whose body is left open has ended once all of it has come. What its reader
// gets is the same, whenever it reads, and however slowly it comes.
func TestErrorAnswerThatIsLeftOpen(t *testing.T) {
	long := strings.Repeat("x", 64<<10+1)
	for name, tc := range map[string]struct {
		status int
		body   string
		free   bool
	}{
		"400":                {http.StatusBadRequest, "no such number", true},
		"500":                {http.StatusInternalServerError, "sorry", true},
		"302":                {http.StatusFound, "elsewhere", true},
		"64 KiB":             {http.StatusBadRequest, long[1:], true},
		"longer than 64 KiB": {http.StatusBadRequest, strings.Repeat(long, 2), false},
		"200":                {http.StatusOK, "ok", false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPartner()
				body := &countedBody{Reader: iotest.OneByteReader(strings.NewReader(tc.body))}
				script(p, func(req *http.Request) (*http.Response, error) {
					resp := answer(req, tc.status)
					resp.Body, resp.ContentLength = body, int64(len(tc.body))
					return resp, nil
				})
				tr := transport.New(p, placesOf(t, nil), transport.WithMaxInFlight(1))
				resp, err := tr.RoundTrip(get(t, t.Context(), "/"))
				require.NoError(t, err)
				synctest.Wait()
				require.Equal(t, tc.free, isFree(t, tr))
				got, err := io.ReadAll(resp.Body)
				require.NoError(t, err)
				require.True(t, tc.body == string(got), "%d bytes of %d", len(got), len(tc.body))
				require.True(t, isFree(t, tr))
				require.NoError(t, resp.Body.Close())
				require.Equal(t, 1, body.closed)
				if tc.status != http.StatusOK {
					_, err = resp.Body.Read(make([]byte, 1))
					require.ErrorContains(t, err, "closed")
				}
			})
		})
	}
}

// What comes slowly is handed on as it comes, and its error as it is; to close it early is no
// different from without a bound.
func TestErrorAnswerThatComesSlowly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPartner()
		broken := errors.New("connection reset")
		var w *io.PipeWriter
		slow := func(req *http.Request) (*http.Response, error) {
			resp := answer(req, http.StatusBadGateway)
			resp.Body, w = io.Pipe()
			return resp, nil
		}
		script(p, slow, slow)
		tr := transport.New(p, placesOf(t, nil), transport.WithMaxInFlight(1))
		resp, err := tr.RoundTrip(get(t, t.Context(), "/"))
		require.NoError(t, err)
		require.False(t, isFree(t, tr))
		go func() {
			_, _ = w.Write([]byte("ab"))
			time.Sleep(sec)
			_, _ = w.Write([]byte("cd"))
			time.Sleep(sec)
			w.CloseWithError(broken)
		}()
		buf := make([]byte, 10)
		for _, want := range []struct {
			text string
			at   time.Duration
		}{{"ab", 0}, {"cd", sec}} {
			n, err := resp.Body.Read(buf)
			require.NoError(t, err)
			require.Equal(t, want.text, string(buf[:n]))
			require.Equal(t, want.at, time.Since(p.started).Truncate(ms))
		}
		_, err = resp.Body.Read(buf)
		require.Equal(t, broken, err)
		require.True(t, isFree(t, tr))

		resp, err = tr.RoundTrip(get(t, t.Context(), "/"))
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.True(t, isFree(t, tr))
		_, err = w.Write([]byte("x"))
		require.ErrorIs(t, err, io.ErrClosedPipe)
	})
}

// Requests that wait for the answer of a trial have no place meanwhile, and each gives back the
// one that it gets.
func TestTrialAndPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPartner()
		script(p, status(http.StatusTooManyRequests, "Retry-After: 3600"))
		s := newShaper(t, scheduler.PerSecond(10))
		tr := transport.New(p, s, transport.WithMaxHold(time.Minute), transport.WithMaxInFlight(3))
		mustSend(t, tr, "/refused")
		slow := p.answer
		p.answer = func(req *http.Request) (*http.Response, error) { time.Sleep(5 * sec); return slow(req) }
		wait := sendAll(t, tr, 4, func(int) *http.Request { return get(t, t.Context(), "/") })
		time.Sleep(time.Minute + sec)
		require.EqualValues(t, 1, s.Stats().InFlight, "the trial")
		for _, err := range wait() {
			require.NoError(t, err)
		}
		require.Zero(t, s.Stats().InFlight)
		require.Len(t, p.seen(), 5)
	})
}
