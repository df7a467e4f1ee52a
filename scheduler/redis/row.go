package redis

import (
	"slices"
	"time"
)

// A row is positions that lie T apart. A position is TAT as it was before a unit: it may be used
// from (B-1)T before it until J after it.
type row struct {
	first moment
	units int64
	read  reading // the present as the reply told it: here and there
}

// slots are the positions in hand, in order. Those of a call of several units lie within the
// burst, or are adjacent ones; it leaves (B-1)T before the last of them.
type slots struct {
	pace  pace
	burst int64
	rows  []row
	units int64
}

// at returns a moment of the store's by the local clock. That is what the store means, or later by
// up to the time that its reply was under way, and never earlier.
func (r reading) at(p pace, m moment) time.Time { return r.heard.Add(p.after(m, r.store)) }

func (s *slots) add(r row) {
	if r.units <= 0 {
		return
	}
	at, _ := slices.BinarySearchFunc(s.rows, r, func(a, b row) int {
		if a.first.before(b.first) {
			return -1
		}
		return 1
	})
	s.rows = slices.Insert(s.rows, at, r)
	s.units += r.units
}

// at returns the i-th position and its row.
func (s *slots) at(i int64) (moment, *row) {
	for k := range s.rows {
		r := &s.rows[k]
		if i < r.units {
			return s.pace.add(r.first, i), r
		}
		i -= r.units
	}
	panic("redis: no such position")
}

// slot returns when a unit may leave in the i-th position.
func (s *slots) slot(i int64) time.Time {
	m, r := s.at(i)
	return r.read.at(s.pace, s.pace.sub(m, s.burst-1))
}

// usable returns the first position that a unit that leaves at t may take.
func (s *slots) usable(t time.Time, tolerance time.Duration) int64 {
	lo, hi := int64(0), s.units
	for lo < hi {
		mid := lo + (hi-lo)/2
		if m, r := s.at(mid); r.read.at(s.pace, m).Add(tolerance).Before(t) {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// find returns where the positions begin in which a call of n units leaves that cannot leave
// before t, and when; false if there are none.
func (s *slots) find(t time.Time, tolerance time.Duration, n int64) (i int64, at time.Time, ok bool) {
	if s.units < n {
		return 0, t, false
	}
	i = s.usable(t, tolerance)
	if n > s.burst {
		i = 0 // what it saves up is not missed
	}
	for i+n <= s.units {
		first, r := s.at(i)
		last, end := s.at(i + n - 1)
		due := end.read.at(s.pace, s.pace.sub(last, s.burst-1))
		missed := n > s.burst && due.Add(tolerance).Before(t)
		if !missed && !s.pace.add(first, max(s.burst, n)-1).before(last) {
			return i, later(t, due), true
		}
		if n > s.burst || r.units == 1 {
			i++
			continue
		}
		i = s.end(i) // to begin within a row brings it no nearer to the next one
	}
	return 0, t, false
}

// end returns where the row of a position ends.
func (s *slots) end(i int64) int64 {
	var end int64
	for _, r := range s.rows {
		if end += r.units; i < end {
			break
		}
	}
	return end
}

// cut takes n positions out, from the i-th one on, and returns them.
func (s *slots) cut(i, n int64) (out []row) {
	var rows []row
	for _, r := range s.rows {
		before := min(i, r.units)
		here := min(n, r.units-before)
		i, n = i-before, n-here
		for _, part := range []struct {
			to         *[]row
			from, size int64
		}{{&rows, 0, before}, {&out, before, here}, {&rows, before + here, r.units - before - here}} {
			if part.size > 0 {
				*part.to = append(*part.to, row{s.pace.add(r.first, part.from), part.size, r.read})
			}
		}
		s.units -= here
	}
	s.rows = rows
	return out
}
