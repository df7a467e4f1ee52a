package redis

import (
	"context"
	"io"
	"math"
	"sync"
	"time"

	"github.com/sluice-go/sluice/scheduler"
)

// A pump gets units from the store for the line of a process, in steps, one at a time. It is what
// a Schedule and a Quota have in common; what they have in hand, how they ask for more and when
// it may be used is the hand's.
type pump struct {
	hand   hand
	link   *link
	lane   *lane
	key    string
	policy Policy
	config *config
	most   int64 // MaxCost
	// tellsAlone: what left alone is told once the store is back.
	tellsAlone bool

	mu sync.Mutex
	// Guarded by mu, and so is the hand:
	again    func()
	want     want
	charged  []tagged[int64] // what has left without being asked for, and is yet to be told
	chargeAt time.Time       // when the latest of it left
	sparing  time.Time       // since when there is more in hand than waits
	stepping bool
	timer    *time.Timer // looks what is to be done, or nil
	timerAt  time.Time
	standing standing
	living   int64 // processes that share the limit, as the store told last
	rejoins  bool  // the store was away, and the next step is the first one since
	share    scheduler.Scheduler
	counts   Stats
	closed   bool
}

// want is what waits, as the line has told.
type want struct {
	units, cost    int64
	from, deadline time.Time
}

// A hand is what a pump has got, and how it asks for more. Methods are called under the pump's
// lock, but for the function that send returns.
type hand interface {
	// have returns when a call may leave with what is in hand, not before t, if it can.
	have(t time.Time, n int64) (at time.Time, ok bool)
	// guess returns a lower bound of when a call may leave that is yet to get units.
	guess(t, now time.Time, ahead, n int64) time.Time
	// use takes for units that leave at t what it can.
	use(t time.Time, n int64) (used int64)
	// inHand returns how many units it has.
	inHand() int64
	// expire lets go what can be used no more, and returns how much that was.
	expire(now time.Time) int64
	// due reports whether a step is due, and if not when it may be: zero if not by itself.
	due(now time.Time, w want) (step bool, look time.Time)
	// send returns what sends the next step, and takes in what it brings.
	send(now time.Time, w want) (send func(context.Context) error, accept func(sent, received time.Time))
	// local returns the limit of a process on its own, of so many, or nil if that leaves nothing.
	local(processes int64) scheduler.Scheduler
	// freshAt returns when what is known beside the hand matters no more.
	freshAt() time.Time
}

// spareAfter is how long there has to be more in hand than waits until it goes back: callers that
// leave come back in a moment.
const spareAfter = 2 * time.Millisecond

// Stats tells what a [Schedule] or a [Quota] has done.
type Stats struct {
	Steps    int64 // requests, failed ones included
	Failed   int64 // those that had no answer
	Reserved int64 // units
	Used     int64 // units that left with what was reserved
	Missed   int64 // units that were reserved, and passed unused
	Returned int64 // units that were handed back
	Alone    int64 // units that left by the policy, without Redis
	InHand   int64 // units that are reserved now
}

func (p *pump) mustBeMade() {
	if p.hand == nil {
		panic(zeroLimit)
	}
}

func (p *pump) shared() {}

// MaxCost implements [scheduler.Scheduler].
func (p *pump) MaxCost() int64 {
	p.mustBeMade()
	return p.most
}

// Notify implements [scheduler.Notifier].
func (p *pump) Notify(again func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.again = again
}

// Stats returns a snapshot.
func (p *pump) Stats() Stats {
	p.mustBeMade()
	p.mu.Lock()
	defer p.mu.Unlock()
	counts := p.counts
	counts.InHand = p.hand.inHand()
	return counts
}

