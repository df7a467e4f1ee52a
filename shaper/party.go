package shaper

import (
	"github.com/sluice-go/sluice/scheduler"
)

// A party is the keys of one Group under a Shaper. It is guarded by the lock of that.
type party struct {
	bounds         // of each key; a capacity of 0 is none
	counts  counts // of all its calls
	events  *teller
	waiting int
	life    lifecycle
}

// newFlow returns a flow for keys of a class in the line of an account.
func (p *party) newFlow(account *line, c *rateClass, more []scheduler.Scheduler, rule *classRule) *flow {
	limits := newLimits(c.pacer(), more, 0)
	f := &flow{line: account, own: &limits, party: p}
	f.weight, f.calls.rule = 1, rule
	if changing, ok := limits.sched.(scheduler.Notifier); ok {
		changing.Notify(f.notified)
	}
	return f
}

// notified is for a schedule of the key whose answers have changed by themselves.
func (f *flow) notified() {
	l := f.lock()
	defer l.unlock()
	now := l.time.now()
	l.passLocked(now)
	f.changedLocked(now)
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
			f.dismissAllLocked(now)
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
