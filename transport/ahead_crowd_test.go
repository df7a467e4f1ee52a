package transport_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/transport"
	"github.com/sluice-go/sluice/transport/feedback"
	"github.com/stretchr/testify/require"
)

// Many callers at once, whose answers come early, late or never, and that read all of them,
// some or nothing, give up, or try again: every body is closed, what is read is what
// was sent, and nothing is left behind. The race detector and the end of the bubble watch
// over the rest.
func TestCrowdOfSlowBodies(t *testing.T) {
	seed := rand.Uint64()
	for _, opts := range [][]transport.Option{
		nil,
		{transport.WithRetry(transport.Retry{Budget: 1})},
		{transport.WithRetry(transport.Retry{Budget: 1}), transport.WithMaxInFlight(5)},
	} {
		synctest.Test(t, func(t *testing.T) {
			t.Logf("seed %d", seed)
			var mu sync.Mutex
			var bodies []*lateBody
			random := rand.New(rand.NewPCG(seed, 1)) // guarded by mu
			choose := func(n int) int {
				mu.Lock()
				defer mu.Unlock()
				return random.IntN(n)
			}
			text := func(size int) string { return strings.Repeat(`{"code":20429} `, size/15+1)[:size] }
			p := newPartner()
			p.answer = func(req *http.Request) (*http.Response, error) {
				time.Sleep(time.Duration(choose(300)) * ms)
				resp := says(req, []int{200, 400, 403, 429, 429, 503}[choose(6)], "", jsonLine)
				if choose(2) == 0 {
					resp.Header.Set("Retry-After", fmt.Sprint(choose(3)))
				}
				size := []int{0, 14, 4000, feedback.MaxPeek, 80_000}[choose(5)]
				b := newLateBody(text(size), []time.Duration{0, ms, 49 * ms, 50 * ms, sec, 20 * sec, 1000 * time.Hour}[choose(7)])
				mu.Lock()
				bodies = append(bodies, b)
				mu.Unlock()
				resp.Body, resp.ContentLength = b, -1
				resp.Header.Set("X-Size", fmt.Sprint(size))
				return resp, nil
			}
			classify := feedback.Any(feedback.Twilio, feedback.Stripe, feedback.GitHub, feedback.Vonage)
			tr := transport.NewKeyed(p, nil, newGroup(t, scheduler.PerSecond(50)), append(opts, transport.WithClassifier(classify))...)
			var wg sync.WaitGroup
			var got atomic.Int64
			for i := range 300 {
				wg.Go(func() {
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+choose(120))*sec)
					defer cancel()
					resp, err := tr.RoundTrip(to(t, ctx, fmt.Sprintf("http://h%d.example/", i%3)))
					if err != nil {
						return
					}
					got.Add(1)
					resp.Header.Set("Retry-After", "3600") // it is the caller's
					var size int
					fmt.Sscan(resp.Header.Get("X-Size"), &size)
					switch choose(3) {
					case 0:
					case 1:
						part, _ := io.ReadAll(io.LimitReader(resp.Body, int64(choose(200))))
						if !strings.HasPrefix(text(size), string(part)) {
							t.Error("another body")
						}
					case 2:
						timer := time.AfterFunc(time.Minute, func() { resp.Body.Close() })
						all, err := io.ReadAll(resp.Body)
						if err == nil && string(all) != text(size) || !strings.HasPrefix(text(size), string(all)) {
							t.Error("another body")
						}
						timer.Stop()
					}
					resp.Body.Close()
				})
			}
			wg.Wait()
			require.NotZero(t, got.Load())
			synctest.Wait()
			for i, b := range bodies {
				require.NotZero(t, b.closes.Load(), "body %d", i)
			}
		})
	}
}
