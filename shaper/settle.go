package shaper

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluice-go/sluice/scheduler"
)

// A Departure is a call that has left and of which the cost may be corrected, once, when it is
// known. Start with [Shaper.Depart] or [Group.Depart]. Its methods are safe for concurrent
// use.
type Departure struct {
	flow *flow
	id   uint64 // in the ledger of the line
	cost int64  // that was charged
}

// ErrFinal says that the departure was settled before, or can be settled no more; see [WithUnsettled].
var ErrFinal = scheduler.ErrFinal

const (
	defaultUnsettled = 1024
	defaultSettling  = 10 * time.Minute
)

// WithUnsettled sets how many calls of [Shaper.Depart] may be unsettled at a time, and for how
// long each may be. The defaults are 1,024 and 10 minutes. Beyond either the oldest is final
// first, as charged. In a [Group] it holds for each key; of one that is [Under] an account, and
// for all keys together, it is a matter of the account.
func WithUnsettled(most int, timeout time.Duration) Option {
	return func(c *config) { c.unsettled = &settling{most, timeout} }
}

// settling bounds what may be settled.
type settling struct {
	most    int
	timeout time.Duration
}

func (c *config) checkUnsettled() error {
	if c.unsettled == nil {
		return nil
	}
	if _, err := scheduler.NewLedger(c.unsettled.most, c.unsettled.timeout); err != nil {
		return fmt.Errorf("shaper: %w", err)
	}
	return nil
}

// Depart waits as [Shaper.Wait] does for a call whose cost is known only when it has ended, as
// that of tokens or points of a query. The call is charged with its cost as stated, an upper
// bound as a rule; [Departure.Settle] corrects that.
//
// The class, the arrival and the deadline are those of the call, or what ctx states, which goes
// first; of two deadlines the earlier one holds. A Shaper with no limit that can settle a call
// (see [scheduler.Settler]) is an error.
func (s *Shaper) Depart(ctx context.Context, c Call) (*Departure, error) {
	s.made()
	dead := ctx.Err()
	a := c.unsettled(ctx, dead, s.own.rule())
	if dead != nil {
		_, err := s.own.enter(dead, s.line.time.since(), a)
		return nil, err
	}
	return depart(ctx, a, s.own.enqueue)
}

// Depart is [Shaper.Depart] for the key, which is remembered until the call is settled or
// final. Under an account it is settled at the limits of both. A new key may be refused with
// [ErrTooManyKeys].
func (g *Group[K]) Depart(ctx context.Context, key K, c Call) (*Departure, error) {
	g.made()
	dead := ctx.Err()
	a := c.unsettled(ctx, dead, g.config.rule)
	if dead != nil {
		return nil, g.WaitN(ctx, key, int(a.cost)) // counts it
	}
	return depart(ctx, a, func(a ask) (cancel func() bool, err error) { return g.enqueue(key, a) })
}

// Depart is [Group.Depart] for the key.
func (k *Key[K]) Depart(ctx context.Context, c Call) (*Departure, error) {
	return k.in().Depart(ctx, k.key, c)
}

// unsettled returns what the call wants. A context is its user's code, so no lock may be held.
func (c Call) unsettled(ctx context.Context, dead error, rule *classRule) ask {
	a := c.ask(rule)
	a.departure = &Departure{cost: a.cost}
	if dead != nil {
		return a
	}
	if deadline := deadlineOf(ctx); !deadline.IsZero() && (a.deadline.IsZero() || deadline.Before(a.deadline)) {
		a.deadline = deadline
	}
	if _, stated := ctx.Value(classKey{}).(int); stated {
		a.class = rule.classOf(ctx)
	}
	if arrived := arrivalOf(ctx); !arrived.IsZero() {
		a.arrived = arrived
	}
	return a
}

// depart waits for a call that enter has join the line.
func depart(ctx context.Context, a ask, enter func(ask) (cancel func() bool, err error)) (*Departure, error) {
	told := make(chan error, 1) // the answer comes once, so that never blocks
	a.done = func(err error) { told <- err }
	cancel, err := enter(a)
	if err != nil {
		return nil, err
	}
	select {
	case err = <-told:
	case <-ctx.Done():
		if cancel() {
			return nil, ctx.Err()
		}
		err = <-told // the answer came first, and it stands
	}
	if err != nil {
		return nil, err
	}
	return a.departure, nil
}

