package shaper

import (
	"time"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper/internal/pq"
)

// A party is the keys of one Group under a Shaper. It is guarded by the lock of that.
type party struct {
	bounds         // of each key; a capacity of 0 is none
	counts  counts // of all its calls
	waiting int
	room    int // for calls that wait, beside that of the line; 0: they share that
	life    lifecycle

	places   places          // for all keys together
	standing *pq.Queue[flow] // keys whose heads wait for such a place alone, by turn or rank
	turn     int64           // the latest of a key that has taken one
	ready    int             // free keys whose heads need one
}

// stands reports whether the head of a key waits for a place of its Group.
func (f *flow) stands(place bool) bool { return place && f.party != nil && !f.party.places.free() }

// admitLocked is called when a key has been put in its place, or one of its Group's places given
// back. As many keys are free as there are places, as far as that is up to the Group, and none
// stands that goes before one that has become so.
func (l *line) admitLocked(f *flow, now time.Time) {
	p := f.party
	if p == nil || p.places.most == 0 {
		return
	}
	ready := f.state == free && f.calls.head.place
	stands := f.state == blocked && f.stands(f.calls.head.place) && !f.own.stand(true)
	if (ready || stands) && !f.ready && f.atStanding == 0 {
		f.turn = max(f.turn, p.turn) // it has saved nothing up
	}
	if ready != f.ready {
		f.ready = ready
		p.ready--
		if ready {
			p.ready += 2
		}
	}
	if stands {
		p.standing.Put(f, f.standingLocked())
	} else {
		p.standing.Remove(f)
	}
	l.admitNextLocked(p, f, now)
}

// admitNextLocked has the keys be free that stand for a place and are next, and the one that goes
// before the key of a change, if there is one.
func (l *line) admitNextLocked(p *party, f *flow, now time.Time) {
	for p.places.free() {
		next := p.standing.First()
		if next == nil || int64(p.ready) >= p.places.most-p.places.taken && !(f != nil && f.ready && next.ranksBefore(f)) {
			return
		}
		l.placeLocked(next, now, changed)
	}
}

// standingLocked returns what keys that want a place of their Group go by: without weights as in
// the line. With weights each place is shared, as units are, but by start tags alone (start-time
// fair queueing; Goyal, Vin and Cheng, 1996): how long a place is taken is not known.
func (f *flow) standingLocked() int64 {
	rank := f.rankLocked()
	if f.line.keys.fair != nil {
		return f.turn
	}
	return rank
}

// ranksBefore reports whether the head of a key gets a place before that of another one.
func (f *flow) ranksBefore(other *flow) bool {
	a, b := f.standingLocked(), other.standingLocked()
	return a < b || a == b && goesBefore(f, other)
}

// takeLocked takes a place of the Group for a key.
func (p *party) takeLocked(f *flow, cost int64) {
	p.places.taken++
	p.turn = max(p.turn, f.turn)
	f.turn = int64(laterBy(time.Duration(f.turn), time.Duration(min(cost, 1<<32)*maxWeight/f.weight)))
}

// A guest is a flow in the line of an account, with its limits: in one piece, as there may be
// many.
type guest struct {
	flow   flow
	limits limits
	gcra   scheduler.GCRA // what the limits are, as a rule
}

// init makes it a flow for keys of a class.
func (p *party) init(g *guest, account *line, c *rateClass, more []scheduler.Scheduler, rule *classRule) *flow {
	g.gcra = *c.fresh
	if g.limits = (limits{sched: &g.gcra, gcra: &g.gcra, terms: c.terms}); len(more) > 0 {
		g.limits = newLimits(&g.gcra, more, 0)
	}
	f := &g.flow
	*f = flow{line: account, own: &g.limits, party: p}
	f.weight, f.calls.rule = 1, rule
	if changing, ok := f.own.sched.(scheduler.Notifier); ok {
		changing.Notify(f.notified)
	}
	return f
}

func (p *party) drain(l *line) <-chan struct{} {
	l.lock()
	defer l.unlock()
	return p.life.drain(p.waiting)
}

func (p *party) close(l *line) {
	l.lock()
	defer l.unlock()
	p.life.state = closed
	now := l.time.now()
	l.eachLocked(func(f *flow) {
		if f.party == p {
			f.dismissAllLocked(now, ErrClosed)
		}
	})
	l.dispatchLocked(now)
}

// tell returns what was counted and how many calls wait.
func (p *party) tell(l *line) (of counts, waiting int) {
	l.lock()
	defer l.unlock()
	return p.counts, p.waiting
}

// Keys returns how many keys of Groups under the Shaper have calls in its line, and how many
// of those are held back by limits of their own.
func (s *Shaper) Keys() (waiting, heldBack int) {
	l := s.own.lock()
	defer l.unlock()
	l.passLocked(l.time.now())
	l.eachLocked(func(f *flow) {
		if f.own != nil {
			waiting++
		}
		if f.state == blocked {
			heldBack++
		}
	})
	return waiting, heldBack
}
