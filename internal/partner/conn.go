package partner

import (
	"context"
	"net"
	"net/http"
)

// A connKey finds in a request's context how many requests its connection brought
// before. Only a server of Start puts it there.
type connKey struct{}

// withCount is a server's ConnContext hook.
func withCount(ctx context.Context, _ net.Conn) context.Context {
	// Requests of an HTTP/1 connection are handled one after another, so a plain
	// int will do.
	return context.WithValue(ctx, connKey{}, new(int))
}

// onTheWire counts a request before its endpoint sees it, and lets it fail if that is
// planned.
func (p *Partner) onTheWire(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		earlier, served := r.Context().Value(connKey{}).(*int)
		if !served {
			p.wire.arrive() // there is no connection that could fail
			next(w, r)
			return
		}
		possible := []Break{HangUp}
		if *earlier > 0 {
			possible = []Break{IdleClose, HangUp}
		}
		*earlier++
		if p.wire.arrive(possible...) != "" {
			// net/http then reads the rest of the body, within bounds, and closes the
			// connection without an answer. With bytes unread it would be reset.
			panic(http.ErrAbortHandler)
		}
		next(w, r)
	}
}
