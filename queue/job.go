package queue

import (
	"context"
	"fmt"
	"time"

	"github.com/sluice-go/sluice/shaper"
)

// A Job is a piece of work as a function. A queue of them is made by New(line, Run).
type Job func(ctx context.Context) error

// Run runs a job. It is the function for [New] where the items are jobs.
func Run(ctx context.Context, j Job) error { return j(ctx) }

// Again returns an error with which a job asks to be run again, d from now at the earliest. It
// takes a slot of its own then, and no worker waits meanwhile. It keeps its key, class, cost and
// NotAfter, and its place: it stands before all jobs of its key and class that came after it.
// So for d it is delayed, and after that it is next, as a rule. It is never refused for want of
// room; see [WithMaxDelayed]. A d below 1 is no delay.
//
// An error that wraps that of Again asks for the same. It is neither counted as failed nor told
// to the error handler.
func Again(d time.Duration) error { return &again{d} }

type again struct{ after time.Duration }

func (a *again) Error() string { return fmt.Sprintf("queue: again after %v", a.after) }

// A JobOption says something about one job.
type JobOption struct {
	what jobWhat
	n    int
	t    time.Time
}

type jobWhat uint8

const (
	cost jobWhat = iota
	class
	notAfter
	notBefore
)

// Cost is what a job takes of the line's units. The default is 1.
func Cost(n int) JobOption { return JobOption{what: cost, n: n} }

// Class is the class of a job; see [shaper.WithClasses]. The default is the last one, as is one
// beyond that.
func Class(n int) JobOption { return JobOption{what: class, n: n} }

// NotAfter is the instant, by the clock of the line, from which on a job is of no use. One that
// has not started by then takes no slot: it goes to the error handler as an [*UnrunError] that
// matches [ErrExpired], as soon as it is known that it would be late. The zero Time is none.
func NotAfter(t time.Time) JobOption { return JobOption{what: notAfter, t: t} }

// NotBefore is the instant, by the clock of the line, at which a job comes to the line: before,
// it waits beside it, counted as Delayed, and behind it stand all that come later. One that has
// passed is the present.
func NotBefore(t time.Time) JobOption { return JobOption{what: notBefore, t: t} }

// maxClass stands for the last class, however many there are.
const maxClass = 255

// A terms is what a job wants, times since the epoch of its queue.
type terms struct {
	cost      int64
	class     uint8
	notAfter  time.Duration
	notBefore time.Duration
}

const never = time.Duration(1<<63 - 1)

// terms applies the options of a job that is submitted now.
func (b *timebase) terms(opts []JobOption, now time.Duration) (terms, error) {
	t := terms{cost: 1, class: maxClass, notAfter: never, notBefore: now}
	for _, o := range opts {
		switch o.what {
		case cost:
			if o.n < 1 {
				return t, fmt.Errorf("queue: cost %d: %w", o.n, shaper.ErrCost)
			}
			t.cost = int64(o.n)
		case class:
			if o.n < 0 {
				return t, fmt.Errorf("queue: class %d: must not be negative", o.n)
			}
			t.class = uint8(min(o.n, maxClass))
		case notAfter:
			t.notAfter = never
			if !o.t.IsZero() {
				t.notAfter = b.since(o.t, now)
			}
		case notBefore:
			t.notBefore = max(b.since(o.t, now), now)
		}
	}
	return t, nil
}
