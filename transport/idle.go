package transport

import "net/http"

// CloseIdleConnections closes the idle connections of the base, for
// [http.Client.CloseIdleConnections]. A base that has no such method, but wraps
// another transport and says so by a method Unwrap() http.RoundTripper, is
// unwrapped until one is found. It does nothing if there is none. Requests that
// wait are not affected.
func (t *Transport) CloseIdleConnections() {
	rt := t.Unwrap()
	for rt != nil {
		switch b := rt.(type) {
		case interface{ CloseIdleConnections() }:
			b.CloseIdleConnections()
			return // it forwards further down by itself
		case interface{ Unwrap() http.RoundTripper }:
			rt = b.Unwrap()
		default:
			return
		}
	}
}
