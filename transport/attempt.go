package transport

import (
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
)

// charger is a [Waiter] that can be told of units that left without asking.
type charger interface {
	Charge(cost int)
}

// traced returns req with a trace that charges every attempt after the first one.
//
// net/http resends by itself what met a dead idle connection (if the method is
// idempotent or the request has an Idempotency-Key), and what an HTTP/2 server
// answers with GOAWAY or REFUSED_STREAM. A partner counts each attempt, and each gets
// a connection first. It cannot be held back any more, so it is charged, and those
// behind it wait longer.
func traced(req *http.Request, c charger, cost int) *http.Request {
	var attempts atomic.Int64 // net/http may call from several goroutines
	trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) {
		if attempts.Add(1) > 1 {
			c.Charge(cost)
		}
	}}
	return req.WithContext(httptrace.WithClientTrace(req.Context(), trace))
}
