package transport_test

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
	"github.com/sluice-go/sluice/transport"
)

// The class of a call is stated by the context of its request, whatever stands between.
func TestClassPassesThroughTheTransport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pace, err := shaper.New(scheduler.PerSecond(10), shaper.WithClasses(2, shaper.Strict))
		require.NoError(t, err)
		start := time.Now()
		sent := map[string]time.Duration{}
		base := roundTripFunc(func(req *http.Request) (*http.Response, error) {
			sent[req.URL.Path] = time.Since(start)
			return &http.Response{StatusCode: http.StatusNoContent, Body: http.NoBody, Request: req}, nil
		})
		client := &http.Client{Transport: transport.New(base, pace, transport.WithMaxInFlight(5))}
		send := func(ctx context.Context, path string) {
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://partner"+path, nil)
			require.NoError(t, err)
			go func() {
				resp, err := client.Do(req)
				assert.NoError(t, err)
				resp.Body.Close()
			}()
			synctest.Wait()
		}
		for _, path := range []string{"/1", "/2", "/3"} {
			send(t.Context(), path)
		}
		send(shaper.WithClass(t.Context(), 0), "/urgent")
		time.Sleep(time.Minute)
		synctest.Wait()
		assert.Equal(t, map[string]time.Duration{
			"/1": 0, "/urgent": 100 * time.Millisecond, "/2": 200 * time.Millisecond, "/3": 300 * time.Millisecond,
		}, sent)
	})
}
