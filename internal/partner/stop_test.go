package partner

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Only connections that never said anything are closed, and all are waited for.
func TestConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c connections
		silent, far := net.Pipe()
		defer far.Close()
		active, peer := net.Pipe()
		defer peer.Close()
		defer active.Close()

		c.track(silent, http.StateNew)
		c.track(active, http.StateNew)
		c.track(active, http.StateActive)
		c.closeNew()
		_, err := far.Write([]byte("x"))
		assert.Error(t, err, "silent is closed")
		go active.Read(make([]byte, 1))
		_, err = peer.Write([]byte("x"))
		assert.NoError(t, err, "active is not")

		done := false
		go func() {
			c.wait()
			done = true
		}()
		c.track(silent, http.StateClosed)
		c.track(active, http.StateIdle)
		synctest.Wait()
		assert.False(t, done)
		c.track(active, http.StateClosed)
		synctest.Wait()
		assert.True(t, done)
	})
}

// Stop does not return before the last handler has, even if its connection is cut.
func TestStopWaitsForHandlers(t *testing.T) {
	p, err := New(Config{})
	require.NoError(t, err)
	url, stop, err := p.Start()
	require.NoError(t, err)
	defer stop()
	conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	require.NoError(t, err)
	defer conn.Close()
	_, err = io.WriteString(conn, "POST /v1/messages HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{")
	require.NoError(t, err)
	require.Eventually(t, func() bool { return p.Stats().SMS.HighestConcurrency == 1 }, 10*time.Second, time.Millisecond)

	p.sms.gate.mu.Lock() // the handler needs it to end
	stopped := make(chan struct{})
	go func() {
		stop()
		close(stopped)
	}()
	_, _ = io.ReadAll(conn) // until stop cuts the connection
	select {
	case <-stopped:
		t.Error("stop returned while a handler was running")
	case <-time.After(20 * time.Millisecond): // a stop that does not wait has returned by now
	}
	p.sms.gate.mu.Unlock()
	<-stopped
	assert.EqualValues(t, 1, p.Stats().SMS.BadRequests)
}
