package transport_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
	"github.com/sluice-go/sluice/transport"
	"github.com/sluice-go/sluice/transport/feedback"
	"github.com/stretchr/testify/require"
)

func newGroup(t *testing.T, r scheduler.Rate, opts ...shaper.Option) *shaper.Group[string] {
	t.Helper()
	g, err := shaper.NewGroup[string](r, opts...)
	require.NoError(t, err)
	return g
}

// Of 200 calls that are on their way together, one is refused. From when its answer is
// there until the time that it states no request of that key is sent, then one every T. Another
// key goes on as if nothing had happened.
func TestRefusalHoldsItsKeyAndNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const calls, refusedCall = 200, 30
		const arrival, hold = refusedCall*10*ms + 50*ms, 5 * sec
		p := newPartner()
		var mu sync.Mutex
		sent := map[string][]time.Duration{}
		p.answer = func(req *http.Request) (*http.Response, error) {
			mu.Lock()
			at := append(sent[req.Host], time.Since(p.started))
			sent[req.Host] = at
			mu.Unlock()
			time.Sleep(50 * ms)
			if req.Host == "held.example" && len(at) == refusedCall+1 {
				return says(req, http.StatusTooManyRequests, "", "Retry-After: 5"), nil
			}
			return answer(req, http.StatusOK), nil
		}
		tr := transport.NewKeyed(p, nil, newGroup(t, scheduler.PerSecond(100)))
		var wg sync.WaitGroup
		for i := range 2 * calls {
			host := []string{"held.example", "FREE.example:80"}[i%2]
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+host+"/", nil)
			require.NoError(t, err)
			wg.Go(func() {
				_, err := tr.RoundTrip(req)
				if err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		before := int(arrival/(10*ms)) + 1 // those sent at 0, 10 ms, ... and together with the answer
		want := append(steps(0, 10*ms, before), steps(arrival+hold, 10*ms, calls-before)...)
		got := sent["held.example"]
		if len(got) > before && got[before-1] != arrival { // at the moment of the answer either may come first
			want = append(steps(0, 10*ms, before-1), steps(arrival+hold, 10*ms, calls-before+1)...)
		}
		require.Equal(t, want, got)
		require.Equal(t, steps(0, 10*ms, calls), sent["FREE.example:80"])
	})
}

// A time above the cap comes back to the caller as it came. The key is held for as long as
// the cap, then one request goes and its answer counts.
func TestHoldIsCapped(t *testing.T) {
	for name, tc := range map[string]struct {
		probe func(*http.Request) (*http.Response, error)
		want  []time.Duration // when the requests behind the refused one are sent
	}{
		"it is over": {
			status(http.StatusOK),
			[]time.Duration{time.Minute, time.Minute + 100*ms, time.Minute + 200*ms},
		},
		"refused again, above the cap": {
			status(http.StatusTooManyRequests, "Retry-After: 86400"),
			[]time.Duration{time.Minute, 2 * time.Minute, 2*time.Minute + 100*ms},
		},
		"refused again, for 30 s": {
			status(http.StatusTooManyRequests, "Retry-After: 30"),
			[]time.Duration{time.Minute, 90 * sec, 90*sec + 100*ms},
		},
		"refused again, for 2 s": {
			status(http.StatusTooManyRequests, "Retry-After: 2"),
			[]time.Duration{time.Minute, 62 * sec, 62*sec + 100*ms},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPartner()
				script(p, func(req *http.Request) (*http.Response, error) {
					return says(req, http.StatusTooManyRequests, "come back tomorrow", "Retry-After: 86400"), nil
				}, tc.probe)
				tr := transport.New(p, newShaper(t, scheduler.PerSecond(10)), transport.WithMaxHold(time.Minute))
				resp, err := tr.RoundTrip(get(t, t.Context(), "/"))
				require.NoError(t, err)
				require.Equal(t, "86400", resp.Header.Get("Retry-After"))
				body, err := io.ReadAll(resp.Body)
				require.NoError(t, err)
				require.Equal(t, "come back tomorrow", string(body))

				wait := sendAll(t, tr, 3, func(int) *http.Request { return get(t, t.Context(), "/") })
				for _, err := range wait() {
					require.NoError(t, err)
				}
				require.Equal(t, tc.want, times(p.seen())[1:])
			})
		})
	}
	t.Run("a capped refusal is not sent again", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := newPartner()
			script(p, status(http.StatusTooManyRequests, "Retry-After: 86400"))
			tr := transport.New(p, newShaper(t, scheduler.PerSecond(10)), transport.WithRetry(transport.Retry{}))
			resp, err := tr.RoundTrip(get(t, t.Context(), "/"))
			require.NoError(t, err)
			require.Equal(t, http.StatusTooManyRequests, resp.StatusCode)
			require.Zero(t, time.Since(p.started))
		})
	})
	t.Run("the time that we choose too", func(t *testing.T) {
		for range 20 { // the back-off has a jitter
			at := gateAfter(t, says(nil, http.StatusTooManyRequests, ""), transport.WithMaxHold(300*ms))
			require.Equal(t, 300*ms, at)
		}
	})
}

