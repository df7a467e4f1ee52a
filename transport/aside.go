package transport

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// What of an answer is kept in memory, so that its connection is free for others while the
// request waits: so much of it, if it comes within so long.
const (
	maxAside    = 64 << 10
	asideWithin = time.Second
)

// setAside reads and closes the body of a response if it is short and comes at once. It
// can be read from memory then. One that is longer, or does not end, stays open; its reader
// gets all of it.
func setAside(ctx context.Context, resp *http.Response) {
	if resp.Body == http.NoBody {
		return
	}
	a := newAside(resp.Body, func() {})
	resp.Body = a
	timer := time.NewTimer(asideWithin)
	defer timer.Stop()
	select {
	case <-a.idle:
	case <-timer.C:
	case <-ctx.Done():
	}
	a.late.Store(true)
	if a.over() {
		a.ReadCloser.Close()
		resp.Body = wholeBody{a}
	}
}

// wholeBody is the body of an answer of which nothing more is to come.
type wholeBody struct{ *aside }

// Close has nothing to close any more.
func (b wholeBody) Close() error {
	b.forget()
	return nil
}

// aside is a body whose start may be in memory.
type aside struct {
	io.ReadCloser
	ended func()        // called when nothing more is to come
	late  atomic.Bool   // no more is to be read ahead
	idle  chan struct{} // closed when nothing is read ahead any more

	mu     sync.Mutex   // never held while the body is at work
	start  bytes.Buffer // what was read ahead; guarded by mu
	err    error        // what comes behind it, nil if there may be more; guarded by mu
	closed bool         // guarded by mu
}

// newAside has the start of a body read until the caller wants it.
//
// Nothing but Close ends a Read that blocks, and a body that was closed is of no use to
// the caller. So it is read on a goroutine, which ends at the latest with the Read that is
// under way when the caller wants the body: once something arrives, or with the Close that
// every body gets, or with the request's context.
func newAside(body io.ReadCloser, ended func()) *aside {
	a := &aside{ReadCloser: body, ended: ended, idle: make(chan struct{})}
	go a.fill()
	return a
}

func (a *aside) fill() {
	defer close(a.idle)
	chunk := make([]byte, 4<<10)
	for size := 0; size <= maxAside && !a.late.Load() && !a.over(); {
		n, err := a.ReadCloser.Read(chunk)
		size += n
		a.mu.Lock()
		a.start.Write(chunk[:n])
		a.err = err
		a.mu.Unlock()
	}
	if a.over() {
		a.ended()
	}
}

func (a *aside) over() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.err != nil
}

var errClosed = errors.New("transport: read on closed response body")

func (a *aside) Read(p []byte) (int, error) {
	a.late.Store(true)
	if n, err := a.ahead(p); n > 0 || err != nil || len(p) == 0 {
		return n, err
	}
	<-a.idle
	if n, err := a.ahead(p); n > 0 || err != nil {
		return n, err
	}
	return a.ReadCloser.Read(p)
}

// ahead reads of what was read ahead.
func (a *aside) ahead(p []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.closed:
		return 0, errClosed
	case a.start.Len() > 0:
		return a.start.Read(p)
	}
	return 0, a.err
}

// Close ends a Read that is under way. What was read ahead is gone, as the rest is.
func (a *aside) Close() error {
	a.forget()
	return a.ReadCloser.Close()
}

func (a *aside) forget() {
	a.late.Store(true)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed, a.start = true, bytes.Buffer{}
}
