package transport_test

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync/atomic"
	"testing"

	loopback "github.com/sluice-go/sluice/internal/partner"
	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/transport"
	"github.com/stretchr/testify/require"
)

// authorized is a base that asks another host for a token before each request, twice, in the
// context of the request, as some clients of OAuth do.
type authorized struct {
	base  http.RoundTripper
	token string
}

func (a authorized) RoundTrip(req *http.Request) (*http.Response, error) {
	for range 2 {
		if err := a.fetch(req.Context()); err != nil {
			return nil, err
		}
	}
	return a.base.RoundTrip(req)
}

func (a authorized) fetch(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, a.token, nil)
	if err != nil {
		return err
	}
	resp, err := a.base.RoundTrip(req)
	if err == nil {
		drain(resp)
	}
	return err
}

// moved is a base that sends everything to another server.
type moved struct {
	base http.RoundTripper
	to   *url.URL
}

func (m moved) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.URL.Scheme, req.URL.Host = m.to.Scheme, m.to.Host
	return m.base.RoundTrip(req)
}

// What goes to another host below the Transport is not the partner's, and is not charged to
// it; what net/http sends it again is. Where a wrapper sends everything elsewhere, that is
// where the partner is.
func TestRequestsToAnotherHostAreNotCharged(t *testing.T) {
	tokens := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer tokens.Close()
	for name, tc := range map[string]struct {
		wrap  func(http.RoundTripper, *url.URL) http.RoundTripper
		moved bool
	}{
		"a token": {wrap: func(b http.RoundTripper, _ *url.URL) http.RoundTripper { return authorized{b, tokens.URL} }},
		"moved":   {wrap: func(b http.RoundTripper, to *url.URL) http.RoundTripper { return moved{b, to} }, moved: true},
		"moved, a token": {wrap: func(b http.RoundTripper, to *url.URL) http.RoundTripper {
			return both{authorized{b, tokens.URL}, moved{b, to}}
		}, moved: true},
	} {
		for _, http2 := range []bool{false, true} {
			breaks := loopback.IdleClose
			if http2 {
				breaks = loopback.RefuseStream
				if name != "moved" {
					continue // the server of the tokens speaks HTTP/1
				}
			}
			t.Run(name+"/"+string(breaks), func(t *testing.T) {
				p, base := onWire(t, http2)
				to := must(url.Parse(p.url))
				s := newShaper(t, scheduler.PerSecond(100_000))
				tr := transport.New(tc.wrap(base, to), s)
				for i := range 4 {
					again := i%2 == 1 // every other one is sent again below
					if again {
						require.NoError(t, p.Break(breaks, 1))
					}
					req := p.message(t, t.Context(), "a", "k")
					if tc.moved {
						req.URL.Host = "api.example"
					}
					resp, err := tr.RoundTrip(req)
					require.NoError(t, err)
					drain(resp)
					require.NoError(t, p.Break(breaks, 0))
				}
				require.EqualValues(t, 6, p.Stats().Wire.Requests)
				require.EqualValues(t, 6, s.Stats().Left)
			})
		}
	}
}

// both fetches tokens by one and sends by the other.
type both struct {
	tokens authorized
	send   http.RoundTripper
}

func (b both) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := b.tokens.fetch(req.Context()); err != nil {
		return nil, err
	}
	return b.send.RoundTrip(req)
}

// Through a proxy all connections have one address. Secured ones tell where they lead to.
func TestTokenThroughAProxyIsNotCharged(t *testing.T) {
	var requests, tokens atomic.Int64
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Host == "token.example" {
			tokens.Add(1)
			return
		}
		requests.Add(1)
	}))
	defer server.Close()
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tunnel(w, server.Listener.Addr().String())
	}))
	defer proxy.Close()
	base := &http.Transport{
		Proxy:           http.ProxyURL(must(url.Parse(proxy.URL))),
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
	}
	defer base.CloseIdleConnections()
	s := newShaper(t, scheduler.PerSecond(100_000))
	tr := transport.New(authorized{base, "https://token.example/"}, s)
	for range 3 {
		resp, err := tr.RoundTrip(to(t, t.Context(), "https://api.example/"))
		require.NoError(t, err)
		drain(resp)
	}
	require.EqualValues(t, 6, tokens.Load())
	require.EqualValues(t, 3, requests.Load())
	require.EqualValues(t, 3, s.Stats().Left)
}

// tunnel answers a CONNECT.
func tunnel(w http.ResponseWriter, address string) {
	there, err := net.Dial("tcp", address)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer there.Close()
	// The connection is taken over before the client is answered: what it sends next is not
	// for the server, which reads ahead.
	here, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	defer here.Close()
	if _, err := io.WriteString(here, "HTTP/1.1 200 OK\r\n\r\n"); err != nil {
		return
	}
	go func() {
		_, _ = io.Copy(there, here)
		there.Close()
	}()
	_, _ = io.Copy(here, there)
}
