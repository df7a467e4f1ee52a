package redis

import (
	"context"
	"errors"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
)

// A Shaper is a [shaper.Shaper] that tells why a call is refused when Redis is away: with
// [FailClosed], calls that arrive and calls that wait then are refused at once with an
// [*UnavailableError]. Start with [NewShaper]. With the other policies it is a plain
// Shaper.
//
// The zero Shaper refuses all calls. All methods are safe for concurrent use.
type Shaper struct {
	*shaper.Shaper
	store Shared
}

// A Shared is a schedule of this package: a [*Schedule] or a [*Quota].
type Shared interface {
	scheduler.Scheduler

	// guard returns a context that ends when calls have to be refused, nil if they
	// never are, or why they are refused now.
	guard() (context.Context, error)

	// shut reports whether it was closed, and lets nothing leave any more.
	shut() bool

	// Close hands back what is reserved, without waiting for it.
	Close() error
}

// NewShaper returns a Shaper that lets calls leave when the schedule says so, which it
// owns from then on. See [shaper.NewFrom] for the options and errors. A quota that stands
// beside it, by [shaper.WithLimits], has calls wait where it would refuse them alone.
func NewShaper(s Shared, opts ...shaper.Option) (*Shaper, error) {
	if s == nil {
		return nil, errors.New("redis: schedule nil: must be a Schedule or a Quota")
	}
	sh, err := shaper.NewFrom(s, opts...)
	if err != nil {
		return nil, err
	}
	return &Shaper{sh, s}, nil
}

// Wait is [shaper.Shaper.Wait], which may return an [*UnavailableError] besides, and
// [ErrClosed] if the schedule was closed on its own.
func (s *Shaper) Wait(ctx context.Context) error { return s.WaitN(ctx, 1) }

// WaitN is [shaper.Shaper.WaitN], which may return an [*UnavailableError] besides.
func (s *Shaper) WaitN(ctx context.Context, cost int) error {
	return s.guarded(ctx, func(ctx context.Context) error { return s.Shaper.WaitN(ctx, cost) })
}

// Do is [shaper.Shaper.Do], which may return an [*UnavailableError] besides. Once f runs,
// nothing ends it but the context of the caller.
func (s *Shaper) Do(ctx context.Context, f func(context.Context) error) error {
	var result error
	err := s.guarded(ctx, func(waits context.Context) error {
		return s.Shaper.Do(waits, func(context.Context) error {
			result = f(ctx)
			return nil
		})
	})
	if err != nil {
		return err
	}
	return result
}

// Acquire is [shaper.Shaper.Acquire], which may return an [*UnavailableError] besides.
func (s *Shaper) Acquire(ctx context.Context, cost int) error {
	return s.guarded(ctx, func(ctx context.Context) error { return s.Shaper.Acquire(ctx, cost) })
}

// Close is [shaper.Shaper.Close], which also closes the schedule.
func (s *Shaper) Close() error {
	if s.store == nil {
		return errZeroShaper
	}
	return errors.Join(s.Shaper.Close(), s.store.Close())
}

// guarded runs wait with a context that ends when the store goes away, too.
func (s *Shaper) guarded(ctx context.Context, wait func(context.Context) error) error {
	if s.store == nil {
		return errZeroShaper
	}
	down, refused := s.store.guard()
	switch {
	case ctx.Err() != nil || refused == nil && down == nil:
		return s.explain(wait(ctx))
	case refused != nil:
		return refused
	}
	both, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := context.AfterFunc(down, func() { cancel(context.Cause(down)) })
	defer stop()
	err := wait(both)
	if why := context.Cause(both); errors.Is(err, context.Canceled) && ctx.Err() == nil && why != nil {
		return why
	}
	return s.explain(err)
}

// explain says of a refusal for want of time that the schedule was closed, if it was: the
// wait that it tells has no end.
func (s *Shaper) explain(err error) error {
	if later, ok := errors.AsType[*shaper.Refusal](err); ok && later.Delay > 0 && s.store.shut() {
		return ErrClosed
	}
	return err
}

func (s *Schedule) shut() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

func (s *Schedule) guard() (context.Context, error) {
	if s.policy.kind != closed {
		return nil, nil
	}
	down, why := s.link.untilDown()
	if why == nil {
		return down, nil
	}
	// Calls that are refused here ask the schedule nothing; so it looks for the store now.
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.config.now()
	s.lookAtStoreLocked(now)
	s.planLocked(now, 0, 0)
	return nil, why
}
