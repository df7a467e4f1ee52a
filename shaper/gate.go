package shaper

import (
	"time"

	"github.com/sluice-go/sluice/scheduler"
)

// A gate stops the whole line, for some time or until further notice.
type gate struct {
	paused bool
	// openAt is when the latest hold ends or the latest pause ended: no call is due
	// before it.
	openAt time.Time
	// reopening: no call has left since openAt.
	reopening bool
}

func (g *gate) open(now time.Time) bool {
	return !g.paused && !g.openAt.After(now)
}

// passGateLocked is called when a call leaves. The first one behind a closed gate leaves
// at once and the next one T later: the time behind the gate has saved no burst up. Nor
// has a caller come back meanwhile that was late before.
func (s *Shaper) passGateLocked(cost int64) {
	if !s.gate.reopening {
		return
	}
	s.gate.reopening = false
	s.late.end()
	if saving, ok := s.sched.(scheduler.Forfeiter); ok {
		saving.Forfeit(s.gate.openAt, cost)
	}
}

// settleLocked closes the matter of a gate that has opened and that no call has passed
// since, once all that was forfeited would have been saved up again.
func (s *Shaper) settleLocked(now time.Time) {
	if !s.gate.reopening || !s.gate.open(now) {
		return
	}
	if at, ok := s.savedUpLocked(); ok && !at.After(now) {
		s.gate.reopening = false
		s.late.end() // a caller that was late before has not come back since
	}
}

// savedUpLocked returns from when on it makes no difference any more that units are
// forfeited as of when the gate opens. It returns false if a limit that saves units up
// cannot tell.
func (s *Shaper) savedUpLocked() (at time.Time, ok bool) {
	at = s.gate.openAt
	for _, limit := range s.schedules() {
		if saving, saves := limit.(scheduler.Forfeiter); saves {
			full, ok := forgettable(saving.Forfeited(s.gate.openAt, 1))
			if !ok {
				return time.Time{}, false
			}
			at = later(at, full)
		}
	}
	return at, true
}

// foreseeLocked returns the schedule as it will be when the gate opens, for
// predictions.
func (g *gate) foreseeLocked(s scheduler.Scheduler, opens time.Time, cost int64) scheduler.Scheduler {
	saving, ok := s.(scheduler.Forfeiter)
	switch {
	case !ok:
		return s
	case g.paused:
		return saving.Forfeited(opens, cost)
	case g.reopening:
		return saving.Forfeited(g.openAt, cost)
	}
	return s
}

// heldUntilLocked returns when the hold in force ends, by the user's clock; zero if
// there is none.
func (s *Shaper) heldUntilLocked() time.Time {
	// No call leaves while a hold is in force, so most refusals need not look at the
	// clock.
	if !s.gate.reopening {
		return time.Time{}
	}
	now := s.time.now()
	if !s.gate.openAt.After(now) {
		return time.Time{}
	}
	return s.time.wall(now, s.gate.openAt)
}

// Pause stops the line until [Shaper.Resume]. Calls go on to join it, within its
// bounds.
func (s *Shaper) Pause() {
	s.lock()
	defer s.unlock()
	now := s.time.now()
	s.unusedLocked(now)
	s.gate.paused = true
	s.dispatchLocked(now)
}

// Resume lifts a pause and a hold. The first call leaves at once, the next T
// later, whatever the burst.
func (s *Shaper) Resume() {
	s.lock()
	defer s.unlock()
	now := s.time.now()
	if s.gate.open(now) {
		return
	}
	s.unusedLocked(now)
	s.gate = gate{openAt: now, reopening: true}
	s.dispatchLocked(now)
}

// HoldUntil stops the line until t. A hold only ever moves forward: of two the
// later one stands. A waiting call that cannot leave before the deadline of its
// context any more is refused at once, with [ErrDeadline]. When the hold ends, the
// first call leaves at once and the next T later, whatever the burst.
func (s *Shaper) HoldUntil(t time.Time) {
	s.lock()
	defer s.unlock()
	now := s.time.now()
	until := s.time.at(t)
	if !until.After(later(now, s.gate.openAt)) {
		return
	}
	s.unusedLocked(now)
	s.gate.openAt, s.gate.reopening = until, true
	if shared, ok := s.sched.(scheduler.Holder); ok {
		shared.Hold(t)
	}
	s.dismissLateLocked(now)
	s.dispatchLocked(now)
}
