package shaper

import (
	"context"
	"time"
)

type state int

const (
	open state = iota
	draining
	closed
)

// A lifecycle is where a Shaper stands between New and Close.
type lifecycle struct {
	state   state
	drained chan struct{} // made and closed for callers of Shutdown
}

// noteLocked is told how many calls wait whenever that may have become none.
func (l *lifecycle) noteLocked(waiting int) {
	if waiting == 0 && l.drained != nil {
		close(l.drained)
		l.drained = nil
	}
}

// Shutdown refuses new calls with [ErrClosed] and lets those that wait leave at
// their pace. It returns nil once no call waits, or the error of ctx if that ends
// first; the line goes on draining then, and [Shaper.Close] would refuse the
// rest. A pause or a hold stops the draining too.
func (s *Shaper) Shutdown(ctx context.Context) error { return await(ctx, s.own.drain()) }

// await waits until drained is closed, which is nil if there is nothing to wait for, or ctx
// ends.
func await(ctx context.Context, drained <-chan struct{}) error {
	if drained == nil {
		return nil
	}
	select {
	case <-drained:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// drain refuses new calls of the flow's line and returns what is closed when no call waits
// any more, or nil if none does now.
func (f *flow) drain() <-chan struct{} {
	l := f.lock()
	defer l.unlock()
	return l.life.drain(l.len)
}

func (l *lifecycle) drain(waiting int) <-chan struct{} {
	l.state = max(l.state, draining)
	if waiting == 0 {
		return nil
	}
	if l.drained == nil {
		l.drained = make(chan struct{})
	}
	return l.drained
}

// Close refuses new calls and those that wait with [ErrClosed], those of Groups under the
// Shaper included. A schedule with a Close method, such as one that processes share, is closed
// as well, and its error returned; otherwise that is nil. Closing twice, or during a
// [Shaper.Shutdown], is fine.
func (s *Shaper) Close() error {
	s.made()
	return s.line.close()
}

func (l *line) close() error {
	l.lock()
	defer l.unlock()
	l.life.state = closed
	now := l.time.now()
	l.eachLocked(func(f *flow) { f.dismissAllLocked(now, ErrClosed) })
	l.dispatchLocked(now)
	return l.discard()
}

func (f *flow) dismissAllLocked(now time.Time, reason error) {
	for f.calls.head != nil {
		f.dismissLocked(f.calls.head, now, reason, 0)
	}
}
