package transport_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/transport"
	"github.com/stretchr/testify/require"
)

// A Transport without a base can become http.DefaultTransport, and so can a second one: each
// sends through what was there before it, once.
func TestDefaultTransportOfItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		old := http.DefaultTransport
		defer func() { http.DefaultTransport = old }()
		base := &pool{partner: newPartner()}
		http.DefaultTransport = base
		first := newShaper(t, scheduler.PerSecond(10))
		http.DefaultTransport = transport.New(nil, first)
		second := newGroup(t, scheduler.PerSecond(5))
		http.DefaultTransport = transport.NewKeyed(nil, nil, second)
		for range 3 {
			resp, err := (&http.Client{}).Do(get(t, t.Context(), "/"))
			require.NoError(t, err)
			resp.Body.Close()
		}
		require.Equal(t, steps(0, 200*time.Millisecond, 3), times(base.seen()))
		require.EqualValues(t, 3, first.Stats().Left)
		require.EqualValues(t, 3, second.Stats().Left)
		http.DefaultClient.CloseIdleConnections()
		require.Equal(t, 1, base.closed)
	})
}
