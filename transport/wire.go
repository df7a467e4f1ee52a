package transport

import (
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync"
)

// attempts counts how often a request goes out, below the Transport. Every attempt after the
// first one is charged when it gets its connection: it cannot be held back any more, and
// what is behind it waits longer.
//
// What is below may make requests of its own in the same context, such as one for a token to
// another host. A connection to another address than that of the request is not charged,
// then. It may be to a proxy, though, or to where a wrapper sends all requests: if the
// request has ended and none has gone to its own address, what went to the last other one
// are its attempts.
type attempts struct {
	url    *url.URL // of the request
	charge func()

	mu    sync.Mutex // net/http may call from several goroutines
	asked string     // the address of the connection that was asked for last; guarded by mu
	own   int64      // connections to the request's own address; guarded by mu
	last  string     // another address; guarded by mu
	other int64      // connections in a row to that; guarded by mu
}

// traced returns req with a trace that counts and charges its attempts.
func (t *Transport) traced(req *http.Request, p *passage) (*http.Request, *attempts) {
	key, cost, trace := p.Key, p.Cost, p.trace
	a := &attempts{url: req.URL, charge: func() {
		t.engine.Charge(key, int(cost))
		t.tell(trace, extraAttempt, Event{Key: key, Cost: cost})
	}}
	return req.WithContext(httptrace.WithClientTrace(req.Context(), &httptrace.ClientTrace{
		GetConn: a.ask,
		// Called before RoundTrip returns, as what is written later on may not be. A
		// connection that is lost before it carries anything is charged as well.
		GotConn: func(info httptrace.GotConnInfo) {
			t.counts.net.Store(true)
			if a.got(info.Conn) {
				a.charge()
			}
		},
	})), a
}

func (a *attempts) ask(address string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked = address
}

// got is told of a connection and reports whether it is for one more attempt.
func (a *attempts) got(conn net.Conn) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	to := a.asked
	if leadsTo(a.url, to, conn) {
		a.own++
		return a.own > 1
	}
	if to != a.last {
		a.last, a.other = to, 0
	}
	a.other++
	return false
}

// counted is told that a request has ended.
func (t *Transport) counted(a *attempts, p *passage, answered bool) {
	if answered {
		t.counts.answered()
	}
	own, other := a.counts()
	p.sent = p.sent || own > 0 // by a wrapper that sends several times, say
	if own > 0 {
		return
	}
	for range other - 1 {
		a.charge()
	}
}

func (a *attempts) counts() (own, other int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.own, a.other
}

// leadsTo reports whether a connection to "host:port" is for requests to u. That to a proxy
// is, if it is secured as far as the host of u.
func leadsTo(u *url.URL, address string, conn net.Conn) bool {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	if !strings.EqualFold(host, u.Hostname()) {
		secured, ok := conn.(*tls.Conn)
		return ok && strings.EqualFold(secured.ConnectionState().ServerName, u.Hostname())
	}
	want := u.Port()
	if want == "" {
		want = defaultPort(strings.ToLower(u.Scheme))
	}
	return port == want
}
