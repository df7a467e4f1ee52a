package shaper

import "context"

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
func (s *Shaper) Shutdown(ctx context.Context) error {
	drained := s.drain()
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

// drain refuses new calls and returns what is closed when no call waits any more,
// or nil if none does now.
func (s *Shaper) drain() <-chan struct{} {
	s.lock()
	defer s.unlock()
	s.life.state = max(s.life.state, draining)
	if s.line.len == 0 {
		return nil
	}
	if s.life.drained == nil {
		s.life.drained = make(chan struct{})
	}
	return s.life.drained
}

// Close refuses new calls and those that wait with [ErrClosed]. It always returns
// nil. Closing twice, or during a [Shaper.Shutdown], is fine.
func (s *Shaper) Close() error {
	s.lock()
	defer s.unlock()
	s.life.state = closed
	now := s.time.now()
	for s.line.head != nil {
		s.dismissLocked(s.line.head, now, ErrClosed, 0)
	}
	s.dispatchLocked(now)
	return nil
}
