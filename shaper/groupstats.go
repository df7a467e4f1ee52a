package shaper

import (
	"cmp"
	"slices"
	"time"
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
	if g.account != nil {
		of, waiting := g.party.tell(g.account)
		st.add(of)
		st.Waiting = int64(waiting)
	}
	st.Keys = int(g.keys.n.Load())
	return st
}

func (sh *shard[K]) addTo(st *GroupStats, now time.Duration) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sh.sweepLocked(now)
	st.add(sh.counts)
	for _, m := range sh.bound {
		key, of := m.flow.tell()
		st.add(of)
		if sh.group.account == nil {
			st.Waiting += key.Waiting
		}
		st.Units = saturatingSum(st.Units, key.Units)
		st.InFlight += key.InFlight
		st.Oldest = max(st.Oldest, key.Oldest)
	}
}

func (st *GroupStats) add(c counts) {
	st.Submitted += c.of[submitted]
	st.Left += c.of[departed]
	st.Cancelled += c.of[cancelled]
	st.Refused += c.of[refused]
	st.LeftUnits = saturatingSum(st.LeftUnits, c.units)
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

// Longest returns the keys whose calls have waited longest, up to n of them, the longest
// first. It is for keys that are too many to show them all.
func (g *Group[K]) Longest(n int) []WaitingKey[K] {
	var longest []WaitingKey[K]
	for key, state := range g.Range {
		if state.Waiting == 0 {
			continue
		}
		i, _ := slices.BinarySearchFunc(longest, state.Oldest, func(w WaitingKey[K], oldest time.Duration) int {
			return cmp.Compare(oldest, w.State.Oldest)
		})
		if i < n {
			longest = slices.Insert(longest, i, WaitingKey[K]{key, state})
			longest = longest[:min(len(longest), n)]
		}
	}
	return longest
}

// A WaitingKey is a key for which calls wait.
type WaitingKey[K comparable] struct {
	Key   K
	State KeyState
}

func (sh *shard[K]) states() map[K]KeyState {
	now := sh.group.time.since()
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sh.sweepLocked(now)
	all := make(map[K]KeyState, sh.idle.len()+len(sh.bound))
	sh.idle.all(sh.group.usual, func(key K, e idle) { all[key] = KeyState{Rate: e.class.rate, Weight: 1} })
	for key, m := range sh.bound {
		all[key], _ = m.flow.tell()
	}
	return all
}

func (c *counts) add(more counts) {
	for e := range c.of {
		c.of[e] += more.of[e]
	}
	c.units = saturatingSum(c.units, more.units)
}

// countsLocked returns what the line has counted.
func (l *line) countsLocked() counts {
	all := l.counts
	fast := l.fast.left.Load()
	all.add(counts{of: [fates]int64{submitted: fast, departed: fast}, units: l.fast.units()})
	return all
}

// takeCounts returns what the line of the flow has counted, and starts anew. No other
// goroutine uses it. Of a Group under a Shaper the party counts.
func (f *flow) takeCounts() (taken counts) {
	if f.party != nil {
		return taken
	}
	l := f.line
	l.mu.Lock()
	defer l.mu.Unlock()
	taken = l.countsLocked()
	l.counts = counts{}
	l.fast.left.Store(0)
	l.fast.more.Store(0)
	l.unused.seen = 0
	return taken
}
