package transport

import (
	"bytes"
	"io"
	"maps"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// ahead is a body whose start is read before its caller asks for it. The caller gets every
// byte as it comes, and the same error, all the same.
//
// Nothing but Close ends a Read that blocks, and a body that was closed is of no use to
// the caller. So the start is read on a goroutine, which ends at the latest with the Read
// that is under way when the time is up: once something arrives, or with the Close that
// every body gets.
//
// net/http fills in the trailers of its response while the end of the body is read. So the
// caller has a response of its own, whose trailers are filled in while it reads that end.
type ahead struct {
	body   io.ReadCloser
	below  *http.Response // whose body that is, and whose trailers come with its end
	above  *http.Response // the caller's
	close  func() error   // that of body, once
	told   chan struct{}  // closed when nothing is read ahead any more, and the function that is told has returned
	failed atomic.Pointer[panicValue]

	mu     sync.Mutex // never held while the body is at work
	more   sync.Cond  // of mu: something has come, or will not come any more
	start  []byte     // what was read ahead; guarded by mu, and unchanged once over, but for let
	given  int        // so much of start the caller has; guarded by mu
	over   bool       // nothing is read ahead any more; guarded by mu
	err    error      // what comes behind start, nil if there may be more; guarded by mu, and unchanged once over
	closed bool       // by the caller; guarded by mu
	passed bool       // the caller has the trailers; guarded by mu
	spent  bool       // start is the caller's alone; guarded by mu
}

// panicValue is what a function of the user's has panicked with on a goroutine of ours.
type panicValue struct{ v any }

const (
	// maxAside is how much of a body is kept so that its connection is free for others, and
	// the byte that tells that there is more.
	maxAside = 64<<10 + 1
	// maxEmptyReads is how often a body may return neither a byte nor an error before it is
	// left to its caller.
	maxEmptyReads = 100
)

// readAhead has the first bytes of a body read, at most so many and, unless that is the zero
// Time, not after until. If that has led to an error, such as [io.EOF], the body is closed.
// Then it calls then, which may be nil, with both. A panic of then reaches the caller of Read
// or Close, if nothing has taken it before. The response that it returns takes the place of
// resp.
func readAhead(resp *http.Response, most int, until time.Time, then func(start []byte, err error)) (*http.Response, *ahead) {
	own := *resp
	own.Trailer = resp.Trailer.Clone()
	a := &ahead{body: resp.Body, below: resp, above: &own, close: sync.OnceValue(resp.Body.Close), told: make(chan struct{})}
	own.Body = a
	a.more.L = &a.mu
	go func() {
		defer close(a.told)
		defer func() {
			if v := recover(); v != nil {
				a.failed.Store(&panicValue{v})
			}
			a.let(&a.spent)
		}()
		a.fill(most, until)
		if then != nil {
			then(a.start, a.err)
		}
		if below, ok := a.body.(*ahead); ok && a.ended() {
			// It is closed and read no more, so its panic reaches no other.
			<-below.told
			below.rethrow()
		}
	}()
	return &own, a
}

func (a *ahead) fill(most int, until time.Time) {
	defer func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.over = true
		a.more.Broadcast()
	}()
	chunk := make([]byte, min(most, 4<<10))
	for size, empty := 0, 0; size < most && empty < maxEmptyReads && (until.IsZero() || time.Now().Before(until)); {
		n, err := a.body.Read(chunk[:min(len(chunk), most-size)])
		size += n
		if empty++; n > 0 {
			empty = 0
		}
		if ended := a.come(chunk[:n], err); ended {
			return
		}
	}
}

// come is told of what has come, and reports whether nothing more is to be read.
func (a *ahead) come(chunk []byte, err error) (ended bool) {
	if err != nil {
		// What there is of it is in memory, and its connection is free for other requests.
		defer a.close()
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.start = append(a.start, chunk...)
	a.err = err
	a.more.Broadcast()
	return err != nil || a.closed
}

// ended reports whether nothing more is to come.
func (a *ahead) ended() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.err != nil
}

func (a *ahead) Read(p []byte) (int, error) {
	n, err := a.take(p)
	a.rethrow()
	if n > 0 || err != nil || len(p) == 0 {
		return n, err
	}
	n, err = a.body.Read(p)
	if err == io.EOF {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.passTrailersLocked()
	}
	return n, err
}

// take waits for what is read ahead. It returns neither a byte nor an error if that was all.
func (a *ahead) take(p []byte) (n int, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for a.given == len(a.start) && !a.over && a.err == nil && !a.closed && len(p) > 0 {
		a.more.Wait()
	}
	switch {
	case a.closed && a.err != nil && a.err != io.EOF:
		return 0, a.err
	case a.closed:
		return 0, http.ErrBodyReadAfterClose
	case a.given < len(a.start):
		n = copy(p, a.start[a.given:])
		a.given += n
		return n, nil
	}
	if a.err == io.EOF {
		a.passTrailersLocked()
	}
	return 0, a.err
}

// passTrailersLocked is called when the caller has come to the end.
func (a *ahead) passTrailersLocked() {
	if a.passed {
		return
	}
	a.passed = true
	if a.above.Trailer == nil {
		a.above.Trailer = a.below.Trailer
		return
	}
	maps.Copy(a.above.Trailer, a.below.Trailer)
}

func (a *ahead) Close() error {
	a.let(&a.closed)
	err := a.close()
	a.rethrow()
	return err
}

// let notes that start is used no more by one of its two readers.
func (a *ahead) let(done *bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	*done = true
	if a.spent && a.closed {
		a.start, a.given = nil, 0 // the caller may keep the response for long
	}
	a.more.Broadcast()
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
