package transport_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/transport"
)

// hangUp is a server that answers the first request on each connection, reads the
// second one, and hangs up. It returns its URL and counts the requests on the wire.
func hangUp(t *testing.T) (url string, requests *atomic.Int64) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	requests = new(atomic.Int64)
	serve := func(c net.Conn) {
		defer c.Close()
		r := bufio.NewReader(c)
		for i := range 2 {
			req, err := http.ReadRequest(r)
			if err != nil {
				return
			}
			_, _ = io.Copy(io.Discard, req.Body)
			requests.Add(1)
			if i == 0 {
				_, _ = io.WriteString(c, "HTTP/1.1 204 No Content\r\n\r\n")
			}
		}
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go serve(c)
		}
	}()
	return "http://" + l.Addr().String(), requests
}

// What net/http resends below the Transport is charged: the partner's count and ours
// agree.
func TestResendsAreCharged(t *testing.T) {
	url, requests := hangUp(t)
	s := newShaper(t, scheduler.PerSecond(1000))
	base := &http.Transport{}
	defer base.CloseIdleConnections()
	client := &http.Client{Transport: transport.New(base, s)}
	const calls = 5
	for range calls {
		req, err := http.NewRequest(http.MethodPost, url, strings.NewReader("a payment"))
		require.NoError(t, err)
		req.Header.Set("Idempotency-Key", "k")
		resp, err := client.Do(req)
		require.NoError(t, err)
		resp.Body.Close()
		assert.Same(t, req, resp.Request)
	}
	assert.Greater(t, requests.Load(), int64(calls), "net/http has resent something")
	assert.Equal(t, requests.Load(), s.Stats().Left)
}

// tab is a Waiter that lets every call pass and writes down what that costs.
type tab struct{ waited, charged atomic.Int64 }

func (b *tab) Wait(ctx context.Context) error { return b.WaitN(ctx, 1) }

func (b *tab) WaitN(_ context.Context, cost int) error { b.waited.Add(int64(cost)); return nil }

func (b *tab) Charge(cost int) { b.charged.Add(int64(cost)) }

// A resent request costs as much as it did the first time.
func TestResendsAreChargedTheirCost(t *testing.T) {
	url, requests := hangUp(t)
	var b tab
	base := &http.Transport{}
	defer base.CloseIdleConnections()
	client := &http.Client{Transport: transport.New(base, &b, transport.WithCost(func(*http.Request) int64 { return 7 }))}
	const calls = 4
	for range calls {
		resp, err := client.Get(url)
		require.NoError(t, err)
		resp.Body.Close()
	}
	assert.EqualValues(t, 7*calls, b.waited.Load())
	assert.Equal(t, 7*requests.Load(), b.waited.Load()+b.charged.Load())
	assert.NotZero(t, b.charged.Load())
}
