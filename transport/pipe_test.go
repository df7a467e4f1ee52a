package transport_test

import (
	"context"
	"net"
	"net/http"
)

// pipeServer serves h on in-memory connections, which a synctest bubble can watch,
// to the transport that it returns.
func pipeServer(h http.Handler) (client *http.Transport, shut func()) {
	l := &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
	srv := &http.Server{Handler: h}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = srv.Serve(l)
	}()
	client = &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		select {
		case l.conns <- theirs:
			return ours, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}}
	return client, func() {
		_ = srv.Close()
		<-done
	}
}

type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error   { close(l.closed); return nil }
func (l *pipeListener) Addr() net.Addr { return pipeAddr{} }

type pipeAddr struct{}

func (pipeAddr) Network() string { return "pipe" }
func (pipeAddr) String() string  { return "pipe" }
