package redis

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice/scheduler"
)

// A Schedule is the share that this process has in a schedule of many: a GCRA whose state is in
// Redis. It reserves slots there for what waits, and lets each be used at its instant, once. Start
// with [New] and give it to [NewShaper], or to [shaper.NewFrom].
//
// It guarantees that all processes together keep the limit of [scheduler.GCRA], at most
// max(B, c) + floor((w+J+R)/T) units in any closed window of length w, where c is the largest
// cost, J the tolerance and R a round trip. It goes by the clock of the server: those of the
// processes may show what they like. Slots that no call needs any more go back, and are used
// first; a process that is killed takes one run with it.
//
// A cost n is n slots: it leaves with the last of them. For a cost above the burst that means it
// saves up before it leaves, where a local GCRA has it pay afterwards.
//
// Its rate is fixed: [shaper.Shaper.SetRate] and [shaper.Shaper.Scale] return an error. A slot is
// reserved for a line in which a call waits, so [shaper.Shaper.Allow] says yes only to what is in
// hand; ask [Schedule.Allow].
//
// The zero Schedule panics when it is used.
//
// All methods are safe for concurrent use, and none but [Schedule.Allow] waits for the network. A
// Schedule whose line is empty has no goroutine and no timer, so it need not be closed; one that
// has yet to tell Redis something has a timer until it has.
type Schedule struct {
	pump
	rate      scheduler.Rate
	tolerance time.Duration

	// Guarded by the lock of the pump:
	slots
	epoch    string // of the slots
	returned []tagged[row]
	told     time.Time // when a unit may leave that is not reserved, as the store told
	toldTill time.Time // how long that counts
	tat      reading   // TAT as the store told it, and when that is here
	held     time.Time // a hold that the store is to be told of
	heard    time.Time // when the latest reply came
	stale    []row     // that has passed unused, for the next step
	even     bool      // nothing is saved up at the next step
	meters   []*lane   // of calls of Allow, those that none uses
}

// New returns a schedule that all processes share that use the same name, in the same database.
// They must state the same rate and burst.
//
// It asks Redis nothing yet. It refuses an empty name, an invalid rate or burst, those whose
// numbers are too large for a script (T or a burst of decades; a fraction with a denominator
// beyond 2^40), [scheduler.Unlimited], a Policy that was not chosen, and a [goredis.Ring].
func New(client goredis.UniversalClient, name string, r scheduler.Rate, burst int64, p Policy, opts ...Option) (*Schedule, error) {
	c, err := configure(opts)
	if err != nil {
		return nil, err
	}
	if name == "" {
		return nil, errNoName
	}
	l, err := newLink(client, c)
	if err != nil {
		return nil, err
	}
	return newSchedule(l, keyOf(name, kindPace), r, burst, p, c)
}

func newSchedule(l *link, key string, r scheduler.Rate, burst int64, p Policy, c *config) (*Schedule, error) {
	pace, err := newPace(r)
	if err != nil {
		return nil, err
	}
	if burst < 1 || burst > pace.maxUnits() {
		return nil, fmt.Errorf("redis: burst %d: must be from 1 to %d at rate %v", burst, pace.maxUnits(), r)
	}
	if err := p.validate(); err != nil {
		return nil, err
	}
	s := &Schedule{rate: r, tolerance: c.tolerance, slots: slots{pace: pace, burst: burst}}
	if s.tolerance == 0 {
		s.tolerance = max(leastTolerance, r.Interval()/10)
	}
	if _, err := s.share1(max(p.most, 1)); err != nil {
		return nil, fmt.Errorf("redis: %v: %w", p, err)
	}
	s.pump = pump{hand: s, link: l, lane: l.newLane(), key: key, policy: p, config: c, most: pace.maxUnits()}
	return s, nil
}

// Rate returns the rate that all processes share.
func (s *Schedule) Rate() scheduler.Rate { return s.rate }

// Burst returns how many units may leave back to back after an idle spell.
func (s *Schedule) Burst() int64 { return s.burst }

// Tolerance returns J, after which an unused slot is let go.
func (s *Schedule) Tolerance() time.Duration {
	s.mustBeMade()
	return s.tolerance
}

// Hold implements [scheduler.Holder]. With [WithSharedHold] it has all processes held until then;
// it does not wait for that. Of two holds the later one stands.
func (s *Schedule) Hold(until time.Time) {
	s.mustBeMade()
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.config.now()
	if !s.config.sharedHold || s.closed || !until.After(later(now, s.held)) {
		return
	}
	// As the rest, it is told as a time from now: the clocks of others matter not.
	s.held = now.Add(until.Sub(now))
	s.planLocked(now)
}

// Forfeit implements [scheduler.Forfeiter], for all processes.
func (s *Schedule) Forfeit(t time.Time, keep int64) {
	s.mustBeMade()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.burst == 1 {
		return
	}
	s.even = true
	// Slots in hand that lie closer than T are of the burst.
	next := t
	for i, kept := int64(0), int64(0); i < s.units; {
		at := s.slot(i)
		if kept >= keep && at.Before(next) {
			s.cut(i, 1)
			s.counts.Missed++
			continue
		}
		next = later(at, next).Add(s.rate.Interval())
		i, kept = i+1, kept+1
	}
}

