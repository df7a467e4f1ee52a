package shaper

import (
	"context"
	"fmt"
	"math"
	"time"
)

// Strict is the overtake of [WithClasses] that has no bound: every call of a class leaves
// before those of all less urgent classes, which wait for ever under constant load.
const Strict time.Duration = math.MaxInt64

const maxClasses = 256

// WithClasses makes n classes of calls, from 0, the most urgent, to n-1. A call is of the
// class that [WithClass] gives its context, and of the last one if it is given none, or one
// beyond the last.
//
// Of the calls at the heads of their classes the one leaves next whose arrival, later by
// overtake for each class below the most urgent, comes first; of equals the more urgent.
// Inside a class calls leave in the order in which they came. So a call overtakes those
// that are one class less urgent and came up to overtake before it, and no other: none
// that arrives more than overtake times the difference of their classes later leaves
// earlier. Under constant load of more urgent calls, one of the last class leaves at the
// latest when those have left that came within (n-1) times overtake after it. [Strict] is
// no bound.
//
// A call that waits for its units is waited for: less urgent ones do not slip past it. A
// more urgent newcomer may still displace it, so it may miss a deadline that could be met
// when it came. The line is shared by all classes; one that is full refuses every newcomer.
// [Shaper.Allow] overtakes no waiting call.
//
// With a bound, the arrival of an urgent call takes time in proportion to the waiting calls
// that it may not overtake. In a [Group] classes order the calls of each key; where it is
// [Under] an account without weights, those of all keys.
func WithClasses(n int, overtake time.Duration) Option {
	return func(c *config) { c.classes, c.overtake = &n, overtake }
}

type classKey struct{}

// WithClass returns a context that gives the calls which are made with it a class; see
// [WithClasses]. It passes through a transport and any client that hands its context on.
// A class below 0 is a programming error and panics.
func WithClass(ctx context.Context, class int) context.Context {
	if class < 0 {
		panic(negativeClass(class))
	}
	return context.WithValue(ctx, classKey{}, class)
}

func negativeClass(class int) string {
	return fmt.Sprintf("shaper: class %d: must not be negative", class)
}

// A classRule is what decides between the classes of calls.
type classRule struct {
	last     int // the least urgent class
	overtake time.Duration
}

func (c *config) classRule() *classRule {
	r := &classRule{overtake: c.overtake}
	if c.classes != nil {
		r.last = *c.classes - 1
	}
	return r
}

// classOf returns the class of a call with the context. A context is its user's code, so no
// lock may be held.
func (r *classRule) classOf(ctx context.Context) uint8 {
	if r.last == 0 {
		return 0
	}
	if class, ok := ctx.Value(classKey{}).(int); ok {
		return uint8(min(class, r.last))
	}
	return uint8(r.last)
}

// lead returns by how much a call may come later than one that is so many classes less
// urgent, and still leave before it.
func (r *classRule) lead(classes int) time.Duration {
	if classes > 0 && r.overtake > math.MaxInt64/time.Duration(classes) {
		return math.MaxInt64
	}
	return r.overtake * time.Duration(classes)
}

// checkClasses returns an error for classes that cannot be.
func (c *config) checkClasses() error {
	switch {
	case c.classes == nil:
		return nil
	case *c.classes < 1 || *c.classes > maxClasses:
		return fmt.Errorf("shaper: %d classes: must be from 1 to %d", *c.classes, maxClasses)
	case c.overtake < 0:
		return fmt.Errorf("shaper: overtake %v: must not be negative", c.overtake)
	}
	return nil
}

// ClassState is what [Shaper.Classes] tells about a class.
type ClassState struct {
	Waiting int64         // calls in the line
	Units   int64         // their units
	Oldest  time.Duration // how long the call has waited that has waited longest; 0 if none waits
}

// Classes returns what waits of each class, from the most urgent on, those of Groups under
// the Shaper included. It takes time in proportion to the calls that wait.
func (s *Shaper) Classes() []ClassState {
	l := s.own.lock()
	defer l.unlock()
	now := l.time.now().Sub(l.time.epoch)
	classes := make([]ClassState, l.rule.last+1)
	l.eachLocked(func(f *flow) {
		for c := range f.calls.ordered {
			for int(c.class) >= len(classes) {
				classes = append(classes, ClassState{})
			}
			of := &classes[c.class]
			of.Waiting++
			of.Units += c.cost
			of.Oldest = max(of.Oldest, now-c.arrived)
		}
	})
	return classes
}
