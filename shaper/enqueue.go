package shaper

import (
	"sync/atomic"
	"time"
)

// A Call is what [Shaper.Enqueue] and [Group.Enqueue] wait for.
type Call struct {
	Cost     int       // in units; 0 means 1
	Class    int       // see WithClasses; one beyond the last is of the last, one below 0 panics
	Deadline time.Time // when it is too late for the call to leave, by the clock of the Shaper; zero: never
	Arrived  time.Time // as by WithArrival; zero: when it comes
	InFlight bool      // it needs a place in flight, as by Acquire, and counts as in flight until Release
}

// Enqueue is [Shaper.Wait] for a caller that has something better to do than to block: it
// returns at once, and done is called when the call has its answer: with nil when it has left,
// or with a [*Refusal]. All else is as for calls of Wait, which stand in the same line.
//
// An error of Enqueue is a refusal on arrival; done is not called then. Otherwise it is called
// once, unless the call is cancelled: cancel takes the call out of the line and reports true,
// or false if it has its answer already, which may still be on its way. A call whose deadline
// comes while it waits is refused with [ErrDeadline]. For a call that leaves at once done may
// be called before Enqueue returns.
//
// With InFlight it is [Shaper.Acquire]: if done is called with nil, Release must be called once.
//
// done must not block: the answers of a Shaper are told one after another, in the order in
// which they came about, on the goroutine that has brought them about, that of a timer or
// another caller's. No lock is held, so done may use the Shaper. A panic of done is one of that
// goroutine. What has left when [Shaper.Shutdown] returns may be told a moment later. A nil done is
// a programming error and panics.
func (s *Shaper) Enqueue(c Call, done func(err error)) (cancel func() bool, err error) {
	return s.own.enqueue(c.enqueued(s.own.rule(), done))
}

// enqueued returns what the call wants, of which done is told.
func (c Call) enqueued(rule *classRule, done func(error)) ask {
	if done == nil {
		panic("shaper: Enqueue without a function to call")
	}
	a := c.ask(rule)
	a.done = done
	return a
}

// ask returns what the call wants. The rest is checked on arrival.
func (c Call) ask(rule *classRule) ask {
	if c.Cost == 0 {
		c.Cost = 1
	}
	if c.Class < 0 {
		panic(negativeClass(c.Class))
	}
	return ask{cost: int64(c.Cost), class: uint8(min(c.Class, rule.last)), deadline: c.Deadline, arrived: c.Arrived, place: c.InFlight}
}

// rule returns what decides between classes.
func (f *flow) rule() *classRule {
	f.made()
	return f.calls.rule
}

func (f *flow) enqueue(a ask) (cancel func() bool, err error) {
	var expiry *expiry
	if !a.deadline.IsZero() {
		expiry = newExpiry(&a)
	}
	t, err := f.enter(nil, f.line.time.since(), a)
	switch {
	case err != nil:
		return nil, err
	case t.call == nil:
		return func() bool { return false }, nil
	case expiry != nil:
		expiry.set(f, t, a.deadline)
		return func() bool {
			gone := f.abandon(t)
			if gone {
				expiry.stop()
			}
			return gone
		}, nil
	}
	return func() bool { return f.abandon(t) }, nil
}

// An expiry refuses a call when its deadline has come: no caller looks at it.
type expiry struct {
	timer atomic.Pointer[func() bool]
}

// newExpiry has the answer of a call stop its expiry.
func newExpiry(a *ask) *expiry {
	e := new(expiry)
	done := a.done
	a.done = func(err error) {
		e.stop()
		done(err)
	}
	return e
}

// stopped is in place of the timer when it is needed no more.
var stopped = func() bool { return false }

func (e *expiry) set(f *flow, t ticket, deadline time.Time) {
	stop := f.line.time.after(deadline, func() { f.expire(t) })
	if !e.timer.CompareAndSwap(nil, &stop) {
		stop() // it has its answer already
	}
}

func (e *expiry) stop() {
	if stop := e.timer.Swap(&stopped); stop != nil {
		(*stop)()
	}
}

// expire refuses a call, unless it has its answer.
func (f *flow) expire(t ticket) {
	l := f.lock()
	defer l.unlock()
	if t.waits() {
		now := l.time.now()
		f.dismissLocked(t.call, now, ErrDeadline, 0)
		l.dispatchLocked(now)
	}
}
