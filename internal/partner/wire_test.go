package partner_test

import (
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/internal/partner"
)

func newPost(t *testing.T, url, key, body string) *http.Request {
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	require.NoError(t, err)
	r.Header.Set("Content-Type", "application/json")
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	return r
}

// attempts sends r and returns its status, or 0, and for each attempt of net/http the
// connection that it took, by its local address.
func attempts(client *http.Client, r *http.Request) (status int, conns []string, err error) {
	// A resend begins after the attempt before it has failed, so no lock is needed.
	trace := &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
		conns = append(conns, info.Conn.LocalAddr().String())
	}}
	res, err := client.Do(r.WithContext(httptrace.WithClientTrace(r.Context(), trace)))
	if err != nil {
		return 0, conns, err
	}
	defer res.Body.Close()
	_, err = io.Copy(io.Discard, res.Body) // or the connection is not kept
	return res.StatusCode, conns, err
}

// An idle close fails requests on kept connections only, n of them. net/http resends
// what is safe to send again, and the partner sees each attempt.
func TestIdleClose(t *testing.T) {
	p := newPartner(t, partner.Config{Breaks: map[partner.Break]int{partner.IdleClose: 1}})
	url, _, client := start(t, p)
	message := func(key string) *http.Request { return newPost(t, url+"/v1/messages", key, `{"to":"1"}`) }

	status, conns, err := attempts(client, message(""))
	require.NoError(t, err)
	assert.Equal(t, http.StatusAccepted, status)
	assert.Len(t, conns, 1, "a fresh connection passes")

	status, conns, err = attempts(client, message("key"))
	require.NoError(t, err)
	assert.Equal(t, http.StatusAccepted, status)
	assert.Len(t, conns, 2, "with a key it is sent again")

	status, conns, err = attempts(client, message("key"))
	require.NoError(t, err)
	assert.Equal(t, http.StatusAccepted, status)
	assert.Len(t, conns, 1, "once was enough")

	require.NoError(t, p.Break(partner.IdleClose, 2))
	get, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/v1/messages", nil)
	require.NoError(t, err)
	status, conns, err = attempts(client, get)
	require.NoError(t, err)
	assert.Equal(t, http.StatusMethodNotAllowed, status)
	assert.Len(t, conns, 2, "a GET is sent again")
	assert.NotEqual(t, conns[0], conns[1], "on a fresh connection")

	_, conns, err = attempts(client, message(""))
	assert.Error(t, err, "without a key it is not")
	assert.Len(t, conns, 1)

	s := p.Stats()
	assert.EqualValues(t, 7, s.Wire.Requests)
	assert.Equal(t, map[partner.Break]int64{partner.IdleClose: 3}, s.Wire.Broken)
	assert.EqualValues(t, 3, s.Wire.Connections, "the last failure opened none")
	assert.EqualValues(t, 3, s.SMS.Accepted)
	assert.EqualValues(t, 1, s.SMS.BadRequests)
	assert.EqualValues(t, 7, s.Wire.WorstWindow)
}

// A body that was not wanted is read to its end first: the caller sees a connection that
// was closed and not one that was reset while it wrote.
func TestBreaksReadTheBody(t *testing.T) {
	p := newPartner(t, partner.Config{Breaks: map[partner.Break]int{partner.HangUp: 1}})
	url, _, _ := start(t, p)
	conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, conn.SetDeadline(time.Now().Add(10*time.Second)))
	require.NoError(t, newPost(t, url+"/v1/messages", "", strings.Repeat("x", 60<<10)).Write(conn))
	answer, err := io.ReadAll(conn)
	assert.NoError(t, err)
	assert.Empty(t, answer)
}

// A hang-up fails a request on a fresh connection, which net/http never resends.
func TestHangUpOnAFreshConnection(t *testing.T) {
	p := newPartner(t, partner.Config{Breaks: map[partner.Break]int{partner.HangUp: 1}})
	url, _, client := start(t, p)
	_, conns, err := attempts(client, newPost(t, url+"/v1/payments", "key", invoice(1)))
	assert.Error(t, err)
	assert.Len(t, conns, 1)
	status, conns, err := attempts(client, newPost(t, url+"/v1/payments", "key", invoice(1)))
	require.NoError(t, err)
	assert.Equal(t, http.StatusCreated, status)
	assert.Len(t, conns, 1)

	s := p.Stats()
	assert.EqualValues(t, 2, s.Wire.Requests)
	assert.EqualValues(t, 1, s.Wire.Broken[partner.HangUp])
	assert.EqualValues(t, 1, s.Payments.Accepted, "what was broken never reached the endpoint")
}

// The score can be asked for at any time: it is no request, and never fails.
func TestStatsAreNeverBroken(t *testing.T) {
	p := newPartner(t, partner.Config{Breaks: map[partner.Break]int{partner.HangUp: 1, partner.IdleClose: 1}})
	url, _, client := start(t, p)
	for range 3 {
		res, err := client.Get(url + "/_stats")
		require.NoError(t, err)
		_, err = io.Copy(io.Discard, res.Body)
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
		assert.Equal(t, http.StatusOK, res.StatusCode)
	}
	assert.Zero(t, p.Stats().Wire.Requests)
	assert.EqualValues(t, 1, p.Stats().Wire.Connections)
}

// Requests that do not come over a network count too, and none of them can fail.
func TestWireWithoutConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPartner(t, partner.Config{
			Window: 300 * time.Millisecond,
			Breaks: map[partner.Break]int{partner.HangUp: 100, partner.IdleClose: 100},
		})
		for i := range 10 {
			assert.Equal(t, http.StatusAccepted, send(t, p, "a").Code)
			time.Sleep(time.Duration(i+1) * 30 * time.Millisecond)
		}
		assert.Equal(t, partner.WireScore{
			Requests: 10, WorstWindow: 5, SmallestGap: 30 * time.Millisecond,
		}, p.Stats().Wire)
	})
}
