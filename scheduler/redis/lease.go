package redis

import "time"

// A run is a row of slots that were reserved in one step. Slot i of it, from next to end,
// is when unit i may leave.
type run struct {
	anchor time.Time // the present of the reply, here
	now    int64     // and there
	tat    moment    // of unit 0
	burst  int64
	next   int64
	end    int64
}

// at returns when unit i may leave, by the local clock. That is what the server means, or
// later by up to the time that its reply was under way, and never earlier.
func (r *run) at(p pace, i int64) time.Time {
	// B-1 units leave before their TAT.
	m := p.add(p.sub(r.tat, r.burst-1), i)
	return r.anchor.Add(max(p.after(m, r.now), 0))
}

// local returns a moment of the server's by the local clock, as far as this run knows.
func (r *run) local(p pace, m moment) time.Time { return r.anchor.Add(p.after(m, r.now)) }

// A lease is the slots in hand, in order.
type lease struct {
	pace  pace
	runs  []run
	units int64
}

func (l *lease) add(r run) {
	if r.next < r.end {
		l.runs = append(l.runs, r)
		l.units += r.end - r.next
	}
}

// slot returns the instant of the i-th unit in hand, which must exist.
func (l *lease) slot(i int64) time.Time {
	for k := range l.runs {
		r := &l.runs[k]
		if i < r.end-r.next {
			return r.at(l.pace, r.next+i)
		}
		i -= r.end - r.next
	}
	panic("redis: no such slot")
}

// last returns the instant of the last unit in hand, if there is one.
func (l *lease) last() time.Time {
	if l.units == 0 {
		return time.Time{}
	}
	r := &l.runs[len(l.runs)-1]
	return r.at(l.pace, r.end-1)
}

// drop takes the first n units out.
func (l *lease) drop(n int64) {
	n = min(n, l.units)
	l.units -= n
	for n > 0 {
		r := &l.runs[0]
		took := min(n, r.end-r.next)
		r.next += took
		n -= took
		if r.next == r.end {
			l.runs = l.runs[1:]
		}
	}
	if len(l.runs) == 0 {
		l.runs = nil
	}
}

// missed returns how many of the first units are of no use to a call of cost n, as the
// last of its n slots would be before the given instant.
func (l *lease) missed(n int64, before time.Time) int64 {
	if l.units < n {
		return 0 // what it saves up is not missed
	}
	// Slots are in order.
	lo, hi := int64(0), l.units-n+1
	for lo < hi {
		mid := lo + (hi-lo)/2
		if l.slot(mid + n - 1).Before(before) {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// surplus returns where TAT was before the units in hand were reserved, and where it is
// after them, as far back as no other process has reserved any in between.
func (l *lease) surplus() (rest, tail moment, units int64) {
	for k := len(l.runs) - 1; k >= 0; k-- {
		r := &l.runs[k]
		end := l.pace.add(r.tat, r.end)
		if k == len(l.runs)-1 {
			tail = end
		} else if end != rest || l.runs[k+1].next != 0 {
			break
		}
		rest = l.pace.add(r.tat, r.next)
		units += r.end - r.next
		if r.next != 0 {
			break
		}
	}
	return rest, tail, units
}

func (l *lease) clear() { l.runs, l.units = nil, 0 }
