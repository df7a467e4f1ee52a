package partner_test

import (
	"io"
	"net/http"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/internal/partner"
)

// startHTTP2 is start for HTTP/2.
func startHTTP2(t *testing.T, p *partner.Partner) (url string, stop func(), client *http.Client) {
	t.Helper()
	url, stop, err := p.StartHTTP2()
	require.NoError(t, err)
	t.Cleanup(stop)
	transport := &http.Transport{Protocols: new(http.Protocols)}
	transport.Protocols.SetUnencryptedHTTP2(true)
	t.Cleanup(transport.CloseIdleConnections)
	return url, stop, &http.Client{Transport: transport}
}

// Without a break it answers all requests, many at once.
func TestHTTP2(t *testing.T) {
	p := newPartner(t, partner.Config{})
	url, stop, client := startHTTP2(t, p)
	do := func() {
		res, err := client.Do(newPost(t, url+"/anything", "", `{"to":"1"}`))
		if !assert.NoError(t, err) {
			return
		}
		body, err := io.ReadAll(res.Body)
		assert.NoError(t, err)
		assert.NoError(t, res.Body.Close())
		assert.Equal(t, http.StatusOK, res.StatusCode)
		assert.Equal(t, 2, res.ProtoMajor)
		assert.Empty(t, body)
	}
	do() // connects
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			for range 20 {
				do()
			}
		})
	}
	wg.Wait()
	s := p.Stats().Wire
	assert.EqualValues(t, 401, s.Requests)
	assert.Positive(t, s.Connections)
	assert.Nil(t, s.Broken)

	var stops sync.WaitGroup
	for range 3 {
		stops.Go(stop)
	}
	stops.Wait()
	_, err := client.Do(newPost(t, url, "", ""))
	assert.Error(t, err)
}

// More than the 64 KiB of a connection's window go over one connection.
func TestHTTP2RefillsTheWindow(t *testing.T) {
	p := newPartner(t, partner.Config{})
	url, _, client := startHTTP2(t, p)
	used := make(map[string]bool)
	for range 4 {
		status, conns, err := attempts(client, newPost(t, url, "", string(make([]byte, 40<<10))))
		require.NoError(t, err)
		assert.Equal(t, http.StatusOK, status)
		used[conns[0]] = true
	}
	assert.Len(t, used, 1)
}

// After GOAWAY and REFUSED_STREAM net/http resends even a plain POST, and the partner
// sees both attempts; a hang-up it reports.
func TestHTTP2Breaks(t *testing.T) {
	for _, tt := range []struct {
		kind     partner.Break
		status   int
		attempts int
		moves    bool // to another connection
	}{
		{partner.GoAway, http.StatusOK, 2, true},
		{partner.RefuseStream, http.StatusOK, 2, false},
		{partner.HangUp, 0, 1, false},
	} {
		for earlier, name := range []string{" on a fresh connection", " on a kept connection"} {
			t.Run(string(tt.kind)+name, func(t *testing.T) {
				p := newPartner(t, partner.Config{})
				url, _, client := startHTTP2(t, p)
				for range earlier {
					_, _, err := attempts(client, newPost(t, url, "", "body"))
					require.NoError(t, err)
				}
				require.NoError(t, p.Break(tt.kind, 1))
				status, conns, err := attempts(client, newPost(t, url, "", "body"))
				assert.Equal(t, tt.status == 0, err != nil, err)
				assert.Equal(t, tt.status, status)
				require.Len(t, conns, tt.attempts)
				assert.Equal(t, tt.moves, conns[0] != conns[len(conns)-1])

				s := p.Stats().Wire
				assert.EqualValues(t, earlier+tt.attempts, s.Requests)
				assert.Equal(t, map[partner.Break]int64{tt.kind: 1}, s.Broken)
			})
		}
	}
}

// A GOAWAY disowns all requests that are in flight, and net/http resends each.
func TestGoAwayWithManyInFlight(t *testing.T) {
	const inFlight = 5
	p := newPartner(t, partner.Config{})
	url, _, client := startHTTP2(t, p)
	_, _, err := attempts(client, newPost(t, url, "", "")) // connects
	require.NoError(t, err)

	// Requests whose bodies have not ended stay in flight. The bodies of their
	// resends are short.
	var got atomic.Int64
	var calls sync.WaitGroup
	trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { got.Add(1) }}
	for range inFlight {
		body, end := io.Pipe()
		t.Cleanup(func() { end.Close() })
		r, err := http.NewRequestWithContext(httptrace.WithClientTrace(t.Context(), trace), http.MethodPost, url, body)
		require.NoError(t, err)
		r.GetBody = func() (io.ReadCloser, error) { return http.NoBody, nil }
		calls.Go(func() {
			res, err := client.Do(r)
			if assert.NoError(t, err) {
				assert.Equal(t, http.StatusOK, res.StatusCode)
				assert.NoError(t, res.Body.Close())
			}
		})
	}
	require.Eventually(t, func() bool { return p.Stats().Wire.Requests == 1+inFlight }, 10*time.Second, time.Millisecond)
	require.NoError(t, p.Break(partner.GoAway, 1))
	status, conns, err := attempts(client, newPost(t, url, "", ""))
	require.NoError(t, err)
	assert.Equal(t, http.StatusOK, status)
	assert.Len(t, conns, 2)
	calls.Wait()

	s := p.Stats().Wire
	assert.EqualValues(t, 2*inFlight, got.Load())
	assert.EqualValues(t, 1+2*(inFlight+1), s.Requests)
	assert.Equal(t, map[partner.Break]int64{partner.GoAway: inFlight + 1}, s.Broken)
	assert.GreaterOrEqual(t, s.Connections, int64(2))
}