// Answers come in another order than requests were sent. Only the one that asks for more
// moves the hold.
func TestHoldOnlyMovesForward(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPartner()
		answers := []struct {
			after time.Duration
			lines []string
			code  int
		}{
			{100 * ms, []string{"Retry-After: 10"}, http.StatusTooManyRequests},
			{200 * ms, []string{"Retry-After: 1"}, http.StatusTooManyRequests},
			{300 * ms, nil, http.StatusOK}, // an older success ends no hold
			{400 * ms, []string{"Retry-After: 0"}, http.StatusServiceUnavailable},
			{500 * ms, []string{"Retry-After: 10"}, http.StatusServiceUnavailable},
		}
		i := -1
		p.answer = func(req *http.Request) (*http.Response, error) {
			i++
			if i >= len(answers) {
				return answer(req, http.StatusOK), nil
			}
			a := answers[i]
			time.Sleep(a.after)
			return says(req, a.code, "", a.lines...), nil
		}
		var log eventLog
		s := newShaper(t, scheduler.PerSecond(100), shaper.WithBurst(5), shaper.WithTolerance(0))
		tr := transport.New(p, s, transport.WithHooks(&transport.Trace{Held: log.add("held")}))
		wait := sendAll(t, tr, 6, func(int) *http.Request { return get(t, t.Context(), "/") })
		for _, err := range wait() {
			require.NoError(t, err)
		}
		require.Equal(t, []time.Duration{0, 0, 0, 0, 0, 10 * ms}, times(p.seen()), "the sixth left before the first answer")
		require.Equal(t, []told{
			{"held", transport.Event{Cost: 1, Status: http.StatusTooManyRequests, Until: p.started.Add(100*ms + 10*sec)}},
			{"held", transport.Event{Cost: 1, Status: http.StatusServiceUnavailable, Until: p.started.Add(500*ms + 10*sec)}},
		}, log.take())
		_, err := tr.RoundTrip(get(t, t.Context(), "/"))
		require.NoError(t, err)
		require.Equal(t, 500*ms+10*sec, time.Since(p.started))
	})
}

