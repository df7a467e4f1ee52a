package shaper

import (
	"slices"
	"time"

	"github.com/sluice-go/sluice/shaper/internal/fair"
	"github.com/sluice-go/sluice/shaper/internal/pq"
)

// keys are those of a line that has more than one, and the rule for which of them is next. A
// key whose head its own limits forbid is blocked and in the way of no other; the others
// are free.
type keys struct {
	free    *pq.Queue[flow] // by rank, where no weights are set
	blocked *pq.Queue[flow] // until an instant
	crowd   *pq.Queue[flow] // those with calls, by room per weight

	fair *fair.Sharing[flow] // nil: no weights are set
}

type keyState uint8

const (
	dry     keyState = iota // no call waits
	blocked                 // its own limits forbid the head
	free
)

// A move is what has happened to a key that is to be put in its place.
type move uint8

const (
	changed move = iota // its head, or its limits
	left                // its head has left
)

func newKeys() *keys {
	return &keys{
		free:    pq.New(goesBefore, func(f *flow) *int32 { return &f.atFree }),
		blocked: pq.New(joinedBefore, func(f *flow) *int32 { return &f.atBlocked }),
		crowd:   pq.New(hasMoreRoom, func(f *flow) *int32 { return &f.atCrowd }),
	}
}

// goesBefore is the rule between free keys of one rank without weights: class and arrival of
// their heads.
func goesBefore(a, b *flow) bool {
	c, d := a.calls.head, b.calls.head
	switch {
	case c.class != d.class:
		return c.class < d.class
	case a.from != b.from:
		return a.from < b.from
	}
	return c.before(d)
}

func joinedBefore(a, b *flow) bool { return a.calls.head.before(b.calls.head) }

// hasMoreRoom is the rule for the key that has to give room away.
func hasMoreRoom(a, b *flow) bool {
	more, less := int64(a.calls.len)*b.weight, int64(b.calls.len)*a.weight
	return more > less || more == less && joinedBefore(a, b)
}

// crowdLocked is called when the calls of a flow, or its weight, have changed.
func (q *keys) crowdLocked(f *flow) {
	if f.calls.head == nil {
		q.crowd.Remove(f)
		return
	}
	rank := -int64(f.calls.len) * maxWeight / f.weight // rounded: hasMoreRoom decides between equals
	if f.apart() {
		rank = 1 // behind all that could make room
	}
	q.crowd.Put(f, rank)
}

// chooseLocked finds the key whose head is next.
func (l *line) chooseLocked(now time.Time) *flow {
	q := l.keys
	l.freed = false
	if q == nil {
		l.head = nil
		if l.first.calls.head != nil {
			l.head = l.first
		}
		return l.head
	}
	for {
		f := q.next()
		if f != nil && f.stands(f.calls.head.place) {
			l.placeLocked(f, now, changed) // others of its Group have taken the places
			continue
		}
		if f == nil || !f.mayCloseLocked() {
			l.head = f
			return f
		}
		// Its schedule may have closed since it was free.
		if at, ok := f.freeLocked(now); ok && !at.After(now) {
			l.head = f
			return f
		}
		if l.placeLocked(f, now, changed); f.state == free { // it is broken: it has said otherwise
			l.head = f
			return f
		}
	}
}

func (q *keys) next() *flow {
	if q.fair == nil {
		return q.free.First()
	}
	if tags := q.fair.First(); tags != nil {
		return tags.Owner
	}
	return nil
}

// placeLocked puts a key where it belongs, after a change of its head or its limits.
func (l *line) placeLocked(f *flow, now time.Time, m move) {
	q := l.keys
	if q == nil {
		return
	}
	was := f.state
	f.state = dry
	var at time.Time
	if m == left || f.calls.head == nil {
		f.putOff = 0
	}
	if f.calls.head != nil {
		var ok bool
		at, ok = f.freeLocked(now)
		f.state = blocked
		switch {
		case ok && !at.After(now):
			f.state = free
		case ok:
			f.until = l.putOffLocked(f, was, at, now).Sub(l.time.epoch)
		default:
			f.until = never
		}
	}
	if was == free && f.state != free && m == changed && l.head == f {
		l.forsakenLocked(now)
	}
	q.crowdLocked(f)
	f.demandLocked()
	if f.state == blocked && f.until != never {
		q.blocked.Put(f, int64(f.until))
	} else {
		q.blocked.Remove(f)
	}
	switch {
	case q.fair != nil:
		l.shareLocked(f, at, was, m)
	case f.state == free:
		q.free.Put(f, f.rankLocked())
	default:
		q.free.Remove(f)
	}
	l.admitLocked(f, now)
}

