package shaper

import (
	"time"

	"github.com/sluice-go/sluice/scheduler"
)

// KeyState is what [Group.Range] and [Group.Longest] tell about a key.
type KeyState struct {
	Rate      scheduler.Rate // the rate that it has now
	Weight    int            // see WithWeights; 1 without
	Waiting   int64          // calls that wait
	Units     int64          // the units of those calls
	InFlight  int64          // calls of Acquire that are not released yet
	Oldest    time.Duration  // as in Stats
	WaitsFor  Cause          // what the call waits for that is next of the key; empty if none waits
	NextDue   time.Time      // when that is over, as in Stats; other keys may put it off
	Paused    bool           // the key, not the account
	HeldUntil time.Time      // when the hold ends of the key or of the account; zero if none is in force
}

// A Cause is what a call waits for. It is a short word that stays as it is from version to
// version.
type Cause string

// The causes. Of several the first one in this order is told.
const (
	ForResume      Cause = "resume"        // its key, or the account, is paused
	ForPlace       Cause = "place"         // too many calls are in flight
	ForHold        Cause = "hold"          // its key, or the account, is held
	ForUnits       Cause = "units"         // the limits of its key; of a Shaper, or a Group on its own, all limits
	ForTurn        Cause = "turn"          // calls of other keys are next
	ForUnitsOfLine Cause = "account_units" // the limits of the account that its key is under
)

// tell tells of the flow what a KeyState does, and what its line has counted if that is its
// own.
func (f *flow) tell() (st KeyState, of counts) {
	l := f.lock()
	defer l.unlock()
	now := l.time.now()
	l.passLocked(now)
	limits := f.limits()
	if f.own == nil {
		of = l.countsLocked()
	}
	st = KeyState{
		Rate:      rateOf(limits.pacer()),
		Weight:    int(f.weight),
		Waiting:   int64(f.calls.len),
		Units:     f.calls.units,
		InFlight:  limits.places.taken,
		Paused:    limits.gate.paused,
		HeldUntil: f.heldUntilLocked(),
	}
	if f.calls.head != nil {
		st.Oldest = f.oldestLocked(now)
		var due time.Time
		if st.WaitsFor, due = f.waitsForLocked(now); !due.IsZero() {
			st.NextDue = l.time.wall(now, due)
		}
	}
	return st, of
}

// waitsForLocked returns what the head of the flow waits for, and until when, as far as its
// own calls decide; zero if that is no instant.
func (f *flow) waitsForLocked(now time.Time) (why Cause, until time.Time) {
	l, place := f.line, f.calls.head.place
	switch {
	case l.gate.paused || f.limits().gate.paused:
		return ForResume, until
	case l.stand(place) || f.limits().stand(place):
		return ForPlace, until
	}
	until = f.nextLocked(f.earliestLocked(now, place), f.calls.head.cost)
	if l.head == f {
		until = l.nextDue
	}
	switch {
	case !l.gate.open(now) || !f.limits().gate.open(now):
		return ForHold, until
	case f.own == nil && l.keys == nil || f.state == blocked:
		return ForUnits, until
	case l.head != f:
		return ForTurn, until
	}
	return ForUnitsOfLine, until
}