// Refusals that state no time double the back-off, once for all that were on their way
// together, and a success starts it anew.
func TestBackoffDoubles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPartner()
		refuse := true
		p.answer = func(req *http.Request) (*http.Response, error) {
			time.Sleep(100 * ms)
			if refuse {
				return says(req, http.StatusTooManyRequests, ""), nil
			}
			return answer(req, http.StatusOK), nil
		}
		s := newShaper(t, scheduler.PerSecond(1000))
		tr := transport.New(p, s)
		siblings := func() (hold time.Duration) {
			for _, err := range sendAll(t, tr, 20, func(int) *http.Request { return get(t, t.Context(), "/") })() {
				require.NoError(t, err)
			}
			return 0
		}
		one := func() time.Duration {
			_, err := tr.RoundTrip(get(t, t.Context(), "/"))
			require.NoError(t, err)
			return time.Until(s.Stats().HeldUntil)
		}
		within := func(d, got time.Duration) {
			t.Helper()
			require.GreaterOrEqual(t, got, min(d, 45*sec)) // at the top the jitter comes off
			require.LessOrEqual(t, got, min(d+d/4, time.Minute))
		}
		siblings() // the first answer sets the hold at 100 ms, the others came up to 19 ms later
		within(sec, time.Until(s.Stats().HeldUntil)+19*ms)
		for _, d := range []time.Duration{2 * sec, 4 * sec, 8 * sec, 16 * sec, 32 * sec, time.Minute, time.Minute} {
			within(d, one())
		}
		refuse = false
		require.Negative(t, one())
		refuse = true
		within(sec, one())

		// A success that was sent before the refusal says nothing about it.
		refuse = false
		_ = one()
		slow := make(chan struct{})
		p.answer = func(req *http.Request) (*http.Response, error) {
			if req.URL.Path == "/slow" {
				<-slow
				return answer(req, http.StatusOK), nil
			}
			return says(req, http.StatusTooManyRequests, ""), nil
		}
		wait := sendAll(t, tr, 1, func(int) *http.Request { return get(t, t.Context(), "/slow") })
		within(sec, one())
		close(slow)
		require.NoError(t, wait()[0])
		within(2*sec, one())
	})
}

// An answer that only says that the partner has trouble neither holds nor ends a back-off.
func TestTroubleIsNoSuccess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPartner()
		tooMany := status(http.StatusTooManyRequests)
		script(p, tooMany, tooMany, status(http.StatusBadGateway), tooMany)
		tr := transport.New(p, newShaper(t, scheduler.PerSecond(10)))
		for range 5 {
			_, err := tr.RoundTrip(get(t, t.Context(), "/"))
			require.NoError(t, err)
		}
		at := times(p.seen())
		require.GreaterOrEqual(t, at[2]-at[1], 2*sec)
		require.Equal(t, 100*ms, at[3]-at[2])
		require.GreaterOrEqual(t, at[4]-at[3], 4*sec)
	})
}

// With no classifier nothing is listened to, and a Waiter that cannot be held is asked for
// no more than it can do.
func TestWhatCannotListenOrHold(t *testing.T) {
	require.Equal(t, 100*ms, gateAfter(t, says(nil, http.StatusTooManyRequests, "", "Retry-After: 60"), transport.WithClassifier(nil)))
	t.Run("a Waiter without HoldUntil", func(t *testing.T) {
		p := newPartner()
		script(p, status(http.StatusTooManyRequests, "Retry-After: 60"))
		tr := transport.New(p, &costOnly{})
		for range 3 {
			_, err := tr.RoundTrip(get(t, t.Context(), "/"))
			require.NoError(t, err)
		}
		require.Len(t, p.seen(), 3)
	})
}