// Next implements [scheduler.Scheduler]. Of calls without a slot it tells a lower bound.
func (p *pump) Next(t time.Time, ahead, n int64) time.Time {
	p.mustBeMade()
	ahead, n = max(ahead, 0), max(n, 1)
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.config.now()
	need := saturatingSum(ahead, n)
	switch {
	case n > p.most || p.closed:
		return t.Add(never)
	case ahead == 0:
		if at, ok := p.hand.have(t, n); ok {
			return at
		}
	case p.hand.inHand() >= need && need <= p.most:
		return p.hand.guess(t, t, ahead, n)
	}
	if p.standing.err != nil {
		switch {
		case p.policy.kind == open && p.standing.seen:
			return t
		case p.policy.kind == local && p.share != nil:
			return p.share.Next(t, max(ahead-p.hand.inHand(), 0), n)
		}
		// Calls are refused, and a line that has not heard of it asks again.
		return later(t, p.config.soon(now, probeEvery))
	}
	return later(p.hand.guess(t, now, ahead, n), p.config.soon(now, max(p.link.roundTrip(), time.Millisecond)))
}

// Commit implements [scheduler.Scheduler].
func (p *pump) Commit(due, left time.Time, n int64) {
	p.mustBeMade()
	n = max(n, 1)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.want.units = max(p.want.units-n, 0)
	used := p.hand.use(left, n)
	p.counts.Used += used
	if n -= used; n == 0 {
		return
	}
	if p.standing.err != nil && (p.policy.kind == open || p.policy.kind == local && p.share != nil) {
		p.counts.Alone += n
		if p.policy.kind == local {
			p.share.Commit(due, left, n)
		}
		if !p.tellsAlone {
			return
		}
	}
	// It has left without asking, or the answer has changed since. It counts.
	p.chargeLocked(n)
	p.planLocked(p.config.now())
}

func (p *pump) chargeLocked(n int64) {
	p.chargeAt = p.config.now()
	tag := p.link.number.Load() + 1 // no request that is under way has it
	if last := len(p.charged) - 1; last >= 0 && p.charged[last].tag == tag {
		p.charged[last].is = min(saturatingSum(p.charged[last].is, n), p.most)
		return
	}
	p.charged = append(p.charged, tagged[int64]{tag, min(n, p.most)})
}

// Demand implements [scheduler.Demander].
func (p *pump) Demand(from time.Time, units, cost int64, deadline time.Time) {
	p.mustBeMade()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	had := p.want.units > 0
	p.want = want{units, cost, from, deadline}
	if had != (units > 0) {
		p.link.watch(p, units > 0)
	}
	p.planLocked(p.config.now())
}

// Refusal implements [scheduler.Refuser]: with [FailClosed], and before the store was ever seen
// with any policy that would set no bound, nothing leaves while it is away.
func (p *pump) Refusal() error {
	p.mustBeMade()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return ErrClosed
	}
	p.lookAtStoreLocked(p.config.now())
	switch err := p.standing.err; {
	case err == nil, p.policy.kind == open && p.standing.seen, p.policy.kind == local && p.share != nil:
		return nil
	default:
		// Calls that are refused tell no demand; so the store is looked for now.
		p.planLocked(p.config.now())
		return err
	}
}

// Close hands back what is in hand, without waiting for it, and lets nothing leave any more: a
// line refuses with [ErrClosed] what comes. It always returns nil. Closing twice is fine.
func (p *pump) Close() error {
	p.mustBeMade()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil
	}
	p.closed, p.want = true, want{}
	p.link.watch(p, false)
	p.planLocked(p.config.now())
	return nil
}

// FreshAt implements [scheduler.Forgettable]: all that it knows is in the store, once nothing is
// in hand or under way.
func (p *pump) FreshAt() (time.Time, bool) {
	p.mustBeMade()
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.config.now()
	at := p.hand.freshAt()
	if f, ok := p.share.(scheduler.Forgettable); ok {
		fresh, _ := f.FreshAt()
		at = later(at, fresh)
	}
	if p.stepping || p.hand.inHand() > 0 || len(p.charged) > 0 {
		at = later(at, now.Add(p.config.horizon)) // and asked again then
	}
	return at, true
}

// storeChanged is called when the store has gone or come back.
func (p *pump) storeChanged() {
	p.mu.Lock()
	now := p.config.now()
	p.lookAtStoreLocked(now)
	p.planLocked(now)
	again := p.again
	p.mu.Unlock()
	if again != nil {
		again()
	}
}

