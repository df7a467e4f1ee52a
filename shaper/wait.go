package shaper

import (
	"context"
	"math"
	"time"

	"github.com/sluice-go/sluice/scheduler"
)

// Wait blocks until a call of one unit may leave, and returns nil then. The call
// has left with that: there is nothing to hand back.
//
// It returns an error, and the call has taken no slot,
//
//   - if ctx is done before or while it waits: the plain error of ctx;
//   - if the call is refused, on arrival or because of a later change: a
//     [*Refusal] whose reason is [ErrQueueFull], [ErrMaxDelay], [ErrDeadline] or
//     [ErrClosed].
//
// A call that could not leave before the deadline of ctx is refused at once. If a
// grant and the end of ctx meet, the grant wins. A nil ctx is a programming error and
// panics.
func (s *Shaper) Wait(ctx context.Context) error {
	// Not by WaitN: the stack of a new goroutine just holds the frames of a wait, and
	// those that wait are many.
	dead := ctx.Err()
	read := s.time.since()
	if dead == nil && s.fast.leave(read, 1) {
		return nil
	}
	return s.wait(ctx, dead, read, ask{cost: 1})
}

// WaitN is [Shaper.Wait] for a call of the given cost in units. A cost below 1, or
// above what the schedule can ever let leave, is refused with [ErrCost].
//
// A cost above the burst leaves when the bucket is full and is paid off
// afterwards, so it wedges nothing.
func (s *Shaper) WaitN(ctx context.Context, cost int) error {
	dead := ctx.Err()
	read := s.time.since()
	if dead == nil && s.fast.leave(read, int64(cost)) {
		return nil
	}
	return s.wait(ctx, dead, read, ask{cost: int64(cost)})
}

// An ask is what a call wants that arrives.
type ask struct {
	cost     int64
	place    bool
	class    uint8
	deadline time.Time // zero: none
}

// wait is the rest of WaitN. A context is its user's code, so it is asked while no lock
// is held.
func (s *Shaper) wait(ctx context.Context, dead error, read time.Duration, a ask) error {
	var done <-chan struct{}
	if dead == nil {
		a.deadline = deadlineOf(ctx)
		a.class = s.line.classOf(ctx)
		done = ctx.Done()
	}
	c, err := s.enter(dead, read, a)
	if c == nil {
		return err
	}
	return s.await(ctx, done, c)
}

// deadlineOf returns the deadline of a context, and zero if it has none.
func deadlineOf(ctx context.Context) time.Time {
	deadline, ok := ctx.Deadline()
	switch {
	case !ok:
		return time.Time{} // whatever time it tells
	case deadline.IsZero():
		return deadline.Add(1) // a deadline, and long past
	}
	return deadline
}

// Allow reports whether a call of one unit may leave now. If so, it has left. It
// never waits and never overtakes a call that does.
func (s *Shaper) Allow() bool { return s.AllowN(1) }

// AllowN is [Shaper.Allow] for a call of the given cost in units.
func (s *Shaper) AllowN(cost int) bool {
	read := s.time.since()
	if s.fast.leave(read, int64(cost)) {
		return true
	}
	s.lock()
	defer s.unlock()
	s.counts.submitted++
	if s.admissibleLocked(int64(cost)) == nil && s.leaveLocked(s.arriveLocked(read), int64(cost), false) {
		return true
	}
	s.counts.refused++
	return false
}

// LeaveNow reports whether a call of the given cost has left at once. A no counts as
// nothing and means only that [Shaper.WaitN] has to be asked: unlike [Shaper.AllowN],
// LeaveNow says yes only where no lock is needed for it. It is for callers that do
// something before they wait, such as looking at the clock.
func (s *Shaper) LeaveNow(cost int) bool {
	if s.fast.leave(s.time.since(), int64(cost)) {
		return true
	}
	s.made()
	return false
}

// Do waits as [Shaper.Wait] does and then runs f, which counts as in flight until
// it returns; see [WithMaxInFlight]. It returns the error of either.
func (s *Shaper) Do(ctx context.Context, f func(context.Context) error) error {
	if err := s.Acquire(ctx, 1); err != nil {
		return err
	}
	defer s.Release()
	return f(ctx)
}

