package shaper

import (
	"context"
	"time"
)

type arrivalKey struct{}

// WithArrival returns a context whose calls stand in the line as if they had come just before t,
// by the clock of the Shaper: before all calls of their class that came then or later, and where
// that is counted, as by [WithClasses], with the time that has passed since. It is for a call that
// is made again, or for a part of something that must keep its order. A time to come is now, and
// one before the Shaper was made is that.
//
// It is about the order only. What a call may leave by counts from when it really came, so a
// past arrival claims no units, and the calls that it goes before may miss a deadline that
// they could have met. To find its place takes time in proportion to those calls.
func WithArrival(ctx context.Context, t time.Time) context.Context {
	return context.WithValue(ctx, arrivalKey{}, t)
}

// arrivalOf returns the arrival that a context states, zero if it states none. A context is
// its user's code, so no lock may be held.
func arrivalOf(ctx context.Context) time.Time {
	t, _ := ctx.Value(arrivalKey{}).(time.Time)
	return t
}

// WithArrival is the function of that name, for those who know the Shaper by an interface.
func (s *Shaper) WithArrival(ctx context.Context, t time.Time) context.Context {
	s.made()
	return WithArrival(ctx, t)
}

// WithArrival is the function of that name, for those who know the Group by an interface.
func (g *Group[K]) WithArrival(ctx context.Context, t time.Time) context.Context {
	g.made()
	return WithArrival(ctx, t)
}

// WithArrival is the function of that name, for those who know the key by an interface.
func (k *Key[K]) WithArrival(ctx context.Context, t time.Time) context.Context {
	return k.in().WithArrival(ctx, t)
}

// arrivalLocked returns when a call came, as far as the order is concerned, since the epoch.
func (l *line) arrivalLocked(now time.Time, stated time.Time) time.Duration {
	came := now.Sub(l.time.epoch)
	if stated.IsZero() {
		return came
	}
	return min(max(l.time.at(stated).Sub(l.time.epoch), 0)-1, came)
}