// lookAtStoreLocked notices that the store has gone or come back.
func (p *pump) lookAtStoreLocked(now time.Time) {
	was := p.standing
	p.standing = p.link.standing()
	p.rejoins = p.rejoins || was.err != nil && p.standing.up && p.policy.kind == local
	if was.err == nil && p.standing.err != nil && p.policy.kind == local {
		if n := p.policy.processes(p.living); n > 0 {
			p.share = p.hand.local(n)
		}
	}
}

// wantLocked returns what waits that could leave soon, and when to look if it could later.
func (p *pump) wantLocked(now time.Time) (w want, look time.Time) {
	// What may not leave for long, as another limit or a hold is in its way, needs nothing yet.
	horizon := p.config.reach(p.link)
	if w = p.want; w.from.Sub(now) > horizon {
		return want{}, w.from.Add(-horizon)
	}
	return w, time.Time{}
}

// planLocked begins a step if one is due, and sees to it that this is looked at again.
func (p *pump) planLocked(now time.Time) {
	if p.stepping {
		return // its end looks what is to be done
	}
	p.lookAtStoreLocked(now)
	p.counts.Missed += p.hand.expire(now)
	step, look := p.dueLocked(now)
	if step {
		p.stepping = true
		p.setTimerLocked(now, time.Time{})
		go p.run()
		return
	}
	p.setTimerLocked(now, look)
}

func (p *pump) dueLocked(now time.Time) (step bool, look time.Time) {
	w, look := p.wantLocked(now)
	step, by := p.hand.due(now, w)
	step = step || len(p.charged) > 0
	spare := p.spareLocked(now, w)
	if spare > 0 && now.Sub(p.sparing) >= spareAfter || p.closed && p.hand.inHand() > 0 {
		step = true
	} else if spare > 0 {
		by = sooner(by, p.sparing.Add(spareAfter))
	}
	look = sooner(look, by)
	if p.standing.up || !step && p.want.units == 0 && p.standing.err == nil {
		return step, look
	}
	// It is looked for while calls come, and to tell it what it has to be told.
	if p.closed {
		return false, time.Time{}
	}
	if p.link.mayProbe() {
		return true, time.Time{}
	}
	if !step && p.want.units == 0 {
		return false, look
	}
	return false, now.Add(probeEvery / 2)
}

// spareLocked returns how much more there is in hand than waits.
func (p *pump) spareLocked(now time.Time, w want) int64 {
	spare := p.hand.inHand() - w.units
	switch {
	case spare <= 0:
		p.sparing = time.Time{}
		return 0
	case p.sparing.IsZero():
		p.sparing = now
	}
	return spare
}

func (p *pump) setTimerLocked(now, at time.Time) {
	if p.timer != nil && !at.Equal(p.timerAt) {
		p.timer.Stop()
		p.timer = nil
	}
	if p.timer == nil && !at.IsZero() {
		p.timerAt = at
		p.timer = time.AfterFunc(at.Sub(now), p.wake)
	}
}

func (p *pump) wake() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.timer = nil
	p.planLocked(p.config.now())
}

// run takes steps until none is due.
func (p *pump) run() {
	p.mu.Lock()
	for first := true; ; first = false {
		now := p.config.now()
		p.lookAtStoreLocked(now)
		p.counts.Missed += p.hand.expire(now)
		step, look := first, time.Time{}
		if !first {
			step, look = p.dueLocked(now)
		}
		if !step {
			p.stepping = false
			p.setTimerLocked(now, look)
			p.mu.Unlock()
			return
		}
		w, _ := p.wantLocked(now)
		send, accept := p.hand.send(now, w)
		p.counts.Steps++
		p.mu.Unlock()
		err := send(context.Background())
		received := p.config.now()
		p.mu.Lock()
		if err != nil {
			p.counts.Failed++
		} else {
			accept(now, received)
		}
		p.mu.Unlock()
		p.link.answered(err)
		p.mu.Lock()
		p.lookAtStoreLocked(received)
		again := p.again
		p.mu.Unlock()
		if again != nil {
			again()
		}
		p.mu.Lock()
	}
}

var _ io.Closer = (*pump)(nil)

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// sooner returns the earlier one of those that are not zero.
func sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

func saturatingSum(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
