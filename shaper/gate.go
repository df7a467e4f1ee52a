package shaper

import (
	"time"

	"github.com/sluice-go/sluice/scheduler"
)

// A gate stops all calls under some limits, for some time or until further notice.
type gate struct {
	// openAt is when the latest hold ends or the latest pause ended: no call is due
	// before it.
	openAt time.Time
	told   time.Time // the end of that hold as HoldUntil was told; zero if it was not
	paused bool
	// reopening: no call has left since openAt.
	reopening bool
}

func (g *gate) open(now time.Time) bool {
	return !g.paused && !g.openAt.After(now)
}

// shut reports whether the gate is paused or held, or no call has left since it was.
func (g *gate) shut() bool { return g.paused || g.reopening }

// passGate is called when a call leaves. The first one behind a closed gate leaves at once
// and the next one T later: the time behind the gate has saved no burst up. It reports
// whether this is the first one.
func (l *limits) passGate(cost int64) bool {
	if !l.gate.reopening {
		return false
	}
	l.mine().gate.reopening = false
	if saving, ok := l.sched.(scheduler.Forfeiter); ok {
		saving.Forfeit(l.gate.openAt, cost)
	}
	return true
}

// settle closes the matter of a gate that has opened and that no call has passed since,
// once all that was forfeited would have been saved up again. It reports whether it has.
func (l *limits) settle(now time.Time) bool {
	if !l.gate.reopening || !l.gate.open(now) {
		return false
	}
	at, ok := l.savedUp()
	if !ok || at.After(now) {
		return false
	}
	l.mine().gate.reopening = false
	return true
}

// savedUp returns from when on it makes no difference any more that units are forfeited as
// of when the gate opens. It returns false if a limit that saves units up cannot tell.
func (l *limits) savedUp() (at time.Time, ok bool) {
	at = l.gate.openAt
	for _, limit := range l.schedules() {
		if saving, saves := limit.(scheduler.Forfeiter); saves {
			full, ok := forgettable(saving.Forfeited(l.gate.openAt, 1))
			if !ok {
				return time.Time{}, false
			}
			at = later(at, full)
		}
	}
	return at, true
}

// foresee returns the schedule as it will be when the gate opens, for predictions.
func (g *gate) foresee(s scheduler.Scheduler, opens time.Time, cost int64) scheduler.Scheduler {
	if !g.shut() {
		return s
	}
	saving, ok := s.(scheduler.Forfeiter)
	switch {
	case !ok:
		return s
	case g.paused:
		return saving.Forfeited(opens, cost)
	}
	return saving.Forfeited(g.openAt, cost)
}

// heldUntilLocked returns when the latest hold in force ends, by the user's clock; zero if
// there is none.
func (f *flow) heldUntilLocked() time.Time {
	// No call leaves while a hold is in force, so most refusals need not look at the
	// clock.
	l := f.line
	reopening := l.gate.reopening
	openAt := l.gate.openAt
	if f.own != nil && f.own.gate.reopening {
		reopening = true
		openAt = later(openAt, f.own.gate.openAt)
	}
	if !reopening {
		return time.Time{}
	}
	now := l.time.now()
	if !openAt.After(now) {
		return time.Time{}
	}
	return l.time.wall(now, openAt)
}

// Pause stops the line until [Shaper.Resume]. Calls go on to join it, within its
// bounds.
func (s *Shaper) Pause() { s.own.pause() }

func (f *flow) pause() {
	l := f.lock()
	defer l.unlock()
	now := l.time.now()
	l.passLocked(now)
	f.limits().mine().gate.paused = true
	f.changedLocked(now)
}

// Resume lifts a pause and a hold. The first call leaves at once, the next T
// later, whatever the burst.
func (s *Shaper) Resume() { s.own.resume() }

func (f *flow) resume() {
	l := f.lock()
	defer l.unlock()
	now := l.time.now()
	limits := f.limits()
	if limits.gate.open(now) {
		return
	}
	l.passLocked(now)
	limits.mine().gate = gate{openAt: now, reopening: true}
	f.changedLocked(now)
}

// HoldUntil stops the line until t. A hold only ever moves forward: of two the
// later one stands. A waiting call that cannot leave before the deadline of its
// context any more is refused at once, with [ErrDeadline]. When the hold ends, the
// first call leaves at once and the next T later, whatever the burst.
func (s *Shaper) HoldUntil(t time.Time) { s.own.holdUntil(t) }

func (f *flow) holdUntil(t time.Time) {
	l := f.lock()
	defer l.unlock()
	now := l.time.now()
	until := l.time.at(t)
	limits := f.limits()
	if !until.After(later(now, limits.gate.openAt)) {
		return
	}
	l.passLocked(now)
	gate := &limits.mine().gate
	gate.openAt, gate.told, gate.reopening = until, t, true
	if shared, ok := limits.sched.(scheduler.Holder); ok {
		shared.Hold(t)
	}
	f.dismissLateLocked(now)
	f.changedLocked(now)
}