// Delay returns what a newcomer of one unit would wait now, holds included. While
// paused, which may end at any time, it is the wait if the pause ended now.
func (s *Shaper) Delay() time.Duration {
	s.lock()
	defer s.unlock()
	now := s.arriveLocked(s.time.since())
	return s.dueLocked(now, s.line.units, 1).Sub(now)
}

// enter is for a call that arrives. It returns the call if it waits now, and nil if it
// has left at once or is turned away with an error.
func (s *Shaper) enter(dead error, read time.Duration, a ask) (*call, error) {
	s.lock()
	defer s.unlock()
	s.counts.submitted++
	if dead != nil {
		s.counts.cancelled++
		return nil, dead
	}
	if reason := s.admissibleLocked(a.cost); reason != nil {
		return nil, s.refuseLocked(reason, a.cost, 0)
	}
	now := s.arriveLocked(read)
	if s.leaveLocked(now, a.cost, a.place) {
		return nil, nil
	}
	// The clock was read before the lock was free, which may be long ago. A call that has to
	// wait can afford to read it again.
	if present := s.arriveLocked(s.time.since()); present.After(now) {
		now = present
		if s.leaveLocked(now, a.cost, a.place) {
			return nil, nil
		}
	}
	return s.joinLocked(now, a)
}

// arriveLocked returns the present for a newcomer. If the timer of the head is late,
// every call that is due leaves now and not behind the newcomer's back.
func (s *Shaper) arriveLocked(read time.Duration) time.Time {
	now := s.time.nowLocked(read)
	s.unusedLocked(now)
	if s.line.head != nil && !s.nextDue.After(now) {
		s.dispatchLocked(now)
	}
	return now
}

// admissibleLocked returns the reason for which a call is refused whatever the
// time, or nil.
func (s *Shaper) admissibleLocked(cost int64) error {
	switch {
	case s.life.state != open:
		return ErrClosed
	case cost < 1 || cost > s.sched.MaxCost():
		return ErrCost
	}
	return nil
}

// leaveLocked lets a newcomer leave if no call waits, nothing is held and it is
// due.
func (s *Shaper) leaveLocked(now time.Time, cost int64, place bool) bool {
	if s.line.head != nil || !s.gate.open(now) || place && !s.places.free() || s.sched.Next(now, 0, cost).After(now) {
		return false
	}
	s.departLocked(s.claimLocked(now, cost, place), now, cost, place)
	return true
}

// claimLocked returns since when a newcomer is due that need not wait: the present, or the
// end of the wait that it would have had, had its caller not been woken late before. If a
// call could have left between the latest departure and then, the line had run dry: it has
// no such claim, and the calls after it have none either.
func (s *Shaper) claimLocked(now time.Time, cost int64, place bool) time.Time {
	if s.late.by > 0 && !s.gate.reopening {
		since := s.earliestLocked(s.late.since, place)
		if due := s.sched.Next(since, 0, cost); due.After(later(since, now.Add(-s.late.by))) {
			return due
		}
	}
	s.late.end()
	return now
}

// joinLocked predicts when a newcomer would leave. If nothing speaks against that
// wait, it joins the line.
func (s *Shaper) joinLocked(now time.Time, a ask) (*call, error) {
	ahead := s.line.ahead(a.class, now.Sub(s.time.epoch))
	// A hold is no backlog: it does not mean that too much was asked for.
	due := s.sched.Next(now, ahead, a.cost)
	backlog := due.Sub(now)
	if s.gate.paused || s.gate.reopening {
		due = s.dueLocked(now, ahead, a.cost)
	}
	delay := due.Sub(now)
	if s.fullLocked(now) || backlog > s.maxBacklog || !s.line.fits(a.cost) {
		return nil, s.refuseLocked(ErrQueueFull, a.cost, delay)
	}
	// Behind a pause, or for want of a place in flight, it waits even if it is due: how
	// long, nothing can tell.
	if max(delay, 1) > s.maxDelay {
		return nil, s.refuseLocked(ErrMaxDelay, a.cost, delay)
	}
	deadline := time.Duration(noDeadline)
	if !a.deadline.IsZero() {
		at := s.time.at(a.deadline)
		if !due.Before(at) {
			return nil, s.refuseLocked(ErrDeadline, a.cost, delay)
		}
		deadline = at.Sub(s.time.epoch)
	}
	if s.gcra == nil && backlog == never { // under a GCRA every call leaves at last
		return nil, s.refuseLocked(ErrQueueFull, a.cost, delay)
	}

	c := s.pool.take(s.line.len)
	c.cost, c.place, c.class, c.arrived, c.deadline = a.cost, a.place, a.class, now.Sub(s.time.epoch), deadline
	s.line.push(c)
	if s.line.head == c {
		s.dispatchLocked(now)
	}
	return c, nil
}

