package transport_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/transport"
	"github.com/sluice-go/sluice/transport/feedback"
	"github.com/stretchr/testify/require"
)

// flood has callers of ten paths send for so long, each again once it has its answer, and
// returns how many requests of each path the partner got.
func flood(t *testing.T, tr *transport.Transport, p *partner, callers int, most time.Duration) map[string]int {
	t.Helper()
	before := len(p.seen())
	end := time.Now().Add(most)
	var wg sync.WaitGroup
	for c := range callers {
		random := rand.New(rand.NewPCG(1, uint64(c)))
		wg.Go(func() {
			for time.Now().Before(end) {
				resp, err := tr.RoundTrip(get(t, t.Context(), fmt.Sprintf("/%d", random.IntN(10))))
				if err == nil {
					err = resp.Body.Close()
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	sent := map[string]int{}
	for _, c := range p.seen()[before:] {
		sent[c.path]++
		sent["all"]++
	}
	return sent
}

// One path in ten is in trouble and answers 503 for many minutes: the others, which succeed
// meanwhile, go on nearly at the pace. When the whole partner is in trouble, it is left
// alone, for longer and longer; when it is back, the pace is, too.
func TestTroubleOfOnePath(t *testing.T) {
	for name, tc := range map[string]struct {
		rate      int
		callers   int
		good, bad time.Duration // how long answers take
		code      int
		classify  feedback.Classifier
		share     float64 // of the pace
		untilHeld int     // so many answers it takes to tell that the partner is down: a false alarm doubles the bound
	}{
		"slow pace":             {10, 30, 100 * ms, 100 * ms, 503, nil, 0.98, 40},
		"fast pace":             {100, 60, 100 * ms, 100 * ms, 503, nil, 0.95, 40},
		"successes take a long": {100, 400, 2 * sec, 10 * ms, 503, nil, 0.9, 320},
		"overloaded":            {100, 60, 100 * ms, 100 * ms, 529, feedback.Anthropic, 0.95, 40},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPartner()
				down := false
				p.answer = func(req *http.Request) (*http.Response, error) {
					if down || req.URL.Path == "/7" {
						time.Sleep(tc.bad)
						return answer(req, tc.code), nil
					}
					time.Sleep(tc.good)
					return answer(req, http.StatusOK), nil
				}
				var opts []transport.Option
				if tc.classify != nil {
					opts = append(opts, transport.WithClassifier(tc.classify))
				}
				tr := transport.New(p, newShaper(t, scheduler.PerSecond(int64(tc.rate))), opts...)
				long := 20 * time.Minute
				if tc.rate > 10 {
					long /= 5
				}
				sent := flood(t, tr, p, tc.callers, long)
				require.GreaterOrEqual(t, float64(sent["all"]), tc.share*float64(tc.rate)*long.Seconds())
				require.NotZero(t, sent["/7"])

				// At the end of each hold so many leave before the first answer. At the end of a flood
				// all callers send what they have begun.
				atOnce := 1 + tc.rate*int(tc.bad/ms)/1000
				down = true
				require.LessOrEqual(t, flood(t, tr, p, tc.callers, time.Minute)["all"], tc.untilHeld+9*atOnce+tc.callers)
				require.LessOrEqual(t, flood(t, tr, p, tc.callers, 9*time.Minute)["all"], 13*atOnce+tc.callers)

				down = false
				flood(t, tr, p, tc.callers, 2*time.Minute) // the hold that there still is
				sent = flood(t, tr, p, tc.callers, long)
				require.GreaterOrEqual(t, float64(sent["all"]), tc.share*float64(tc.rate)*long.Seconds())
			})
		})
	}
}

// A partner of whom no success is known is believed at once, and one that refuses half of
// the requests is in trouble as a whole. What names a limit, or a time, always holds.
func TestTroubleOfThePartner(t *testing.T) {
	t.Run("from the start", func(t *testing.T) {
		at := gateAfter(t, says(nil, http.StatusServiceUnavailable, ""))
		require.GreaterOrEqual(t, at, sec)
	})
	for name, tc := range map[string]struct {
		code     int
		body     string
		lines    []string
		classify feedback.Classifier
		every    int // the first of so many is refused
		holds    bool
	}{
		"one in two":             {503, "", nil, nil, 2, true},
		"one in four":            {503, "", nil, nil, 4, false},
		"one in ten":             {503, "", nil, nil, 10, false},
		"one in ten, 429":        {429, "", nil, nil, 10, true},
		"one in ten, stated":     {503, "", []string{"Retry-After: 5"}, nil, 10, true},
		"one in ten, by a code":  {503, "<Error><Code>SlowDown</Code></Error>", nil, feedback.AWS, 10, true},
		"one in ten, of AWS":     {503, "", nil, feedback.AWS, 10, false},
		"one in ten, one's own":  {503, "", nil, func(a *feedback.Answer) feedback.Verdict { return feedback.Verdict{Refused: a.Status() == 503} }, 10, true},
		"one in ten, no refusal": {500, "", nil, nil, 10, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPartner()
				n := -1
				p.answer = func(req *http.Request) (*http.Response, error) {
					if n++; n%tc.every == 0 {
						return says(req, tc.code, tc.body, tc.lines...), nil
					}
					return answer(req, http.StatusOK), nil
				}
				var opts []transport.Option
				if tc.classify != nil {
					opts = append(opts, transport.WithClassifier(tc.classify))
				}
				tr := transport.New(p, newShaper(t, scheduler.PerSecond(10)), opts...)
				for range 1000 {
					_, err := tr.RoundTrip(get(t, t.Context(), "/"))
					require.NoError(t, err)
				}
				if tc.holds {
					require.GreaterOrEqual(t, time.Since(p.started), 170*sec)
				} else {
					require.LessOrEqual(t, time.Since(p.started), 105*sec)
				}
			})
		})
	}
}

// A request whose refusal holds no other waits by itself before it is sent again.
func TestTroubleAndRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPartner()
		p.answer = func(req *http.Request) (*http.Response, error) {
			if req.URL.Path == "/bad" {
				return answer(req, http.StatusServiceUnavailable), nil
			}
			return answer(req, http.StatusOK), nil
		}
		tr := transport.New(p, newShaper(t, scheduler.PerSecond(10)), transport.WithRetry(transport.Retry{}))
		resp, err := tr.RoundTrip(get(t, t.Context(), "/bad"))
		require.NoError(t, err)
		require.Equal(t, http.StatusServiceUnavailable, resp.StatusCode)
		for range 30 {
			_, err := tr.RoundTrip(get(t, t.Context(), "/good"))
			require.NoError(t, err)
		}
		before := len(p.seen())
		wait := sendAll(t, tr, 1, func(int) *http.Request { return get(t, t.Context(), "/bad") })
		for range 20 {
			_, err := tr.RoundTrip(get(t, t.Context(), "/good"))
			require.NoError(t, err)
		}
		require.NoError(t, wait()[0])
		var bad, good []time.Duration
		for _, c := range p.seen()[before:] {
			if c.path == "/bad" {
				bad = append(bad, c.at)
			} else {
				good = append(good, c.at)
			}
		}
		require.Len(t, bad, 3)
		require.GreaterOrEqual(t, bad[1]-bad[0], sec)
		require.LessOrEqual(t, bad[1]-bad[0], 1500*ms)
		require.GreaterOrEqual(t, bad[2]-bad[1], 2*sec)
		require.LessOrEqual(t, good[19]-good[0], 2300*ms, "the others go on")
	})
}
