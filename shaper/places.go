package shaper

import (
	"context"
	"fmt"
	"time"
)

// places are what calls in flight occupy, from when they leave until they are released.
type places struct {
	most  int64 // 0: no bound
	taken int64
	// freedAt is when one became free after all had been taken: no call that needs a
	// place was due before.
	freedAt time.Time
}

func (p *places) free() bool { return p.most == 0 || p.taken < p.most }

// Acquire waits as [Shaper.WaitN] does. The call counts as in flight then, until
// [Shaper.Release]. With [WithMaxInFlight] it leaves only when fewer are in flight than
// may be; those behind it wait as well, whatever they ask for. How long that takes cannot
// be told, so a prediction, and a refusal for a deadline, is as if a place became free
// at once.
//
// If Acquire returns nil, Release must be called exactly once.
func (s *Shaper) Acquire(ctx context.Context, cost int) error {
	return s.own.wait(ctx, ctx.Err(), s.line.time.since(), ask{cost: int64(cost), place: true})
}

// Release says that a call is no more in flight. Without one it panics.
func (s *Shaper) Release() { s.own.release() }

// release gives back a place of the key and of the line.
func (f *flow) release() {
	l := f.lock()
	defer l.unlock()
	if f.limits().places.taken == 0 {
		panic("shaper: Release without Acquire")
	}
	now := l.time.now()
	freed := l.places.put(now)
	if f.own != nil {
		freed = f.putOwnLocked(now) || freed
	}
	if freed {
		l.dispatchLocked(now)
	}
}

// putOwnLocked gives back a place of the key and of its Group. It reports whether that makes a
// difference.
func (f *flow) putOwnLocked(now time.Time) bool {
	l := f.line
	l.passLocked(now)
	ofKey := f.own.places.put(now)
	if ofKey { // before there is a place of the Group: it has no better claim to that than others
		l.placeLocked(f, now, changed)
	}
	ofGroup := f.party.places.put(now)
	if ofGroup {
		l.admitNextLocked(f.party, nil, now)
	}
	return ofKey || ofGroup
}

// put gives a place back. It reports whether none was free before.
func (p *places) put(now time.Time) bool {
	full := !p.free()
	p.taken--
	if full {
		p.freedAt = now
	}
	return full
}

// SetMaxInFlight changes the bound of [WithMaxInFlight] at once, also for the calls that
// wait. Calls in flight beyond a lower bound stay; the next one leaves when there is a
// place. A bound below 1 is an error that changes nothing.
func (s *Shaper) SetMaxInFlight(n int) error {
	s.made()
	if err := checkInFlight(n); err != nil {
		return err
	}
	s.own.boundPlaces(int64(n))
	return nil
}

// MaxInFlight returns the bound of [WithMaxInFlight], 0 if there is none.
func (s *Shaper) MaxInFlight() int {
	s.made()
	return int(s.line.inFlight.Load())
}

func checkInFlight(n int) error {
	if n < 1 {
		return fmt.Errorf("shaper: %d in flight: must be at least 1", n)
	}
	return nil
}

// adoptPlaces is boundPlaces for a flow that has no calls. It may be called under the lock of a
// shard, as no other call of the line leaves by it.
func (f *flow) adoptPlaces(most int64) {
	l := f.lock()
	defer l.unlock()
	f.setPlacesLocked(most)
}

func (f *flow) maxInFlight() int64 {
	l := f.lock()
	defer l.unlock()
	return f.limits().places.most
}

func (f *flow) setPlacesLocked(most int64) {
	if limits := f.limits(); limits.places.most != most {
		limits.mine().places.most = most
	}
	if f.own == nil {
		f.line.inFlight.Store(most)
	}
}

func (f *flow) boundPlaces(most int64) {
	l := f.lock()
	defer l.unlock()
	limits := f.limits()
	full := !limits.places.free()
	now := l.time.now()
	l.passLocked(now)
	f.setPlacesLocked(most)
	if full && limits.places.free() {
		limits.mine().places.freedAt = now
	}
	f.changedLocked(now)
}
