package shaper

import (
	"time"

	"github.com/sluice-go/sluice/scheduler"
)

// GroupStats is a snapshot of a [Group], each key of which is told as it was at one
// moment. In each
//
//	Submitted = Left + Cancelled + Refused + Waiting
//
// The counts are of calls since the Group was made, but for those whose name says units;
// forgotten keys and refused ones are included.
type GroupStats struct {
	Keys      int   // keys that are remembered
	Submitted int64 // calls that asked, and charges
	Left      int64 // calls that left
	Cancelled int64 // calls whose context ended before they left
	Refused   int64 // calls that were refused
	Waiting   int64 // calls in the lines now
	Units     int64 // the units of the calls in the lines
	InFlight  int64 // calls of Acquire that are not released yet
	LeftUnits int64 // the units of the calls that left

	Oldest time.Duration // how long the call has waited that has waited longest; 0 if none waits
}

// KeyState is what [Group.Range] tells about a key.
type KeyState struct {
	Rate      scheduler.Rate // the rate that it has now
	Waiting   int64          // calls in its line
	Units     int64          // the units of those calls
	InFlight  int64          // calls of Acquire that are not released yet
	Oldest    time.Duration  // as in Stats
	NextDue   time.Time      // as in Stats
	Paused    bool
	HeldUntil time.Time // when its hold ends; zero if none is in force
}

// Len returns how many keys are remembered. It forgets those first that can be
// forgotten, so it takes time in proportion to their number.
func (g *Group[K]) Len() int {
	g.made()
	now := g.time.since()
	for i := range g.shards {
		g.review(&g.shards[i])
		g.shards[i].sweep(now)
	}
	return int(g.keys.n.Load())
}

// Stats returns a snapshot. It forgets keys as [Group.Len] does.
func (g *Group[K]) Stats() GroupStats {
	g.made()
	var st GroupStats
	now := g.time.since()
	for i := range g.shards {
		g.shards[i].addTo(&st, now)
	}
	st.Keys = int(g.keys.n.Load())
	return st
}

func (sh *shard[K]) addTo(st *GroupStats, now time.Duration) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sh.sweepLocked(now)
	st.Submitted += sh.counts.submitted
	st.Left += sh.counts.left
	st.Cancelled += sh.counts.cancelled
	st.Refused += sh.counts.refused
	st.LeftUnits = saturatingSum(st.LeftUnits, sh.counts.units)
	for _, m := range sh.bound {
		key := m.shaper.Stats()
		st.Submitted += key.Submitted
		st.Left += key.Left
		st.Cancelled += key.Cancelled
		st.Refused += key.Refused
		st.Waiting += key.Waiting
		st.Units = saturatingSum(st.Units, key.Units)
		st.InFlight += key.InFlight
		st.LeftUnits = saturatingSum(st.LeftUnits, key.LeftUnits)
		st.Oldest = max(st.Oldest, key.Oldest)
	}
}

// Range calls f for each key that is remembered, in no order, until f returns false. It
// can be ranged over:
//
//	for key, state := range g.Range {
//
// f may use the Group. Keys that are made or forgotten meanwhile may be told or not.
func (g *Group[K]) Range(f func(key K, state KeyState) bool) {
	g.made()
	for i := range g.shards {
		for key, state := range g.shards[i].states() {
			if !f(key, state) {
				return
			}
		}
	}
}

func (sh *shard[K]) states() map[K]KeyState {
	now := sh.group.time.since()
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sh.sweepLocked(now)
	all := make(map[K]KeyState, sh.idle.len()+len(sh.bound))
	sh.idle.all(sh.group.usual, func(key K, e idle) { all[key] = KeyState{Rate: e.class.rate} })
	for key, m := range sh.bound {
		st := m.shaper.Stats()
		all[key] = KeyState{
			Rate: st.Rate, Waiting: st.Waiting, Units: st.Units, InFlight: st.InFlight,
			Oldest: st.Oldest, NextDue: st.NextDue, Paused: st.Paused, HeldUntil: st.HeldUntil,
		}
	}
	return all
}

func (c *counts) add(more counts) {
	c.submitted += more.submitted
	c.left += more.left
	c.cancelled += more.cancelled
	c.refused += more.refused
	c.units = saturatingSum(c.units, more.units)
}

// takeCounts returns what the Shaper has counted, and starts anew. No other goroutine uses it.
func (s *Shaper) takeCounts() counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	taken := s.counts
	s.counts = counts{}
	fast := s.fast.left.Swap(0)
	taken.add(counts{submitted: fast, left: fast, units: fast + s.fast.more.Swap(0)})
	s.unused.seen = 0
	return taken
}
