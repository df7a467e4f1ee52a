package transport_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
	"github.com/sluice-go/sluice/transport"
	"github.com/sluice-go/sluice/transport/feedback"
	"github.com/stretchr/testify/require"
)

// A thousand callers use one Transport with all of its options, on a real clock, against a
// partner that refuses, fails and answers. Each gets one outcome, each body is closed, and
// nothing is left.
func TestCrowd(t *testing.T) {
	const goroutines, requests = 1000, 5
	before := alive()
	var n atomic.Int64
	base := roundTripFunc(func(req *http.Request) (*http.Response, error) {
		if req.Body != nil {
			_, _ = io.Copy(io.Discard, req.Body)
			req.Body.Close()
		}
		switch n.Add(1) % 50 {
		case 0:
			return says(req, http.StatusTooManyRequests, "no", "Retry-After: 0.01"), nil
		case 1:
			return says(req, http.StatusServiceUnavailable, "no", "Retry-After-Ms: 1"), nil
		case 2:
			return nil, errors.New("connection reset by peer")
		case 3:
			return says(req, http.StatusOK, `{"messages":[{"status":"1"}]}`, "Retry-After-Ms: 1"), nil
		}
		return says(req, http.StatusOK, "yes"), nil
	})
	g := newGroup(t, scheduler.PerSecond(50_000), shaper.WithMaxKeys(20), shaper.WithQueue(400))
	var events, opened, closed atomic.Int64
	count := func(transport.Event) { events.Add(1) }
	tr := transport.NewKeyed(base, nil, g,
		transport.WithMaxInFlight(30), transport.WithMaxDelay(200*time.Millisecond), transport.WithAdaptiveRate(0.5),
		transport.WithRetry(transport.Retry{Resend429: true}), transport.WithClassifier(feedback.Vonage),
		transport.WithCost(func(req *http.Request) int64 { return 1 + req.ContentLength%3 }),
		transport.WithHooks(&transport.Trace{Enqueued: count, Granted: count, Refused: count, Held: count, ExtraAttempt: count, Retried: count}),
	)
	body := func() (io.ReadCloser, error) {
		opened.Add(1)
		return &closing{Reader: strings.NewReader("hi"), closed: &closed}, nil
	}
	var answered, refused, failed atomic.Int64
	var wg sync.WaitGroup
	for i := range goroutines {
		wg.Go(func() {
			for j := range requests {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+(i+j)%100)*5*time.Millisecond)
				req, _ := http.NewRequestWithContext(ctx, http.MethodPost, fmt.Sprintf("http://h%d.example/", i%25), nil)
				req.Body, _ = body()
				req.GetBody, req.ContentLength = body, 2
				resp, err := tr.RoundTrip(req)
				switch {
				case err == nil:
					answered.Add(1)
					if j%2 == 0 {
						_, _ = io.Copy(io.Discard, resp.Body)
					}
					resp.Body.Close()
				case errors.Is(err, transport.ErrNotSent), errors.Is(err, context.DeadlineExceeded):
					refused.Add(1)
				default:
					failed.Add(1)
				}
				cancel()
			}
		})
	}
	wg.Wait()
	require.EqualValues(t, goroutines*requests, answered.Load()+refused.Load()+failed.Load())
	require.NotZero(t, answered.Load())
	require.Equal(t, opened.Load(), closed.Load())
	require.NotZero(t, events.Load())
	st := g.Stats()
	require.Zero(t, st.Waiting)
	// A request that is granted a unit when a refusal comes in gives it up.
	require.LessOrEqual(t, n.Load(), st.Left, "all that was sent has left in its turn")
	require.LessOrEqual(t, alive(), before+2)
}

// closing counts the bodies that were closed, each of them once.
type closing struct {
	io.Reader
	once   sync.Once
	closed *atomic.Int64
}

func (c *closing) Close() error { c.once.Do(func() { c.closed.Add(1) }); return nil }
