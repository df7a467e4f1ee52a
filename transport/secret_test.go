package transport_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/transport"
	"github.com/stretchr/testify/require"
)

// Nothing of a request but its key gets into what errors, traces and panics say, on
// whatever path.
func TestNoSecretsAnywhere(t *testing.T) {
	const secret = "hunter2"
	var log eventLog
	var said []string
	note := func(v any) { said = append(said, fmt.Sprintf("%v %+v %#v", v, v, v)) }
	send := func(tr *transport.Transport, ctx context.Context) {
		req, _, _ := post(t, ctx)
		req.URL.User = nil
		req.URL.Host = "user:" + secret + "@api.example" // by hand, where it does not belong
		if _, err := tr.RoundTrip(req); err != nil {
			note(err)
		}
	}
	hooks := transport.WithHooks(log.trace())
	short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	base := func() *partner {
		p := newPartner()
		p.answer = status(http.StatusTooManyRequests, "Retry-After: 3600")
		return p
	}
	for _, opts := range [][]transport.Option{
		{hooks},
		{hooks, transport.WithMaxInFlight(1), transport.WithMaxDelay(time.Millisecond)},
		{hooks, transport.WithCost(func(*http.Request) int64 { return 0 })},
		{hooks, transport.WithRetry(transport.Retry{Resend429: true})},
	} {
		for _, tr := range []*transport.Transport{
			transport.New(base(), newShaper(t, scheduler.PerHour(1)), opts...),
			transport.NewKeyed(base(), nil, newGroup(t, scheduler.PerHour(1)), opts...),
			transport.New(base(), placesOf(t, nil), opts...),
			transport.New(base(), placesOf(t, forever), opts...),
			transport.New(base(), placesOf(t, refusing(errFull)), opts...),
		} {
			for range 2 {
				send(tr, short)
			}
		}
	}
	for _, e := range log.take() {
		note(e)
	}
	require.Greater(t, len(said), 20)
	for _, text := range said {
		require.NotContains(t, text, secret)
		require.NotContains(t, text, "token=")
		require.NotContains(t, text, "+4670")
		require.NotContains(t, text, "/v1/messages")
	}
}
