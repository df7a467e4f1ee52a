package transport

import (
	"bytes"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// ahead is a body whose start is read before its caller asks for it. The caller gets every
// byte and the same error all the same.
//
// Nothing but Close ends a Read that blocks, and a body that was closed is of no use to
// the caller. So the start is read on a goroutine, which ends at the latest with the Read
// that is under way when the time is up: once something arrives, or with the Close that
// every body gets.
type ahead struct {
	body   io.ReadCloser
	close  func() error                // that of body, once
	idle   chan struct{}               // closed when nothing is read ahead any more
	told   chan struct{}               // closed when the function that is told of the start has returned
	failed *atomic.Pointer[panicValue] // of that function

	mu     sync.Mutex // never held while the body is at work
	start  []byte     // what was read ahead; guarded by mu, and unchanged once idle
	given  int        // so much of start the caller has; guarded by mu
	over   bool       // nothing is read ahead any more; guarded by mu
	err    error      // what comes behind start, nil if there may be more; guarded by mu
	closed bool       // by the caller; guarded by mu
}

// panicValue is what a function of the user's has panicked with on a goroutine of ours.
type panicValue struct{ v any }

// maxEmptyReads is how often a body may return neither a byte nor an error before it is
// left to its caller.
const maxEmptyReads = 100

// readAhead has the first bytes of a body read, at most so many and within so long. Then
// it calls then, which may be nil, with them. A panic of then reaches the caller of Read
// or Close, if nothing has taken it before.
func readAhead(body io.ReadCloser, most int, within time.Duration, then func(start []byte)) *ahead {
	a := &ahead{
		body: body, close: sync.OnceValue(body.Close),
		idle: make(chan struct{}), told: make(chan struct{}), failed: &atomic.Pointer[panicValue]{},
	}
	go func() {
		defer close(a.told)
		defer func() {
			if v := recover(); v != nil {
				a.failed.Store(&panicValue{v})
			}
		}()
		a.fill(most, time.Now().Add(within))
		if then != nil {
			then(a.start)
		}
	}()
	return a
}

func (a *ahead) fill(most int, until time.Time) {
	defer func() {
		a.mu.Lock()
		a.over = true
		a.mu.Unlock()
		close(a.idle)
	}()
	chunk := make([]byte, min(most, 4<<10))
	size, empty := 0, 0
	for size < most && empty < maxEmptyReads && time.Now().Before(until) {
		n, err := a.body.Read(chunk[:min(len(chunk), most-size)])
		size += n
		if empty++; n > 0 {
			empty = 0
		}
		a.mu.Lock()
		a.start = append(a.start, chunk[:n]...)
		a.err = err
		a.mu.Unlock()
		if err == io.EOF {
			// All of it is in memory, and its connection is free for other requests.
			_ = a.close()
		}
		if err != nil {
			return
		}
	}
}

func (a *ahead) Read(p []byte) (int, error) {
	a.rethrow()
	n, over, err := a.take(p)
	if n == 0 && err == nil && !over && len(p) > 0 {
		<-a.idle
		n, _, err = a.take(p)
	}
	if n > 0 || err != nil {
		return n, err
	}
	return a.body.Read(p)
}

// take reads of what was read ahead, and reports whether that is all there will be of it.
func (a *ahead) take(p []byte) (n int, over bool, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		if a.err != nil && a.err != io.EOF {
			return 0, true, a.err
		}
		return 0, true, http.ErrBodyReadAfterClose
	}
	if a.given < len(a.start) {
		n = copy(p, a.start[a.given:])
		a.given += n
		return n, false, nil
	}
	return 0, a.over, a.err
}

func (a *ahead) Close() error {
	a.mu.Lock()
	a.closed = true
	a.mu.Unlock()
	err := a.close()
	a.rethrow()
	return err
}

// rethrow panics with what then has panicked with, once.
func (a *ahead) rethrow() {
	if p := a.failed.Swap(nil); p != nil {
		panic(p.v)
	}
}

// canReadAhead reports whether there is a body that is no more than that: after 101
// Switching Protocols it is the connection.
func canReadAhead(resp *http.Response) bool {
	if resp.Body == nil || resp.Body == http.NoBody || resp.StatusCode < 200 {
		return false
	}
	_, writable := resp.Body.(io.Writer)
	return !writable
}

// unread stands for a body of which nothing has come yet, and knows whether it was asked
// for.
type unread struct{ asked bool }

func (u *unread) Read([]byte) (int, error) { u.asked = true; return 0, io.EOF }
func (u *unread) Close() error             { return nil }

// inMemory is a copy of an answer of which the start of the body has come. It shares nothing
// with resp that a caller may change.
func inMemory(resp http.Response, start []byte) *http.Response {
	resp.Body = io.NopCloser(bytes.NewReader(start))
	return &resp
}
