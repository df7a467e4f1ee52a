package shaper

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice/scheduler"
)

// An express lets calls leave without the lock while there is nothing to it but the
// pace: nobody waits, nothing is held and no other limit applies. TAT is in a single
// word then, and a call leaves by changing it. Whoever takes the lock shuts the lane
// first and takes TAT back into the schedule, so under the lock all is as if there were
// no lane.
type express struct {
	lane atomic.Pointer[lane] // nil: none yet, or none possible
	_    [56]byte             // what every call reads is not on the cache line of what each writes
	left atomic.Int64         // the calls that left this way
	more atomic.Int64         // their units beyond one each
}

// A lane is for one rate and one origin.
type lane struct {
	tat    atomic.Int64 // shut, or TAT in ticks since the origin
	ticks  scheduler.Ticks
	burst  int64
	origin time.Duration // since the epoch of the Shaper
	opened int64         // TAT when it was opened; under mu
	units  int64         // of the express, then; under mu
}

// shut is no TAT: it sends everybody to the lock.
const shut = math.MaxInt64

// leave reports whether a call has left. If not, the lock has the answer.
func (e *express) leave(read time.Duration, cost int64) bool {
	l := e.lane.Load()
	if l == nil || cost > l.burst {
		return false
	}
	for {
		tat := l.tat.Load()
		if tat == shut {
			return false
		}
		after, ok := l.ticks.Leave(tat, read-l.origin, cost)
		if !ok {
			return false
		}
		// TAT only moves on, or returns from shut; a lane's ticks never change. So an
		// unchanged word is an unchanged schedule. It is swapped even if it stays as
		// it is: it might have been shut.
		if l.tat.CompareAndSwap(tat, after) {
			e.left.Add(1)
			if cost > 1 {
				e.more.Add(cost - 1)
			}
			return true
		}
	}
}

func (e *express) units() int64 { return e.left.Load() + e.more.Load() }

// lock takes the lock and the schedule.
func (s *Shaper) lock() {
	s.made()
	s.mu.Lock()
	if !s.laneOpen {
		return
	}
	s.laneOpen = false
	l := s.express.lane.Load()
	tat := l.tat.Swap(shut)
	if tat == l.opened {
		return // no call has left
	}
	s.debt = 1 // after calls that cost no more than the burst
	before := s.gcra.TAT()
	l.ticks.Unpack(s.gcra, s.time.epoch.Add(l.origin), tat)
	units := s.express.units()
	s.unusedLaneLocked(before, units-l.units)
}

// unlock opens the lane if it may be open, and returns the lock.
func (s *Shaper) unlock() {
	if s.gcra != nil && s.time.clock == nil && s.line.head == nil && s.late.by == 0 && s.life.state == open &&
		!s.gate.paused && !s.gate.reopening {
		s.openLaneLocked()
	}
	s.mu.Unlock()
}

// openLaneLocked puts TAT into the lane. A lane that does not suit any more, because the
// rate has changed or its origin is long past, is left shut and replaced.
func (s *Shaper) openLaneLocked() {
	l := s.express.lane.Load()
	if l != nil && s.time.elapsed-l.origin <= l.ticks.Horizon()/2 {
		if tat, ok := l.ticks.Pack(s.gcra, s.time.epoch.Add(l.origin)); ok {
			s.enterLaneLocked(l, tat)
			return
		}
	}
	ticks, ok := s.gcra.Ticks()
	if !ok {
		return
	}
	tat, ok := ticks.Pack(s.gcra, s.time.epoch.Add(s.time.elapsed))
	if !ok {
		return
	}
	l = &lane{ticks: ticks, burst: s.gcra.Burst(), origin: s.time.elapsed}
	s.enterLaneLocked(l, tat)
	s.express.lane.Store(l)
}

func (s *Shaper) enterLaneLocked(l *lane, tat int64) {
	l.opened, l.units = tat, s.express.units()
	l.tat.Store(tat)
	s.laneOpen = true
}
