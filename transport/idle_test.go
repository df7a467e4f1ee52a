package transport_test

import (
	"net/http"
	"testing"

	"github.com/sluice-go/sluice/transport"
	"github.com/stretchr/testify/require"
)

// pool is a base that has connections to close.
type pool struct {
	*partner
	closed int
}

func (p *pool) CloseIdleConnections() { p.closed++ }

// tracing wraps a transport and offers Unwrap, but does not forward
// CloseIdleConnections itself.
type tracing struct{ http.RoundTripper }

func (w tracing) Unwrap() http.RoundTripper { return w.RoundTripper }

// opaque wraps a transport and does not say so.
type opaque struct{ wrapped http.RoundTripper }

func (o opaque) RoundTrip(req *http.Request) (*http.Response, error) { return o.wrapped.RoundTrip(req) }

func TestCloseIdleConnections(t *testing.T) {
	for name, tc := range map[string]struct {
		wrap func(http.RoundTripper) http.RoundTripper
		want int
	}{
		"direct":      {func(b http.RoundTripper) http.RoundTripper { return b }, 1},
		"one wrapper": {func(b http.RoundTripper) http.RoundTripper { return tracing{b} }, 1},
		"chain": {func(b http.RoundTripper) http.RoundTripper {
			return tracing{tracing{transport.New(tracing{b}, ready)}}
		}, 1},
		"a wrapper that hides it": {func(b http.RoundTripper) http.RoundTripper { return opaque{b} }, 0},
		"a wrapper of nothing":    {func(http.RoundTripper) http.RoundTripper { return tracing{nil} }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			base := &pool{partner: newPartner()}
			client := &http.Client{Transport: transport.New(tc.wrap(base), ready)}
			client.CloseIdleConnections() // finds the method by a type assertion
			require.Equal(t, tc.want, base.closed)
		})
	}
}

func TestUnwrap(t *testing.T) {
	base := newPartner()
	require.Same(t, base, transport.New(base, ready).Unwrap())
}