// A classifier of the user's own may say what it likes: waits are bounded, and what it
// looked at of the body is still there.
func TestClassifierOfOnesOwn(t *testing.T) {
	for name, tc := range map[string]struct {
		verdict feedback.Verdict
		want    time.Duration
	}{
		"no refusal":       {feedback.Verdict{Wait: time.Minute, Stated: true}, 100 * ms},
		"stated":           {feedback.Verdict{Refused: true, Wait: 7 * sec, Stated: true}, 7 * sec},
		"negative":         {feedback.Verdict{Refused: true, Wait: -7 * sec, Stated: true}, 100 * ms},
		"above the cap":    {feedback.Verdict{Refused: true, Wait: 1 << 62, Stated: true}, time.Hour},
		"shorter than T":   {feedback.Verdict{Refused: true, Wait: 1, Stated: true}, 100 * ms},
		"wait, not stated": {feedback.Verdict{Refused: true, Wait: 7 * time.Hour}, -1},
	} {
		t.Run(name, func(t *testing.T) {
			body := strings.Repeat("do not come back so soon. ", 4000)
			resp := says(nil, http.StatusTeapot, body)
			at := gateAfter(t, resp, transport.WithClassifier(func(a *feedback.Answer) feedback.Verdict {
				if a.Status() != http.StatusTeapot || !strings.Contains(string(a.Body()), "so soon") {
					return feedback.Verdict{}
				}
				return tc.verdict
			}))
			if tc.want < 0 {
				require.GreaterOrEqual(t, at, sec)
				require.LessOrEqual(t, at, 1250*ms)
			} else {
				require.Equal(t, tc.want, at)
			}
			rest, err := io.ReadAll(resp.Body)
			require.NoError(t, err)
			require.Equal(t, body, string(rest))
		})
	}
}

// limiter has the methods of x/time's *rate.Limiter that count here, and its error.
type limiter struct {
	interval time.Duration
	burst    int // 0: large

	mu   sync.Mutex
	next time.Time // guarded by mu
}

func (l *limiter) Burst() int {
	if l.burst > 0 {
		return l.burst
	}
	return 1 << 20
}

func (l *limiter) Tokens() float64 { return 0 }

func (l *limiter) Wait(ctx context.Context) error { return l.WaitN(ctx, 1) }

func (l *limiter) WaitN(ctx context.Context, n int) error {
	if n > l.Burst() {
		return fmt.Errorf("rate: Wait(n=%d) exceeds limiter's burst %d", n, l.Burst())
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	l.mu.Lock()
	due := time.Now()
	if due.Before(l.next) {
		due = l.next
	}
	if deadline, ok := ctx.Deadline(); ok && due.After(deadline) {
		l.mu.Unlock()
		return fmt.Errorf("rate: Wait(n=%d) would exceed context deadline", n)
	}
	l.next = due.Add(time.Duration(n) * l.interval)
	l.mu.Unlock()
	select {
	case <-time.After(time.Until(due)):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// x/time's Limiter is a Waiter. It cannot be held, so the requests of others go on; one
// that is sent again waits all the same until the partner wants it.
func TestLimiterOfXTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPartner()
		tr := transport.New(p, &limiter{interval: 100 * ms}, transport.WithRetry(transport.Retry{}),
			transport.WithCost(func(*http.Request) int64 { return 3 }))
		for range 3 {
			_, err := tr.RoundTrip(get(t, t.Context(), "/"))
			require.NoError(t, err)
		}
		require.Equal(t, steps(0, 300*ms, 3), times(p.seen()))

		script(p, status(http.StatusTooManyRequests, "Retry-After: 20"))
		resp, err := tr.RoundTrip(get(t, t.Context(), "/again"))
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, resp.StatusCode)
		require.Equal(t, []time.Duration{900 * ms, 900*ms + 20*sec}, times(p.seen())[3:])

		// There is no use in waiting for what would come too late.
		script(p, status(http.StatusTooManyRequests, "Retry-After: 20"))
		time.Sleep(time.Minute)
		ctx, cancel := context.WithTimeout(t.Context(), 20*sec)
		defer cancel()
		began := time.Now()
		resp, err = tr.RoundTrip(get(t, ctx, "/late"))
		require.NoError(t, err)
		require.Equal(t, http.StatusTooManyRequests, resp.StatusCode)
		require.Equal(t, began, time.Now())

		short, cancel := context.WithTimeout(t.Context(), 100*ms)
		defer cancel()
		_, err = tr.RoundTrip(get(t, short, "/short"))
		var e *transport.Error
		require.ErrorAs(t, err, &e)
		require.True(t, e.Timeout(), "though its error does not say so")
		require.ErrorIs(t, err, context.DeadlineExceeded)
	})
}