// Forfeited implements [scheduler.Forfeiter].
func (s *Schedule) Forfeited(t time.Time, keep int64) scheduler.Scheduler {
	s.mustBeMade()
	return forfeited{s, t, max(keep, 1)}
}

// forfeited is a Schedule with nothing saved up at t, for predictions.
type forfeited struct {
	*Schedule
	t    time.Time
	keep int64
}

func (f forfeited) Next(t time.Time, ahead, n int64) time.Time {
	at := f.Schedule.Next(t, ahead, n)
	if more := saturatingSum(max(ahead, 0), max(n, 1)) - f.keep; f.burst > 1 && more > 0 {
		at = later(at, f.t.Add(min(f.rate.For(more), never/2)))
	}
	return at
}

func (f forfeited) FreshAt() (time.Time, bool) {
	at, ok := f.Schedule.FreshAt()
	return later(at, f.t.Add(min(f.rate.For(f.burst), never/2))), ok
}

func (s *Schedule) inHand() int64 { return s.units }

func (s *Schedule) have(t time.Time, n int64) (time.Time, bool) {
	_, at, ok := s.find(t, s.tolerance, n)
	return at, ok
}

func (s *Schedule) guess(t, now time.Time, ahead, n int64) time.Time {
	need := saturatingSum(ahead, n)
	if ahead > 0 && s.units >= need {
		return later(t, s.slot(need-1))
	}
	if now.Before(s.toldTill) {
		t = later(t, s.told)
	}
	// All units that are yet to leave do so at the rate, whatever process they are of.
	wait := s.rate.For(max(need-s.burst, 0))
	if wait > never/2 {
		return t.Add(never)
	}
	return later(t, now.Add(wait-s.tolerance))
}

func (s *Schedule) use(t time.Time, n int64) int64 {
	i, at, ok := s.find(t, s.tolerance, n)
	if ok && !at.After(t) {
		s.cut(i, n)
		return n
	}
	used := min(n, s.units)
	s.cut(0, used)
	return used
}

func (s *Schedule) expire(now time.Time) (missed int64) {
	// What a call saves up that costs more than the burst is not missed.
	if keep := s.want.cost; keep > s.burst && s.units >= keep {
		if _, _, ok := s.find(now, s.tolerance, keep); ok {
			return 0
		}
	}
	missed = s.usable(now, s.tolerance)
	if rows := s.cut(0, missed); missed > 0 && s.units == 0 {
		// If no other has reserved any behind them, the next step begins where they did: a process
		// that was late loses the time, and not its turn.
		s.stale = rows[len(rows)-1:]
	}
	return missed
}

// longest returns the most units that are asked for ahead of the call that is next.
func (s *Schedule) longest() int64 { return max(s.pace.within(s.config.reach(s.link)), 1) }

// fits reports whether what is in hand will do for the call that is next.
func (s *Schedule) fits(now time.Time, w want) bool {
	at, ok := s.have(later(now, w.from), w.cost)
	return ok && (w.deadline.IsZero() || at.Before(w.deadline))
}

// within returns by when the store must let a call leave that has a deadline, from now, so that
// it is told in time.
func (s *Schedule) within(now time.Time, w want) time.Duration {
	if w.deadline.IsZero() {
		return -1
	}
	return w.deadline.Sub(now) - s.link.roundTrip()
}

func (s *Schedule) due(now time.Time, w want) (step bool, look time.Time) {
	if s.held.After(now) {
		return true, time.Time{}
	}
	if w.units > 0 && !s.fits(now, w) {
		switch {
		case w.deadline.IsZero():
			return true, time.Time{}
		case now.Before(s.toldTill) && !s.told.Before(w.deadline):
			return false, s.toldTill // it is too late for it, as far as is known
		}
		return s.within(now, w) > 0, time.Time{}
	}
	if w.units > s.units {
		// More is asked for in time for the calls behind.
		if s.slot(s.units-1).Sub(now) <= 2*s.link.roundTrip()+time.Millisecond {
			return true, time.Time{}
		}
	}
	if s.config.sharedHold && s.units > 0 {
		// A horizon before a slot is used it is confirmed: a process may have held all since.
		if at := later(s.slot(0).Add(-s.config.horizon), s.heard.Add(s.config.horizon)); at.After(now) {
			return false, at
		}
		return true, time.Time{}
	}
	return false, time.Time{}
}

