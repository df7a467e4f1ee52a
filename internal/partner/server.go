package partner

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"
)

const (
	readTimeout = 10 * time.Second
	idleTimeout = time.Minute
	maxHeader   = 16 << 10

	// grace is what a connection that is in the middle of a request gets when the
	// server stops.
	grace = 500 * time.Millisecond
)

// Start serves the partner on a free port of 127.0.0.1 and returns its URL, which
// has no slash at the end. The error is that of net.Listen.
//
// stop ends the server: calls that are being processed end at once as abandoned,
// connections are closed, and when it returns, nothing of the server is left. It
// takes little time, about half a second if a caller is stuck in the middle of a
// request. It may be called more than once and at the same time.
//
// A partner can be started more than once, also again after stop; all its servers
// share its limits and its score.
func (p *Partner) Start() (url string, stop func(), err error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, fmt.Errorf("partner: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var conns connections
	srv := &http.Server{
		Handler:           p,
		ReadHeaderTimeout: readTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      p.writeTimeout(),
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ConnContext:       withCount,
		ConnState: func(conn net.Conn, state http.ConnState) {
			if state == http.StateNew {
				p.wire.connect()
			}
			conns.track(conn, state)
		},
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = srv.Serve(ln) // ends when stop closes ln
	}()

	// All of it may be done twice, and at the same time.
	stop = func() {
		ln.Close()
		<-served // no new connections from here on
		cancel()
		conns.closeNew()
		patience, done := context.WithTimeout(context.Background(), grace)
		defer done()
		if srv.Shutdown(patience) != nil {
			srv.Close()
		}
		conns.wait()
	}
	return "http://" + ln.Addr().String(), stop, nil
}

// writeTimeout leaves time to read the request, process it and write the answer.
// It is none at all if the latency is so long that the sum has no meaning.
func (p *Partner) writeTimeout() time.Duration {
	latency := max(p.sms.gate.latency, p.payments.gate.latency)
	return max(0, latency+2*readTimeout)
}

// connections knows the open connections of a server.
type connections struct {
	open sync.WaitGroup

	mu     sync.Mutex
	silent map[net.Conn]struct{} // those that have not sent anything yet
}

// track is a server's ConnState hook.
func (c *connections) track(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if state == http.StateNew {
		if c.silent == nil {
			c.silent = make(map[net.Conn]struct{})
		}
		c.silent[conn] = struct{}{}
		c.open.Add(1)
		return
	}
	delete(c.silent, conn)
	if state == http.StateClosed {
		c.open.Done()
	}
}

// closeNew closes the connections that have not sent anything. Clients open some
// in advance, and Shutdown would wait seconds for each of them to speak.
func (c *connections) closeNew() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for conn := range c.silent {
		conn.Close()
	}
}

// wait returns when all connections are closed. No new ones may come any more.
func (c *connections) wait() {
	c.open.Wait()
}
