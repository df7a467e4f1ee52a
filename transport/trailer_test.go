package transport_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/transport"
	"github.com/sluice-go/sluice/transport/feedback"
)

// looks is a classifier that wants to see the body.
func looks(a *feedback.Answer) feedback.Verdict { a.Body(); return feedback.Default(a) }

// sendsOnce is a Waiter that lets one request leave: what is refused is not sent again.
func sendsOnce(t *testing.T) transport.Waiter {
	var sent atomic.Bool
	return placesOf(t, func(context.Context) error {
		if sent.Swap(true) {
			return errors.New("one is enough")
		}
		return nil
	})
}

// What reads a body ahead takes no part in what the caller sees of the answer: its trailers
// are filled in when the caller has come to the end of the body, and not before. The race
// detector watches over the rest.
func TestTrailersOfABodyThatIsReadAhead(t *testing.T) {
	look, places := transport.WithClassifier(looks), transport.WithMaxInFlight(1)
	retry := transport.WithRetry(transport.Retry{})
	for name, tc := range map[string]struct {
		status int
		size   int
		opts   []transport.Option
	}{
		"classifier":       {http.StatusOK, 10, []transport.Option{look}},
		"classifier, long": {http.StatusOK, 2 * feedback.MaxPeek, []transport.Option{look}},
		"places":           {http.StatusBadRequest, 10, []transport.Option{places}},
		"places, long":     {http.StatusBadRequest, 100_000, []transport.Option{places}},
		"retry":            {http.StatusTooManyRequests, 10, []transport.Option{retry}},
		"retry, long":      {http.StatusTooManyRequests, 100_000, []transport.Option{retry}},
		"all":              {http.StatusTooManyRequests, 10, []transport.Option{look, places, retry}},
		"all, long":        {http.StatusTooManyRequests, 40_000, []transport.Option{look, places, retry}},
		"none":             {http.StatusOK, 10, nil},
	} {
		for _, http2 := range []bool{false, true} {
			proto := map[bool]string{false: "HTTP/1.1", true: "HTTP/2.0"}[http2]
			t.Run(name+"/"+proto, func(t *testing.T) {
				srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Trailer", "X-Sum")
					w.Header().Set("Retry-After", "0")
					w.WriteHeader(tc.status)
					_ = http.NewResponseController(w).Flush()
					_, _ = w.Write(make([]byte, tc.size))
					w.Header().Set("X-Sum", "42")
					w.Header().Set(http.TrailerPrefix+"X-More", "43")
				}))
				srv.EnableHTTP2 = http2
				srv.StartTLS()
				defer srv.Close()
				one := transport.New(srv.Client().Transport, sendsOnce(t), tc.opts...)
				below := transport.New(srv.Client().Transport, sendsOnce(t), tc.opts...)
				for _, tr := range []*transport.Transport{one, transport.New(below, sendsOnce(t), tc.opts...)} {
					resp, err := tr.RoundTrip(to(t, t.Context(), srv.URL))
					require.NoError(t, err)
					require.Equal(t, proto, resp.Proto)
					require.Equal(t, http.Header{"X-Sum": nil}, resp.Trailer)
					body, err := io.ReadAll(resp.Body)
					require.NoError(t, err)
					require.Len(t, body, tc.size)
					require.Equal(t, http.Header{"X-Sum": {"42"}, "X-More": {"43"}}, resp.Trailer)
					resp.Trailer.Set("X-Sum", "mine")
					_, err = resp.Body.Read(make([]byte, 1))
					require.Equal(t, io.EOF, err)
					require.Equal(t, "mine", resp.Trailer.Get("X-Sum"))
					require.NoError(t, resp.Body.Close())
				}
			})
		}
	}
}
