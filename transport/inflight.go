package transport

import (
	"context"
	"io"
	"net/http"
	"sync"
	"time"
)

// follow gives the place of a request back when its answer has ended. The end of the
// context ends it, too: a caller that forgets to close a body keeps no place for ever.
//
// Some callers leave the body of an error answer open. Such an answer is read ahead, and has
// ended once all of it is there.
func (t *Transport) follow(req *http.Request, p *passage, resp *http.Response) *http.Response {
	if !t.engine.Placed(&p.Call) { // a retry that was not sent has given it back
		return resp
	}
	key := p.Key
	if resp == nil || complete(req, resp) {
		t.engine.Release(key)
		return resp
	}
	free := sync.OnceFunc(func() { t.engine.Release(key) })
	stop := context.AfterFunc(req.Context(), free)
	ended := func() { stop(); free() }
	if resp.StatusCode >= http.StatusMultipleChoices && canReadAhead(resp) {
		resp, _ = readAhead(resp, maxAside, time.Time{}, func(_ []byte, err error) {
			if err != nil {
				ended()
			}
		})
	}
	resp.Body = &watchedBody{ReadCloser: resp.Body, ended: ended}
	return resp
}

// complete reports whether nothing more of an answer is to come.
func complete(req *http.Request, resp *http.Response) bool {
	if resp.Body == nil || resp.Body == http.NoBody || bodiless(req, resp) {
		return true
	}
	a, ok := resp.Body.(*ahead)
	return ok && a.ended()
}

// bodiless reports whether there is nothing to be read, so that callers need not close
// it, or something that is more than a body: after 101 Switching Protocols it is the
// connection.
func bodiless(req *http.Request, resp *http.Response) bool {
	switch {
	case resp.StatusCode < 200, resp.StatusCode == http.StatusNoContent, resp.StatusCode == http.StatusNotModified:
		return true
	}
	return req.Method == http.MethodHead
}

// watchedBody tells when it has ended.
type watchedBody struct {
	io.ReadCloser
	ended func()
}

func (b *watchedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.ended()
	}
	return n, err
}

func (b *watchedBody) Close() error {
	defer b.ended()
	return b.ReadCloser.Close()
}
