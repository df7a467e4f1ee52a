package transport_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/internal/trial"
	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
	"github.com/sluice-go/sluice/transport"
	"github.com/sluice-go/sluice/transport/feedback"
)

// countdown is a base that counts down in windows that begin with their first request, and tells
// so in each answer, in one of the forms of the field. What comes when nothing remains it refuses.
type countdown struct {
	limit  int
	window time.Duration
	tell   func(h http.Header, remaining int, reset time.Duration)
	takes  func() time.Duration // once until it counts, and once until it answers

	mu       sync.Mutex
	opened   time.Time // guarded by mu
	used     int       // guarded by mu
	answered int       // guarded by mu
	refused  int       // guarded by mu
}

func (c *countdown) RoundTrip(req *http.Request) (*http.Response, error) {
	time.Sleep(c.takes())
	resp := c.count(req)
	time.Sleep(c.takes())
	return resp, nil
}

func (c *countdown) count(req *http.Request) *http.Response {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if c.opened.IsZero() || now.Sub(c.opened) >= c.window {
		c.opened, c.used = now, 0
	}
	c.used++
	c.answered++
	if c.used > c.limit {
		c.refused++
		return says(req, http.StatusTooManyRequests, "")
	}
	resp := answer(req, []int{200, 201, 302, 404, 409}[c.answered%5])
	c.tell(resp.Header, c.limit-c.used, c.opened.Add(c.window).Sub(now))
	return resp
}

// wholeSeconds is how partners round.
func wholeSeconds(d time.Duration) int64 { return int64((d + sec - 1) / sec) }

var tellings = []func(h http.Header, remaining int, reset time.Duration){
	func(h http.Header, remaining int, reset time.Duration) {
		h.Set("RateLimit", fmt.Sprintf(`"default";r=%d;t=%d`, remaining, wholeSeconds(reset)))
	},
	func(h http.Header, remaining int, reset time.Duration) {
		h.Set("RateLimit-Remaining", fmt.Sprint(remaining))
		h.Set("RateLimit-Reset", fmt.Sprint(wholeSeconds(reset)))
	},
	func(h http.Header, remaining int, reset time.Duration) {
		h.Set("X-RateLimit-Remaining", fmt.Sprint(remaining))
		h.Set("X-RateLimit-Reset-After", fmt.Sprintf("%.9f", reset.Seconds()))
	},
	func(h http.Header, remaining int, reset time.Duration) {
		h.Set("X-RateLimit-Remaining-Requests", fmt.Sprint(remaining))
		h.Set("X-RateLimit-Reset-Requests", reset.String())
	},
	func(h http.Header, remaining int, reset time.Duration) {
		h.Set("Anthropic-RateLimit-Requests-Remaining", fmt.Sprint(remaining))
		h.Set("Anthropic-RateLimit-Requests-Reset", time.Now().Add(reset+sec-1).UTC().Format(time.RFC3339))
		h.Set("Date", time.Now().UTC().Format(http.TimeFormat))
	},
}

// A partner that counts down on successes is never asked when nothing remains, however fast the
// pace and however many are in flight, if those fit a window when it begins; and it is asked again
// in every window.
func TestCountdownIsNeverOverAsked(t *testing.T) {
	const requests = 500
	trial.Bubble(t, 200, func(t *testing.T, rng *rand.Rand) {
		p := &countdown{limit: 1 + rng.IntN(30), window: time.Duration(1+rng.IntN(60)) * sec, tell: tellings[rng.IntN(len(tellings))]}
		longest := rng.Int64N(int64(sec))
		var mu sync.Mutex
		p.takes = func() time.Duration {
			mu.Lock()
			defer mu.Unlock()
			return time.Duration(rng.Int64N(longest + 1))
		}
		most := 1 + rng.IntN(min(p.limit, 8))
		perSecond := int64(1 + rng.IntN(1000))
		s := newShaper(t, scheduler.PerSecond(perSecond), shaper.WithBurst(1+rng.IntN(20)))
		tr := transport.New(p, s, transport.WithMaxInFlight(most), transport.WithAdaptiveRate(0.1))
		rate := s.Stats().Rate
		var left atomic.Int64
		left.Store(requests)
		var wg sync.WaitGroup
		for range 1 + rng.IntN(12) {
			wg.Go(func() {
				for left.Add(-1) >= 0 {
					resp, err := tr.RoundTrip(get(t, t.Context(), "/"))
					require.NoError(t, err)
					resp.Body.Close()
				}
			})
		}
		began := time.Now()
		wg.Wait()
		require.Equal(t, requests, p.answered)
		require.Zero(t, p.refused)
		require.Equal(t, rate, s.Stats().Rate, "it cuts no rate")
		// What rounds up a reset is a second at most, and an answer is late by as much as it takes.
		// What is in flight when little remains may have been counted already: some windows are
		// not used up by that.
		windows := time.Duration(requests/p.limit*5/4 + 2)
		pace := requests * sec / time.Duration(perSecond)
		require.LessOrEqual(t, time.Since(began), windows*(p.window+2*sec+4*time.Duration(longest))+pace+2*requests*time.Duration(longest))
	})
}

