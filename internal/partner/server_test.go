package partner_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/internal/partner"
)

// start serves p and returns its URL, what stops it, and a client of its own.
func start(t *testing.T, p *partner.Partner) (url string, stop func(), client *http.Client) {
	t.Helper()
	url, stop, err := p.Start()
	require.NoError(t, err)
	t.Cleanup(stop)
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return url, stop, &http.Client{Transport: transport}
}

func call(ctx context.Context, c *http.Client, url, key, body string) (status int, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	r.Header.Set("Content-Type", "application/json")
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	res, err := c.Do(r)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	_, err = io.Copy(io.Discard, res.Body)
	return res.StatusCode, err
}

// Many callers at once: every call has one outcome, no limit is exceeded, nothing
// is charged twice, and both sides count the same.
func TestManyCallersAtOnce(t *testing.T) {
	const callers, each = 16, 40
	limit := partner.Limit{Units: 100, Window: 50 * time.Millisecond}
	p := newPartner(t, partner.Config{
		SMS:      partner.Endpoint{Limit: limit},
		Payments: partner.Endpoint{Limit: limit, Latency: time.Millisecond},
	})
	url, stop, client := start(t, p)

	var sms, payments [600]atomic.Int64 // by status
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for i := range each {
				status, err := call(t.Context(), client, url+"/v1/messages", "", `{"to":"1","text":"hello"}`)
				assert.NoError(t, err)
				sms[status].Add(1)
				// All callers try to charge the same invoices.
				status, err = call(t.Context(), client, url+"/v1/payments", fmt.Sprint(i), invoice(i))
				assert.NoError(t, err)
				payments[status].Add(1)
				p.Stats()
			}
		})
	}
	wg.Wait()
	stop()

	s := p.Stats()
	assert.EqualValues(t, sms[202].Load(), s.SMS.Accepted)
	assert.EqualValues(t, sms[429].Load(), s.SMS.Refused)
	assert.EqualValues(t, callers*each, s.SMS.Accepted+s.SMS.Refused)
	assert.Positive(t, s.SMS.Accepted)

	assert.EqualValues(t, payments[201].Load(), s.Payments.Charges+s.Payments.Replays)
	assert.EqualValues(t, payments[409].Load(), s.Payments.Conflicts)
	assert.EqualValues(t, payments[429].Load(), s.Payments.Refused)
	assert.EqualValues(t, callers*each, s.Payments.Accepted+s.Payments.Refused)
	assert.Equal(t, s.Payments.Accepted, s.Payments.Charges+s.Payments.Replays+s.Payments.Conflicts)
	assert.Positive(t, s.Payments.Charges)
	assert.LessOrEqual(t, s.Payments.Charges, int64(each))
	assert.Zero(t, s.Payments.DuplicateCharges)
	assert.LessOrEqual(t, s.Payments.HighestConcurrency, callers)
}

// A caller that hangs up abandons its call.
func TestHangUp(t *testing.T) {
	p := newPartner(t, partner.Config{Payments: partner.Endpoint{Latency: time.Hour}})
	url, _, client := start(t, p)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		_, err := call(ctx, client, url+"/v1/payments", "key", invoice(1))
		ended <- err
	}()
	require.Eventually(t, func() bool { return p.Stats().Payments.Accepted == 1 }, 10*time.Second, time.Millisecond)
	cancel()
	assert.ErrorIs(t, <-ended, context.Canceled)
	assert.Eventually(t, func() bool { return p.Stats().Payments.Abandoned == 1 }, 10*time.Second, time.Millisecond)
	assert.Zero(t, p.Stats().Payments.Charges)
}

// Stop ends what is being processed, cuts connections that are silent or stuck in
// the middle of a request, and may be called again and at the same time.
func TestStop(t *testing.T) {
	p := newPartner(t, partner.Config{Payments: partner.Endpoint{Latency: time.Hour}})
	url, stop, client := start(t, p)
	address := strings.TrimPrefix(url, "http://")
	assert.Regexp(t, `^127\.0\.0\.1:[1-9][0-9]*$`, address)

	dial := func() net.Conn {
		conn, err := net.Dial("tcp", address)
		require.NoError(t, err)
		t.Cleanup(func() { conn.Close() })
		require.NoError(t, conn.SetDeadline(time.Now().Add(10*time.Second)))
		return conn
	}
	silent, stuck := dial(), dial()
	_, err := io.WriteString(stuck, "POST /v1/messages HTTP/1.1\r\nHost: x\r\n"+
		"Content-Type: application/json\r\nContent-Length: 9\r\n\r\n{")
	require.NoError(t, err)

	answered := make(chan int, 1)
	go func() {
		status, err := call(t.Context(), client, url+"/v1/payments", "key", invoice(1))
		assert.NoError(t, err)
		answered <- status
	}()
	require.Eventually(t, func() bool {
		s := p.Stats()
		return s.Payments.Accepted == 1 && s.SMS.HighestConcurrency == 1
	}, 10*time.Second, time.Millisecond)

	stop()
	assert.EqualValues(t, 1, p.Stats().SMS.BadRequests, "the request that was cut")
	assert.Equal(t, http.StatusServiceUnavailable, <-answered)
	assert.EqualValues(t, 1, p.Stats().Payments.Abandoned)

	for _, conn := range []net.Conn{silent, stuck} {
		_, err := io.ReadAll(conn) // ends, with or without an error
		assert.NotErrorIs(t, err, os.ErrDeadlineExceeded)
	}
	_, err = net.Dial("tcp", address)
	assert.Error(t, err)

	// The partner itself lives on, and so does what is started anew.
	url, again, client := start(t, p)
	stop()
	status, err := call(t.Context(), client, url+"/v1/messages", "", `{"to":"1"}`)
	assert.NoError(t, err)
	assert.Equal(t, http.StatusAccepted, status)

	var stops sync.WaitGroup
	for range 3 {
		stops.Go(again)
	}
	stops.Wait()
}