// putOffLocked returns when a key is looked at again that is blocked until then. If that has
// been so before, and the time has come, its schedule puts the head off; see mostPutOff.
func (l *line) putOffLocked(f *flow, was keyState, until, now time.Time) time.Time {
	if was == blocked && f.until <= now.Sub(l.time.epoch) && f.putOff < mostPutOff {
		f.putOff++
	}
	if f.putOff < mostPutOff {
		return until
	}
	return later(until, now.Add(putOffPause))
}

// forsakenLocked is called when the head of the line is one no more, as its key forbids it.
func (l *line) forsakenLocked(now time.Time) {
	if l.nextDue.Before(now) {
		now = l.nextDue
	}
	l.passed(now)
}

// rankLocked returns what free keys go by, and notes what goesBefore compares. A key that was
// held goes by when that ended; otherwise it would take the line for all the time that it was
// held.
func (f *flow) rankLocked() int64 {
	c := f.calls.head
	f.from = c.arrived
	if f.own != nil {
		f.from = max(f.from, f.own.gate.openAt.Sub(f.line.time.epoch))
	}
	return int64(laterBy(f.from, f.calls.rule.lead(int(c.class))))
}

// joinedLocked is called when a call has joined a key.
func (l *line) joinedLocked(f *flow, c *call, now time.Time) {
	if f.calls.head != c {
		l.behindLocked(f, c, true)
		return
	}
	l.placeLocked(f, now, changed)
	l.dispatchLocked(now)
}

// unblocksLocked returns when the next key becomes free, if one does.
func (l *line) unblocksLocked() (at time.Time, ok bool) {
	if l.keys == nil {
		return at, false
	}
	f := l.keys.blocked.First()
	if f == nil {
		return at, false
	}
	return l.time.epoch.Add(f.until), true
}

// passLocked brings the line up to now: the keys that have become free, in their order. It is
// called before anything changes.
func (l *line) passLocked(now time.Time) {
	l.unusedLocked(now)
	if l.keys == nil {
		return
	}
	since := now.Sub(l.time.epoch)
	for f := l.keys.blocked.First(); f != nil && f.until <= since; f = l.keys.blocked.First() {
		l.placeLocked(f, now, changed)
		l.freed = true
	}
	l.advanceLocked(now)
}

// makeRoomLocked refuses the newest call of the key that has the most room for its weight, if
// that is more than the newcomer's key would have.
func (l *line) makeRoomLocked(f *flow, now time.Time) bool {
	most := l.keys.crowd.First()
	if most == nil || most.apart() || int64(most.calls.len)*f.weight <= int64(f.calls.len+1)*most.weight {
		return false
	}
	most.dismissLocked(most.calls.newest(), now, ErrQueueFull, 0)
	l.dispatchLocked(now) // it may have been the head
	return true
}

// eachLocked visits each key with waiting calls. It may take calls out.
func (l *line) eachLocked(visit func(*flow)) {
	if l.keys == nil {
		if l.first.calls.head != nil {
			visit(l.first)
		}
		return
	}
	for _, f := range slices.Collect(l.keys.crowd.Each) {
		visit(f)
	}
}

// shareOut has the line share what it lets leave among its keys, by weight.
func (l *line) shareOutLocked(now time.Time) {
	q := l.keys
	if q.fair != nil {
		return
	}
	burst := int64(1)
	if l.pacing != nil {
		burst = l.pacing.Burst()
	}
	q.fair = fair.New[flow](burst)
	l.repaceLocked()
	l.advanceLocked(now)
	for _, f := range slices.Collect(q.free.Each) {
		q.free.Remove(f)
		f.state = dry
		l.placeLocked(f, now, changed)
	}
}
