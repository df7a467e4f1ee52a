package transport_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
	"github.com/sluice-go/sluice/transport"
	"github.com/stretchr/testify/require"
)

// What is sent again goes behind all that waits, or keeps its place before what came after it:
// the parts of a text, each a request, reach the gateway in their order once it takes them.
func TestCaseJ09RetryKeepsItsPlace(t *testing.T) {
	again := []call{{"/c", 1140 * ms}, {"/i", 1160 * ms}, {"/j", 1180 * ms}, {"/k", 1200 * ms}, {"/l", 1220 * ms}}
	last := []call{{"/i", 1140 * ms}, {"/j", 1160 * ms}, {"/k", 1180 * ms}, {"/l", 1200 * ms}, {"/c", 1220 * ms}}
	for name, tc := range map[string]struct {
		retry transport.Retry
		want  []call
	}{
		"keeps":       {transport.Retry{KeepPlace: true}, again},
		"goes behind": {transport.Retry{}, last},
	} {
		for kind, of := range map[string]func(t *testing.T, p http.RoundTripper, opts ...transport.Option) *transport.Transport{
			"Shaper": func(t *testing.T, p http.RoundTripper, opts ...transport.Option) *transport.Transport {
				return transport.New(p, newShaper(t, scheduler.PerSecond(50), shaper.WithMaxInFlight(10)), opts...)
			},
			"Group": func(t *testing.T, p http.RoundTripper, opts ...transport.Option) *transport.Transport {
				return transport.NewKeyed(p, nil, newGroup(t, scheduler.PerSecond(50)), append(opts, transport.WithMaxInFlight(10))...)
			},
			"key": func(t *testing.T, p http.RoundTripper, opts ...transport.Option) *transport.Transport {
				g := newGroup(t, scheduler.PerSecond(50), shaper.Under(newShaper(t, scheduler.PerSecond(50), shaper.WithMaxInFlight(10))))
				return transport.New(p, g.Of("sender"), opts...)
			},
		} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					p, refused := newPartner(), false
					p.answer = func(req *http.Request) (*http.Response, error) {
						if req.URL.Path == "/c" && !refused {
							refused = true
							time.Sleep(101 * ms)
							return says(req, http.StatusTooManyRequests, "", "Retry-After: 1"), nil
						}
						time.Sleep(100 * ms)
						return answer(req, http.StatusOK), nil
					}
					tr := of(t, p, transport.WithRetry(tc.retry))
					wait := sendAll(t, tr, 12, func(i int) *http.Request { return get(t, t.Context(), "/"+string(rune('a'+i))) })
					for _, err := range wait() {
						require.NoError(t, err)
					}
					seen := p.seen()
					require.Len(t, seen, 13)
					want := make([]call, len(tc.want))
					for i, c := range tc.want {
						want[i] = call{c.path, c.at + ms}
					}
					require.Equal(t, want, seen[8:])
				})
			})
		}
	}
}
