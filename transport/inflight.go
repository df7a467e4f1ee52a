package transport

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"

	"golang.org/x/sync/semaphore"
)

// ErrTooManyInFlight is the reason for refusing a request when too many of its key wait
// for one of those in flight to end; see [WithMaxInFlight].
var ErrTooManyInFlight = errors.New("transport: too many requests wait for those in flight")

// maxWaiting bounds how many requests of a key wait for a place.
const maxWaiting = 1024

// inFlight bounds the requests of each key that are in flight. A key is in it while there
// are any.
type inFlight struct {
	mu   sync.Mutex
	keys map[string]*places // guarded by mu
}

type places struct {
	free  *semaphore.Weighted // first come, first served
	users int64               // in flight or waiting; guarded by mu of inFlight
}

// take waits for a place of the key, of which there are most.
func (f *inFlight) take(ctx context.Context, key string, most int64) error {
	p, err := f.enter(key, most)
	if err != nil {
		return err
	}
	if err := p.free.Acquire(ctx, 1); err != nil {
		f.leave(key, p)
		return err
	}
	return nil
}

func (f *inFlight) enter(key string, most int64) (*places, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := f.keys[key]
	if p == nil {
		if f.keys == nil {
			f.keys = make(map[string]*places)
		}
		p = &places{free: semaphore.NewWeighted(most)}
		f.keys[key] = p
	}
	if p.users >= most+maxWaiting {
		return nil, ErrTooManyInFlight
	}
	p.users++
	return p, nil
}

func (f *inFlight) leave(key string, p *places) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if p.users--; p.users == 0 {
		delete(f.keys, key)
	}
}

// free gives a place back.
func (f *inFlight) free(key string) {
	f.mu.Lock()
	p := f.keys[key]
	f.mu.Unlock()
	p.free.Release(1)
	f.leave(key, p)
}

// follow gives the place of a request back when its answer has ended. The end of the
// context ends it, too: a caller who forgets to close a body keeps no place for ever.
func (f *inFlight) follow(req *http.Request, key string, resp *http.Response) {
	if resp == nil || resp.Body == nil || resp.Body == http.NoBody || bodiless(req, resp) {
		f.free(key)
		return
	}
	free := sync.OnceFunc(func() { f.free(key) })
	stop := context.AfterFunc(req.Context(), free)
	resp.Body = &watchedBody{ReadCloser: resp.Body, ended: func() { stop(); free() }}
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