// Counts come in another order than they were made. The lowest stands: what it holds, no other
// answer moves back, nor what it is known by.
func TestCountsOutOfOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPartner()
		var n atomic.Int64
		var log eventLog
		p.answer = func(req *http.Request) (*http.Response, error) {
			remaining := 3 - n.Add(1)
			if remaining < 0 {
				if remaining == -1 {
					time.Sleep(sec) // the one that tries
				}
				return answer(req, http.StatusOK), nil
			}
			time.Sleep(time.Duration(1+remaining) * 100 * ms) // the last one is the first
			return says(req, http.StatusOK, "", fmt.Sprintf("RateLimit-Remaining: %d", remaining), "RateLimit-Reset: 7200"), nil
		}
		tr := transport.New(p, newShaper(t, scheduler.PerSecond(100)), transport.WithHooks(&transport.Trace{Held: log.add("held")}))
		for _, err := range sendAll(t, tr, 3, func(int) *http.Request { return get(t, t.Context(), "/") })() {
			require.NoError(t, err)
		}
		held := p.started.Add(20*ms + 100*ms + time.Hour)
		require.Equal(t, []told{{"held", transport.Event{Cost: 1, Status: http.StatusOK, Until: held}}}, log.take())
		short, cancel := contextFor(t, sec)
		defer cancel()
		_, err := tr.RoundTrip(get(t, short, "/"))
		require.Equal(t, http.StatusOK, err.(*transport.Error).Status)
		for _, err := range sendAll(t, tr, 3, func(int) *http.Request { return get(t, t.Context(), "/") })() {
			require.NoError(t, err)
		}
		at := held.Sub(p.started)
		require.Equal(t, append(steps(0, 10*ms, 3), at, at+sec, at+sec+10*ms), times(p.seen()), "the reset is beyond the longest hold: one tries")
	})
}

// An answer that says that nothing remains is no refusal: it is not sent again, and the caller has
// it as it came. What waits for it is told so.
func TestSpentIsNoRefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPartner()
		script(p, status(http.StatusOK, "RateLimit-Remaining: 0", "RateLimit-Reset: 60"))
		tr := transport.New(p, newShaper(t, scheduler.PerSecond(10)), transport.WithRetry(transport.Retry{}))
		mustSend(t, tr, "/")
		ctx, cancel := contextFor(t, 10*sec)
		defer cancel()
		_, err := tr.RoundTrip(get(t, ctx, "/"))
		var e *transport.Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, http.StatusOK, e.Status)
		require.True(t, e.HeldUntil.Equal(p.started.Add(time.Minute)))
		require.Len(t, p.seen(), 1)
	})
}

