package engine

import (
	"context"
	"errors"
	"sync"
)

// Settle says what the latest attempt of a call has cost, if it can be settled. One that was
// settled before, or is final by now, stays as it is.
func (c *Call) Settle(actual int) {
	if c.settle != nil {
		_ = c.settle(actual)
		c.settle = nil
	}
}

// A Settling settles the calls of a context. A nil one has none.
type Settling struct {
	mu     sync.Mutex
	settle func(actual int) error // that of the latest attempt; guarded by mu
}

// ErrUnsettled is transport.ErrUnsettled.
var ErrUnsettled = errors.New("transport: nothing to settle")

// left is told that an attempt has left.
func (s *Settling) left(settle func(actual int) error) {
	if s != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.settle = settle
	}
}

// Settle says what the latest attempt has cost.
func (s *Settling) Settle(actual int) error {
	if s == nil {
		return ErrUnsettled
	}
	s.mu.Lock()
	settle := s.settle
	s.mu.Unlock()
	if settle == nil {
		return ErrUnsettled
	}
	return settle(actual)
}

type settlingKey struct{}

// WithSettling returns a context with a Settling of its own.
func WithSettling(ctx context.Context) (context.Context, *Settling) {
	s := &Settling{}
	return context.WithValue(ctx, settlingKey{}, s), s
}

// SettlingOf returns that of a context, or nil.
func SettlingOf(ctx context.Context) *Settling {
	s, _ := ctx.Value(settlingKey{}).(*Settling)
	return s
}