// fullLocked reports whether the line holds as many calls as it may. A [scheduler.GCRA]
// may owe time beyond its burst, from calls that have left; that counts as so many calls
// of the cost of the latest one. So a burst of calls on an idle Shaper is cut where the
// line would be full had all of them joined it.
func (s *Shaper) fullLocked(now time.Time) bool {
	room := int64(s.capacity - s.line.len)
	if room <= 0 || s.gcra == nil {
		return room <= 0
	}
	n := s.debt
	if n > math.MaxInt64/room {
		return false // no debt is that long
	}
	most := s.gcra.Rate().For(room * n)
	return 0 < most && most < never && s.gcra.Next(now, 0, n).Sub(now) >= most
}

// debtOf returns the cost that counts as the latest one when a call has left. One within
// the burst leaves only once all debts beyond the burst are paid, and its own cannot be
// told from that of a single unit.
func debtOf(cost int64, g *scheduler.GCRA) int64 {
	if g == nil || cost <= g.Burst() {
		return 1
	}
	return cost
}

// dueLocked predicts when a call leaves that has ahead units in front of it. If the
// gate is paused, that is as if it opened now.
func (s *Shaper) dueLocked(now time.Time, ahead, cost int64) time.Time {
	first := cost // of the call that leaves first
	if ahead > 0 {
		first = s.line.head.cost
	}
	opens := later(now, s.gate.openAt)
	return s.gate.foreseeLocked(s.sched, opens, first).Next(opens, ahead, cost)
}

// refuseLocked counts a refusal and returns its error.
func (s *Shaper) refuseLocked(reason error, cost int64, delay time.Duration) error {
	s.counts.refused++
	return &Refusal{Reason: reason, Cost: int(cost), Delay: delay, heldUntil: s.heldUntilLocked()}
}

// await blocks until the call has its one answer, or done ends the wait.
func (s *Shaper) await(ctx context.Context, done <-chan struct{}, c *call) error {
	for {
		select {
		case <-c.ready:
			return s.answered(c)
		case <-c.expired():
			// The head is due. The pass answers this call and all others that
			// are due, or arms the timer anew if the schedule has changed.
			s.dispatch()
			select {
			case <-c.ready: // as a rule; asked apart, as that is cheap
				return s.answered(c)
			default:
			}
		case <-done:
			if s.abandon(c) {
				return ctx.Err()
			}
			// The answer came first, and it stands.
			<-c.ready
			return s.answered(c)
		}
	}
}

// answered returns the answer of a call and lays the call into the pool.
func (s *Shaper) answered(c *call) (err error) {
	if c.refused {
		err = s.takeRefusal(c)
	}
	s.pool.put(c)
	return err
}

func (s *Shaper) takeRefusal(c *call) error {
	s.lock()
	defer s.unlock()
	err := s.refusals[c]
	delete(s.refusals, c)
	return err
}

// abandon takes a call whose caller gave up out of the line. It reports false if
// the call has been answered before.
func (s *Shaper) abandon(c *call) bool {
	s.lock()
	defer s.unlock()
	if !c.waiting {
		return false
	}
	wasHead := s.line.head == c
	now := s.time.now()
	s.withdrawLocked(c, now)
	s.pool.put(c)
	s.counts.cancelled++
	if wasHead {
		s.dispatchLocked(now)
	}
	return true
}
