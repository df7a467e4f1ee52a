package transport

import (
	"math/rand/v2"
	"net/http"
	"sync/atomic"
)

// attemptCounter decides of which requests the attempts on the wire are counted.
//
// net/http resends by itself what met a dead idle connection (if the method is
// idempotent or the request has an Idempotency-Key), and what an HTTP/2 server
// answers with GOAWAY or REFUSED_STREAM. A partner counts each attempt, and each gets
// a connection first, which a trace in the request's context can see. A trace costs a
// copy of the request, in vain where there is no net/http below. So a base of an unknown
// kind is watched at first, and then from time to time, until it has shown one.
type attemptCounter struct {
	net  atomic.Bool   // net/http is below
	seen atomic.Uint32 // answers to requests that were watched in vain
}

const (
	watchFirst = 16
	watchEvery = 1024
)

func newAttemptCounter(base http.RoundTripper) *attemptCounter {
	c := &attemptCounter{}
	c.net.Store(isNet(base))
	return c
}

// isNet reports whether a base is net/http, or says that it wraps it.
func isNet(base http.RoundTripper) bool {
	for {
		switch b := base.(type) {
		case nil, *http.Transport:
			return true
		case interface{ Unwrap() http.RoundTripper }:
			base = b.Unwrap()
		default:
			return false
		}
	}
}

// wanted reports whether the attempts of the next request are to be counted.
func (c *attemptCounter) wanted() bool {
	if c.net.Load() {
		return true
	}
	return c.seen.Load() < watchFirst || rand.Uint32()%watchEvery == 0
}

// answered is told that a request was watched and answered. One that was not may have
// found no server to connect to, which says nothing about what is below.
func (c *attemptCounter) answered() {
	if !c.net.Load() && c.seen.Load() < watchFirst {
		c.seen.Add(1)
	}
}