func (s *Schedule) send(now time.Time, w want) (func(context.Context) error, func(sent, received time.Time)) {
	probes := !s.standing.up
	r := s.request(s.lane, now)
	if s.rejoins || s.standing.err != nil && s.policy.kind == local {
		// All processes have found the store by then.
		r.settle = probeEvery + s.link.timeout
	}
	r.hold = max(s.held.Sub(now), 0)
	held := s.held
	r.even, s.even = s.even, false
	charged := len(s.charged)
	r.charged = append(r.charged, s.charged...)
	if !probes {
		switch within := s.within(now, w); {
		case w.units > 0 && !s.fits(now, w):
			// What is in hand does not suit it: it may suit others.
			s.giveBack(r.number, s.units)
			if w.deadline.IsZero() || within > 0 {
				r.cost, r.lead, r.within = w.cost, w.cost, within
				r.rest = max(min(w.units, s.longest())-w.cost, 0)
			}
		case w.units > s.units:
			r.rest = min(w.units-s.units, s.longest())
		case s.closed, !s.sparing.IsZero() && now.Sub(s.sparing) >= spareAfter:
			s.giveBack(r.number, s.units-w.units)
		}
	}
	for _, r2 := range s.stale {
		s.returned = append(s.returned, tagged[row]{r.number, r2})
	}
	s.stale = nil
	r.span = s.config.reach(s.link)
	r.returned = s.returned
	var reply paceReply
	send := func(ctx context.Context) error {
		err := s.link.ask(ctx, &r.header, probes, func(ctx context.Context) (heard, error) {
			var err error
			reply, err = s.link.store.pace(ctx, s.key, r)
			return reply.heard, err
		})
		s.mu.Lock()
		defer s.mu.Unlock()
		s.lane.sent(r.header, now, err)
		s.even = s.even || r.even && err != nil
		return err
	}
	accept := func(_, received time.Time) {
		s.returned = nil
		for _, c := range s.charged[:charged] {
			s.counts.Reserved += c.is
			s.counts.Used += c.is
		}
		s.charged = s.charged[charged:]
		if s.held.Equal(held) {
			s.held = time.Time{}
		}
		s.rejoins = false
		s.accept(r, reply, received)
	}
	return send, accept
}

// request returns one of a lane that asks for nothing.
func (s *Schedule) request(n *lane, now time.Time) paceRequest {
	return paceRequest{
		header: s.link.next(n, now), pace: s.pace, burst: s.burst, epoch: s.epoch,
		known: s.tat.store, remaining: max(s.tat.heard.Sub(now), 0), within: -1,
	}
}

// giveBack has the last units in hand go back with a request.
func (s *Schedule) giveBack(number, units int64) {
	for _, r := range s.cut(s.units-units, units) {
		s.returned = append(s.returned, tagged[row]{number, r})
		s.counts.Returned += r.units
	}
}

// accept takes in a reply to a step, or to a meter.
func (s *Schedule) accept(r paceRequest, got paceReply, received time.Time) {
	read := reading{received, got.now}
	local := func(us int64) time.Time { return received.Add(time.Duration(us-got.now) * time.Microsecond) }
	if got.epoch != s.epoch {
		// What was reserved in another epoch may have been given to others by now.
		s.counts.Missed += s.units
		s.cut(0, s.units)
		s.epoch = got.epoch
	}
	for got.hold > got.now && s.units > 0 && s.slot(0).Before(local(got.hold)) {
		s.cut(0, 1)
		s.counts.Missed++
	}
	s.living, s.heard = got.living, received
	s.tat = reading{local(got.tat), got.tat}
	s.told = read.at(s.pace, got.next)
	s.toldTill = received.Add(min(s.rate.Interval(), s.config.horizon))
	if r.units() == 0 {
		s.toldTill = received // it was told of no call
	}
	for _, row := range got.rows {
		row.read = read
		s.slots.add(row)
		s.counts.Reserved += row.units
	}
}

// units returns how many a request asks for.
func (r paceRequest) units() int64 { return r.cost + r.rest }

func (s *Schedule) freshAt() time.Time { return s.held }

// share1 returns the schedule of one process on its own, of so many.
func (s *Schedule) share1(processes int64) (*scheduler.GCRA, error) {
	period := s.rate.Period()
	if int64(period) > int64(never)/processes {
		return nil, fmt.Errorf("the share of rate %v takes longer than %v", s.rate, never)
	}
	share := scheduler.Per(s.rate.Units(), period*time.Duration(processes))
	return scheduler.NewGCRA(share, max(s.burst/processes, 1), scheduler.WithTolerance(s.tolerance))
}

func (s *Schedule) local(processes int64) scheduler.Scheduler {
	share, err := s.share1(processes)
	if err != nil {
		return nil
	}
	// It begins behind the slots that others may still have in hand: those up to the TAT that
	// is known, and one run more for each. And it does so at a random time of its interval, as all
	// find out together and should not send together.
	now := s.config.now()
	begin := now
	if s.tat.heard.After(now) {
		run := s.rate.For(s.longest())
		begin = s.tat.heard.Add(min(run, never/time.Duration(processes)) * time.Duration(processes-1))
	}
	interval := share.Rate().Interval()
	spent := begin.Add(time.Duration(rand.Int64N(int64(interval))) + 1 - interval)
	share.Commit(spent, spent, share.Burst())
	return share
}
