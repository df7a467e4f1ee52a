package shaper

import (
	"context"
	"time"
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
	read := s.line.time.since()
	if dead == nil && s.line.fast.leave(read, 1) {
		return nil
	}
	return s.own.wait(ctx, dead, read, ask{cost: 1})
}

// WaitN is [Shaper.Wait] for a call of the given cost in units. A cost below 1, or
// above what the schedule can ever let leave, is refused with [ErrCost].
//
// A cost above the burst leaves when the bucket is full and is paid off
// afterwards, so it wedges nothing.
func (s *Shaper) WaitN(ctx context.Context, cost int) error {
	dead := ctx.Err()
	read := s.line.time.since()
	if dead == nil && s.line.fast.leave(read, int64(cost)) {
		return nil
	}
	return s.own.wait(ctx, dead, read, ask{cost: int64(cost)})
}

// An ask is what a call wants that arrives.
type ask struct {
	cost     int64
	place    bool
	class    uint8
	deadline time.Time   // zero: none
	arrived  time.Time   // that counts for its place in the line; zero: when it arrives
	weight   int64       // that the key has from now on; 0: as it is
	done     func(error) // nil: a caller waits
	taken    *bool       // if not nil, set when the call waits or has left

	departure *Departure // that may be settled when the call has left; nil: it is final
}

func (a *ask) take() {
	if a.taken != nil {
		*a.taken = true
	}
}