// A refusal of the account holds the account, and one of a key the key. Where keys are under no
// account, there is only the key.
func TestAccountIsHeld(t *testing.T) {
	for name, tc := range map[string]struct {
		under  bool
		lines  []string
		status int
		other  time.Duration // when another key leaves
	}{
		"global, under an account": {true, []string{"Retry-After: 60", "X-RateLimit-Global: true"}, 429, time.Minute},
		"scope, under an account":  {true, []string{"Retry-After: 60", "X-RateLimit-Scope: global"}, 429, time.Minute},
		"spent, under an account":  {true, []string{"RateLimit-Remaining: 0", "RateLimit-Reset: 60", "X-RateLimit-Scope: account"}, 200, time.Minute},
		"a key, under an account":  {true, []string{"Retry-After: 60"}, 429, 100 * ms},
		"global, under none":       {false, []string{"Retry-After: 60", "X-RateLimit-Global: true"}, 429, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var opts []shaper.Option
				if tc.under {
					opts = append(opts, shaper.Under(newShaper(t, scheduler.PerSecond(10))))
				}
				p := newPartner()
				script(p, status(tc.status, tc.lines...))
				tr := transport.NewKeyed(p, nil, newGroup(t, scheduler.PerSecond(10), opts...))
				_, err := tr.RoundTrip(to(t, t.Context(), "http://a.example/"))
				require.NoError(t, err)
				short, cancel := contextFor(t, 50*ms)
				defer cancel()
				_, err = tr.RoundTrip(to(t, short, "http://a.example/"))
				require.Equal(t, tc.status, err.(*transport.Error).Status)
				_, err = tr.RoundTrip(to(t, t.Context(), "http://b.example/"))
				require.NoError(t, err)
				require.Equal(t, tc.other, time.Since(p.started))
				_, err = tr.RoundTrip(to(t, t.Context(), "http://a.example/"))
				require.NoError(t, err)
				require.Equal(t, time.Minute, time.Since(p.started).Truncate(sec))
			})
		})
	}
}

// When a hold of the account was cut to the cap, one request of all keys tries.
func TestOneKeyTriesForTheAccount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPartner()
		refuse := status(429, "Retry-After: 86400", "X-RateLimit-Global: true")
		script(p, refuse, refuse, refuse)
		account := newShaper(t, scheduler.PerSecond(10))
		tr := transport.NewKeyed(p, nil, newGroup(t, scheduler.PerSecond(10), shaper.Under(account)), transport.WithMaxHold(time.Minute))
		_, err := tr.RoundTrip(to(t, t.Context(), "http://first.example/"))
		require.NoError(t, err)
		for _, err := range sendAll(t, tr, 8, func(i int) *http.Request {
			return to(t, t.Context(), fmt.Sprintf("http://%d.example/", i%4))
		})() {
			require.NoError(t, err)
		}
		require.Equal(t, append(steps(0, time.Minute, 3), steps(3*time.Minute, 100*ms, 6)...), times(p.seen()))
	})
}

// What the header says of what remains is heeded when the header is there, though the body may
// tell more.
func TestSpentIsHeededBeforeTheBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPartner()
		script(p, func(req *http.Request) (*http.Response, error) {
			resp := says(req, http.StatusOK, "", "RateLimit-Remaining: 0", "RateLimit-Reset: 60")
			resp.Body = io.NopCloser(slow{})
			return resp, nil
		})
		looks := func(a *feedback.Answer) feedback.Verdict {
			_ = a.Body()
			return feedback.Default(a)
		}
		tr := transport.New(p, newShaper(t, scheduler.PerSecond(10)), transport.WithClassifier(looks))
		mustSend(t, tr, "/")
		_, err := tr.RoundTrip(get(t, t.Context(), "/"))
		require.NoError(t, err)
		require.Equal(t, []time.Duration{0, time.Minute}, times(p.seen()))
	})
}

// slow is a body that ends after five seconds.
type slow struct{}

func (slow) Read([]byte) (int, error) { time.Sleep(5 * sec); return 0, io.EOF }

// With the last request that a count allows the key is held, until the reset or until that is
// lifted by hand.
func TestTheLastThatACountAllows(t *testing.T) {
	for name, lifted := range map[string]bool{"held": false, "lifted": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPartner()
				var n atomic.Int64
				p.answer = func(req *http.Request) (*http.Response, error) {
					if n.Add(1) == 1 {
						return says(req, http.StatusOK, "", "RateLimit-Remaining: 2", "RateLimit-Reset: 60"), nil
					}
					time.Sleep(5 * sec)
					return answer(req, http.StatusOK), nil
				}
				s := newShaper(t, scheduler.PerSecond(10))
				tr := transport.New(p, s)
				mustSend(t, tr, "/")
				wait := sendAll(t, tr, 5, func(int) *http.Request { return get(t, t.Context(), "/") })
				want := []time.Duration{0, 100 * ms, 200 * ms, 60 * sec, 60*sec + 100*ms, 60*sec + 200*ms}
				if time.Sleep(sec); lifted {
					s.Resume()
					want = append(want[:3], steps(sec, 100*ms, 3)...)
				}
				for _, err := range wait() {
					require.NoError(t, err)
				}
				require.Equal(t, want, times(p.seen()))
			})
		})
	}
}
