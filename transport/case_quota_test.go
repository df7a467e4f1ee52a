package transport_test

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/transport"
	"github.com/stretchr/testify/require"
)

// The quota of a day is spent for another twelve hours, which the partner tells by headers
// of two kinds, one after the other. However many ask again and again, one request an hour
// tries; after the reset one leaves each second.
//
// Sources: XeroAPI/xero-python#74, XeroAPI/xero-node#634,
// Linus2punkt0/bluesky-crossposter#55.
func TestCaseJ15TheQuotaOfTheDayIsSpent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const spent, callers = 12 * time.Hour, 40
		p := newPartner()
		reset := p.started.Add(spent)
		const ahead = 700_000_000 * sec // a bubble stands in the year 2000, of which no epoch is taken for one
		var n atomic.Int64
		p.answer = func(req *http.Request) (*http.Response, error) {
			left := time.Until(reset)
			switch i := n.Add(1); {
			case i == 1 || left <= 0:
				return answer(req, http.StatusOK), nil
			case i%2 == 0:
				return says(req, http.StatusTooManyRequests, "", fmt.Sprintf("Retry-After: %d", (left+sec-1)/sec)), nil
			}
			return says(req, http.StatusTooManyRequests, "", "RateLimit-Limit: 5000", "RateLimit-Remaining: 0",
				fmt.Sprintf("RateLimit-Reset: %d", reset.Add(ahead).Unix()), "RateLimit-Policy: 5000;w=86400",
				"Date: "+time.Now().Add(ahead).UTC().Format(http.TimeFormat)), nil
		}
		tr := transport.New(p, newShaper(t, scheduler.PerSecond(1)))
		for range 2 {
			_, err := tr.RoundTrip(get(t, t.Context(), "/"))
			require.NoError(t, err)
		}
		again := roundTripFunc(func(req *http.Request) (*http.Response, error) {
			for {
				resp, err := tr.RoundTrip(req)
				if err != nil || resp.StatusCode == http.StatusOK {
					return resp, err
				}
			}
		})
		for _, err := range sendAll(t, again, callers, func(int) *http.Request { return get(t, t.Context(), "/") })() {
			require.NoError(t, err)
		}
		at := times(p.seen())
		const probes = 11 // the first refusal comes at 1 s
		require.Equal(t, append([]time.Duration{0, sec}, steps(time.Hour+sec, time.Hour, probes)...), at[:2+probes])
		require.Equal(t, steps(spent, sec, callers), at[2+probes:])
	})
}
