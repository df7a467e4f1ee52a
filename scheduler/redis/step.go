package redis

import (
	"context"
	"time"
)

// A step is one call of the script. It runs in a goroutine that ends with it, and there
// is at most one under way: what is asked for meanwhile waits for the next.

// planLocked begins a step if one is needed. need is the units that the line has asked
// about, head the cost of the first call in the line, or 0.
func (s *Schedule) planLocked(now time.Time, need, head int64) {
	switch {
	case s.closed || s.taking:
		return
	case s.away:
		// While the line asks, the store is looked for. That only looks: what hangs in
		// the buffers of a stopped server will be done once it goes on, all of it.
		s.lookLaterLocked(probeEvery / 2)
		if s.link.mayProbe() {
			s.takeLocked(request{within: -1})
		}
		return
	case s.tellsHoldLocked(now):
		s.takeLocked(s.requestLocked(now, 0))
		return
	}
	units := s.unitsLocked(now, need, head)
	if units == 0 {
		s.lookLaterLocked(s.patienceLocked(now))
		return
	}
	if s.delayed == nil && !s.gatherLocked(now, head) {
		s.taking = true
		go s.reserve(head)
	}
}

// reserve begins a step if a call waits. Not all that is asked about does: some calls only
// want to know what the wait would be, and others are turned away. A line in which a call
// waits asks for its head when it is told to look.
func (s *Schedule) reserve(head int64) {
	s.mu.Lock()
	again, heads := s.again, s.heads
	s.mu.Unlock()
	if again != nil {
		again()
	}
	s.mu.Lock()
	now := s.config.now()
	s.lookAtStoreLocked(now)
	if s.heads != heads {
		head = s.head
	}
	units := s.unitsLocked(now, 0, head)
	switch {
	case s.closed || s.away || units == 0 || again != nil && s.heads == heads && s.owed == 0:
		s.taking = false
		s.endLocked(now, nil)
		s.mu.Unlock()
		return
	case again != nil && s.heads == heads:
		units = min(s.owed, s.MaxCost())
	}
	s.steps.Commit(now, now, 1)
	r := s.requestLocked(now, units)
	s.counts.Steps++
	s.mu.Unlock()
	s.take(r)
}

// unitsLocked returns how many units to reserve now, or 0.
func (s *Schedule) unitsLocked(now time.Time, need, head int64) int64 {
	have := s.hand.units
	waiting := max(need, s.demand)
	enough := have >= waiting
	most := s.mostLocked()
	if have > 0 && have >= head && have > min(most, waiting)/4 {
		// The next run is fetched before this one is used up, and not much sooner.
		enough = enough || s.hand.last().Sub(now) > 2*s.rtt
	}
	if enough {
		return s.owed
	}
	units := min(waiting-have, max(most, head-have))
	return min(saturatingSum(units, s.owed), s.MaxCost())
}

// requestLocked returns a request for so many units that says all there is to say.
func (s *Schedule) requestLocked(now time.Time, units int64) request {
	r := request{units: units, within: -1, known: s.told, rejoin: s.rejoins, forfeits: s.even, surplus: s.stale}
	s.rejoins, s.even, s.stale = false, false, surplus{}
	if s.tellsHoldLocked(now) {
		r.hold = s.held.Sub(now)
	}
	return r
}

// takeLocked begins a step.
func (s *Schedule) takeLocked(r request) {
	s.taking = true
	s.counts.Steps++
	go s.take(r)
}

func (s *Schedule) take(r request) {
	sent := s.config.now()
	got, err := s.link.step(context.Background(), s.keys, s.pace, s.burst, r)
	received := s.config.now()
	if err != nil {
		s.link.failed(err)
	} else {
		s.link.answered()
	}
	s.finish(r, got, err, sent, received)

	// A line that waits looks at what has come. If none does, it has to go back.
	s.mu.Lock()
	again := s.again
	s.mu.Unlock()
	if again != nil {
		again()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endLocked(s.config.now(), err)
}

// endLocked sees to what came up while a step was under way.
func (s *Schedule) endLocked(now time.Time, err error) {
	switch {
	case s.taking:
		// The next one is.
	case s.closed:
		if err == nil {
			s.giveBackLocked(now)
		}
	case s.pendingLocked(now):
		s.lookAtStoreLocked(now)
		s.planLocked(now, 0, 0)
	default:
		s.lookLaterLocked(s.patienceLocked(now))
	}
}

func (s *Schedule) finish(r request, got reply, err error, sent, received time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taking = false
	if err != nil {
		s.counts.Failed++
		s.rejoins = s.rejoins || r.rejoin
		s.even = s.even || r.forfeits
		return
	}
	trip := received.Sub(sent)
	if s.rtt == 0 {
		s.rtt = trip
	}
	s.rtt += (trip - s.rtt) / 8

	run := run{anchor: received, now: got.now, tat: got.tat, burst: s.burst, end: got.granted}
	tail := s.pace.add(got.tat, got.granted)
	s.tail = run.local(s.pace, tail)
	s.told = told{tail, got.now}
	s.seen = received
	s.counts.Reserved += got.granted
	if r.back && got.tat.us < r.tail.us {
		s.counts.Returned += r.returned
	}
	if r.hold > 0 && !s.held.After(sent.Add(r.hold)) {
		s.held = time.Time{}
	}
	if got.hold > got.now {
		// All are held, and the slots in hand with them. Slots to come are behind it.
		until := run.local(s.pace, moment{us: got.hold})
		s.missLocked(s.hand.missed(1, until))
	}
	if r.units > 0 && got.granted == 0 {
		s.owed = 0 // TAT is decades ahead: it makes no difference any more
	}
	run.next = min(s.owed, got.granted)
	s.owed -= run.next
	s.counts.Used += run.next
	s.hand.add(run)
}