// Settle says what the call has cost, which may be 0. From then on all is as if that had been
// known when it left, but for what has left meanwhile: units come back as far as they would be
// there now, and where the call cost more than was stated, the difference is charged. Calls
// that wait leave by that at once, or later; one that cannot make its deadline any more is
// refused with [ErrDeadline]. Fair shares settle with it.
//
// What comes back is of use only where units can be saved up: choose a burst that covers what
// is in flight, of the cost of a call times one more than the calls that are under way.
//
// A second Settle, and one that comes after all that [WithUnsettled] allows, is an error that
// matches [ErrFinal]; so is one of a call whose limits were loaded from a saved state meanwhile.
// An actual below 0 is an error, too. An error has changed nothing. Settle works after Close.
func (d *Departure) Settle(actual int) error {
	f := d.made()
	l := f.lock()
	defer l.unlock()
	now := l.arriveLocked(l.time.since()) // what is due already leaves by what was known
	paid := l.paidLocked()
	if err := l.unsettled.ledger.Settle(now, d.id, int64(actual)); err != nil {
		return fmt.Errorf("shaper: %w", err)
	}
	f.passedLocked(now)
	more := int64(actual) - d.cost
	l.correctedLocked(f, more, paid, now)
	if more > 0 {
		l.first.dismissLateLocked(now)
	}
	f.changedLocked(now)
	return nil
}

// passedLocked notes that all that was due under the limits of the key before now has been
// seen to.
func (f *flow) passedLocked(now time.Time) {
	f.line.passed(now)
	if f.own != nil {
		f.own.passed(now)
	}
}

// made panics if the Departure was not made by this package.
func (d *Departure) made() *flow {
	if d.flow == nil {
		panic("shaper: zero Departure: use Depart")
	}
	return d.flow
}

// unsettled are the calls of a line that may be settled, and those that wait to be so.
type unsettled struct {
	bounds  *settling // nil: the defaults
	ledger  *scheduler.Ledger
	waiting map[*call]*Departure
}

// awaitLocked notes that a call that joins the line will be unsettled when it has left.
func (u *unsettled) awaitLocked(c *call, d *Departure) {
	if d == nil {
		return
	}
	if u.waiting == nil {
		u.waiting = make(map[*call]*Departure)
	}
	u.waiting[c] = d
}

// forgetLocked is called when a call is taken out of the line.
func (u *unsettled) forgetLocked(c *call) {
	if len(u.waiting) > 0 {
		delete(u.waiting, c)
	}
}

// opensLocked enters a departure of the flow into the ledger, and returns its id: 0 for one that
// is final at once, as most are.
func (u *unsettled) opensLocked(f *flow, d *Departure, now time.Time) (id uint64) {
	if d == nil {
		return 0
	}
	if u.ledger == nil {
		most, timeout := defaultUnsettled, defaultSettling
		if u.bounds != nil {
			most, timeout = u.bounds.most, u.bounds.timeout
		}
		u.ledger, _ = scheduler.NewLedger(most, timeout) // configure has seen that they are valid
	}
	limits := []scheduler.Scheduler{f.line.sched}
	if f.own != nil {
		limits = append(limits, f.own.sched)
	}
	d.flow, d.id = f, u.ledger.Open(now, d.cost, limits...)
	return d.id
}

// expireLocked makes those final whose time is over.
func (u *unsettled) expireLocked(now time.Time) {
	if u.ledger != nil {
		u.ledger.Expire(now)
	}
}

// commit charges what leaves, with an id if it may be settled.
func (l *limits) commit(id uint64, due, now time.Time, cost int64) {
	if s, ok := l.sched.(scheduler.Settler); id != 0 && ok {
		s.CommitUnsettled(id, due, now, cost)
		return
	}
	l.sched.Commit(due, now, cost)
}

// unsettled returns how many departures may still be settled.
func (l *limits) unsettled() int {
	if s, ok := l.sched.(scheduler.Settler); ok {
		return s.Unsettled()
	}
	return 0
}

// unsettledUntilLocked reports whether calls of the key may still be settled, and if so when
// there is none any more, at the latest.
func (f *flow) unsettledUntilLocked(now time.Time) (until time.Time, ok bool) {
	u := &f.line.unsettled
	if u.ledger == nil {
		return until, false
	}
	u.expireLocked(now)
	if f.limits().unsettled() == 0 {
		return until, false
	}
	timeout := defaultSettling
	if u.bounds != nil {
		timeout = u.bounds.timeout
	}
	return now.Add(timeout), true
}

var errCannotSettle = errors.New("shaper: no limit can settle a call")

// settlesLocked returns why a call cannot be settled, or nil.
func (f *flow) settlesLocked() error {
	if scheduler.CanSettle(f.line.sched) || f.own != nil && scheduler.CanSettle(f.own.sched) {
		return nil
	}
	return fmt.Errorf("%w: %T: %w", errCannotSettle, f.line.sched, errors.ErrUnsupported)
}