// wait is the rest of WaitN. A context is its user's code, so it is asked while no lock
// is held.
func (f *flow) wait(ctx context.Context, dead error, read time.Duration, a ask) error {
	var done <-chan struct{}
	if dead == nil && f.line != nil {
		a.deadline = deadlineOf(ctx)
		a.class = f.calls.rule.classOf(ctx)
		a.arrived = arrivalOf(ctx)
		done = ctx.Done()
	}
	t, err := f.enter(dead, read, a)
	if t.call == nil {
		return err
	}
	return f.await(ctx, done, t)
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

// A ticket is a call that has begun to wait. Once that is over it may become another one.
type ticket struct {
	call *call
	seq  uint32
}

// waits reports whether the call still waits. It is asked under the lock of its line.
func (t ticket) waits() bool { return t.call.waiting && t.call.seq == t.seq }

// enter is for a call that arrives. It returns a ticket if the call waits now, and none if it
// has left at once or is turned away with an error.
func (f *flow) enter(dead error, read time.Duration, a ask) (t ticket, err error) {
	l := f.lock()
	defer l.unlock()
	f.countLocked(submitted, 0)
	if dead != nil {
		f.countLocked(cancelled, 0)
		return t, dead
	}
	if a.departure != nil {
		if err := f.settlesLocked(); err != nil {
			f.countLocked(refused, 0)
			return t, err
		}
	}
	if reason := f.admissibleLocked(a.cost); reason != nil {
		return t, f.refuseLocked(reason, a.cost, a.class, 0)
	}
	now := l.arriveLocked(read)
	f.weighLocked(a.weight)
	if a.done != nil && !a.deadline.IsZero() && !l.time.at(a.deadline).After(now) {
		return t, f.refuseLocked(ErrDeadline, a.cost, a.class, 0) // no context has told so before
	}
	if f.leaveLocked(now, a) {
		return t, nil
	}
	// The clock was read before the lock was free, which may be long ago. A caller that has to
	// wait can afford to read it again.
	if a.done != nil {
		return f.joinLocked(now, a)
	}
	if present := l.arriveLocked(l.time.since()); present.After(now) {
		now = present
		if f.leaveLocked(now, a) {
			return t, nil
		}
	}
	return f.joinLocked(now, a)
}

// arriveLocked returns the present for a newcomer. If the timer of the head is late,
// every call that is due leaves now and not behind the newcomer's back.
func (l *line) arriveLocked(read time.Duration) time.Time {
	now := l.time.nowLocked(read)
	l.passLocked(now)
	if f := l.head; l.freed || f != nil && (!l.nextDue.After(now) || f.mayCloseLocked()) {
		l.dispatchLocked(now)
	}
	return now
}

// admissibleLocked returns the reason for which a call is refused whatever the
// time, or nil.
func (f *flow) admissibleLocked(cost int64) error {
	switch {
	case f.line.life.state != open || f.party != nil && f.party.life.state != open:
		return ErrClosed
	case cost < 1 || cost > f.line.sched.MaxCost() || f.own != nil && cost > f.own.sched.MaxCost():
		return ErrCost
	}
	return f.refusalLocked()
}

// leaveLocked lets a newcomer leave if no call that its key allows waits, nothing is held
// and it is due.
func (f *flow) leaveLocked(now time.Time, a ask) bool {
	l := f.line
	if l.head != nil || f.calls.head != nil || !f.openLocked(now, a.place) || f.nextLocked(now, a.cost).After(now) {
		return false
	}
	f.departLocked(f.claimLocked(now, a.cost, a.place), now, a.cost, a.place, a.departure)
	l.passedByLocked(f, a.cost)
	a.take()
	if a.done != nil {
		l.answers.add(f, a.done, nil, a.place)
	}
	return true
}

// claimLocked returns since when a newcomer is due that need not wait: the present, or the
// end of the wait that it would have had, had its caller not been woken late before. If a
// call could have left between the latest departure and then, the line had run dry: it has
// no such claim, and the calls after it have none either.
func (f *flow) claimLocked(now time.Time, cost int64, place bool) time.Time {
	l := f.line
	if f.own != nil {
		f.own.settle(now)
	}
	held := f.own != nil && f.own.gate.reopening
	if l.lag > 0 && !l.gate.reopening && !held {
		since := f.earliestLocked(l.since, place)
		due := f.nextLocked(since, cost)
		if due.After(later(since, now.Add(-time.Duration(l.lag)))) {
			return due
		}
	}
	if !held {
		l.lag.end()
	}
	return now
}

// joinLocked has a newcomer join the line, if nothing speaks against the wait that it would have,
// and there is room.
func (f *flow) joinLocked(now time.Time, a ask) (t ticket, err error) {
	l := f.line
	arrived := l.arrivalLocked(now, a.arrived)
	deadline, reason := f.suitLocked(now, arrived, a)
	if reason == nil && l.keys != nil && !f.roomLocked(now) {
		reason = ErrQueueFull
	}
	if reason != nil {
		due := f.foreseeLocked(now, f.calls.ahead(a.class, arrived), a.cost)
		return t, f.refuseLocked(reason, a.cost, a.class, due.Sub(now))
	}
	c := l.takeLocked(a.done)
	c.cost, c.place, c.class, c.arrived, c.deadline = a.cost, a.place, a.class, arrived, deadline
	a.take()
	if arrived < now.Sub(l.time.epoch) {
		// It was not late before now, nor does any call wait that was: what was due has left.
		l.passed(now)
	}
	l.unsettled.awaitLocked(c, a.departure)
	f.pushLocked(c)
	t = ticket{c, c.seq}
	l.joinedLocked(f, c, now)
	return t, nil
}

// takeLocked returns a call for a newcomer.
func (l *line) takeLocked(done func(error)) *call {
	if done != nil {
		return l.spare.take(done)
	}
	return l.pool.take(l.len)
}

// roomLocked reports whether a newcomer has room among other keys. It may make some.
func (f *flow) roomLocked(now time.Time) bool {
	l := f.line
	if f.apart() {
		return f.party.waiting < f.party.room
	}
	return !l.crowded(now, l.len-l.apart, l.capacity) || l.makeRoomLocked(f, now)
}

// suitLocked returns the reason for which a newcomer is refused, if there is one beside the room
// of the line, and its deadline since the epoch.
func (f *flow) suitLocked(now time.Time, arrived time.Duration, a ask) (deadline time.Duration, reason error) {
	l := f.line
	most := l.bounds
	if p := f.party; p != nil {
		most.maxDelay, most.maxBacklog = min(most.maxDelay, p.maxDelay), min(most.maxBacklog, p.maxBacklog)
		if p.capacity > 0 && f.own.crowded(now, int(f.calls.len), p.capacity) {
			return 0, ErrQueueFull
		}
	} else if l.keys == nil && l.crowded(now, l.len, l.capacity) {
		return 0, ErrQueueFull // the first reason, where no other call can make room
	}
	if !l.fits(a.cost) {
		return 0, ErrQueueFull
	}
	plain := l.gcra != nil && (f.own == nil || f.own.gcra != nil)
	if plain && a.deadline.IsZero() && most.maxDelay == never && most.maxBacklog == never {
		return noDeadline, nil // under a GCRA every call leaves at last
	}
	deadline = noDeadline
	if !a.deadline.IsZero() {
		deadline = l.time.at(a.deadline).Sub(l.time.epoch)
	}
	ahead := f.calls.ahead(a.class, arrived)
	due := f.foreseeLocked(now, ahead, a.cost)
	backlog := f.backlogLocked(now, due, ahead, a.cost).Sub(now)
	switch {
	case backlog > most.maxBacklog:
		return 0, ErrQueueFull
	case max(due.Sub(now), 1) > most.maxDelay:
		// Behind a pause, or for want of a place in flight, it waits even if it is due: how
		// long, nothing can tell.
		return 0, ErrMaxDelay
	case due.Sub(l.time.epoch) >= deadline && deadline != noDeadline:
		return 0, ErrDeadline
	case !plain && backlog == never:
		return 0, ErrQueueFull
	}
	return deadline, nil
}

// refuseLocked counts a refusal and returns its error.
func (f *flow) refuseLocked(reason error, cost int64, class uint8, delay time.Duration) error {
	f.countLocked(refused, 0)
	return &Refusal{Reason: reason, Cost: int(cost), Class: int(class), Delay: delay, heldUntil: f.heldUntilLocked()}
}

// await blocks until the call has its one answer, or done ends the wait.
func (f *flow) await(ctx context.Context, done <-chan struct{}, t ticket) error {
	c := t.call
	ready := c.ready()
	for {
		select {
		case <-ready:
			return f.answered(c)
		case <-c.expired():
			// The head is due. The pass answers this call and all others that
			// are due, or arms the timer anew if the schedule has changed.
			f.line.dispatch()
			select {
			case <-ready: // as a rule; asked apart, as that is cheap
				return f.answered(c)
			default:
			}
		case <-done:
			if f.abandon(t) {
				return ctx.Err()
			}
			// The answer came first, and it stands.
			<-ready
			return f.answered(c)
		}
	}
}

// answered returns the answer of a call and lays the call into the pool.
func (f *flow) answered(c *call) (err error) {
	if c.refused {
		err = f.line.takeRefusal(c)
	}
	f.line.pool.put(c)
	return err
}

func (l *line) takeRefusal(c *call) error {
	l.lock()
	defer l.unlock()
	err := l.refusals[c]
	delete(l.refusals, c)
	return err
}

// abandon takes a call whose caller gave up out of the line. It reports false if
// the call has been answered before.
func (f *flow) abandon(t ticket) bool {
	l := f.lock()
	defer l.unlock()
	if !t.waits() {
		return false
	}
	c, now := t.call, l.time.now()
	wasHead := l.head == f && f.calls.head == c
	f.withdrawLocked(c, now)
	if c.ready() != nil {
		l.pool.put(c)
	} else {
		l.spare.put(c)
	}
	f.countLocked(cancelled, 0)
	if wasHead || l.keys != nil {
		l.dispatchLocked(now)
	}
	return true
}
