package redis

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice/scheduler"
)

// A Schedule is the share that this process has in a schedule of many: a GCRA whose
// state, TAT, is in Redis. It reserves slots there and lets each be used at its instant,
// once. Start with [New] and give it to [shaper.NewFrom], or to [NewShaper].
//
// It guarantees that all processes together keep the limit of [scheduler.GCRA], at most
// B + floor((w+J')/T) units in any closed window of length w, where J' is the tolerance
// and a round trip. It goes by the clock of the server: those of the processes may show
// what they like. A process whose slots come and go unused loses them, and never catches
// up.
//
// A cost n is n slots: it leaves with the last of them. For a cost above the burst that
// means it saves up before it leaves, where a local GCRA has it pay afterwards.
//
// What [Schedule.Next] says of calls that have no slot yet is a guess, which takes no
// account of what other processes will reserve: it is never later than what comes out by
// more than a round trip.
//
// Its rate is fixed: [shaper.Shaper.SetRate] and [shaper.Shaper.Scale] return an error. A slot is
// reserved for a line in which a call waits, so [shaper.Shaper.Allow] says yes only to
// what is in hand; ask [Schedule.Allow].
//
// The zero Schedule panics when it is used.
//
// All methods are safe for concurrent use, and none but [Schedule.Allow] waits for the
// network. A Schedule that is not asked has no goroutine and no timer, so it need not be
// closed; one that has yet to tell Redis of a hold, or of units that left without a slot,
// has a timer until it has.
type Schedule struct {
	link   *link
	keys   keyring
	rate   scheduler.Rate
	pace   pace
	burst  int64
	policy Policy
	config *config

	mu sync.Mutex
	// Guarded by mu:
	again  func()
	hand   lease
	tail   time.Time // TAT as of the latest reply
	told   told      // the same, as it was told
	owed   int64     // units that left without a slot and are yet to be reserved
	demand int64     // units that wait, as far as the line has said
	doubt  bool      // a run came back unused since demand was last raised
	asked  bool      // the line has asked since the last look
	later  bool      // the line has asked for a time that is far off
	heads  int64     // how often the first of a line has asked
	head   int64     // its cost
	even   bool      // nothing is saved up at the next step
	stale  surplus   // what the next step hands back
	held   time.Time // a hold that the next step tells the store of
	seen   time.Time // when the latest reply came
	rtt    time.Duration
	steps  *scheduler.GCRA // paces them
	gathering
	taking  bool            // a step is under way
	delayed *time.Timer     // begins a step that had to wait, or nil
	looking *time.Timer     // looks whether a call waits, or nil
	away    bool            // the store was away at the latest look
	rejoins bool            // it is back, and the next step is the first one since
	share   *scheduler.GCRA // of this process while the store is away
	counts  Stats
	closed  bool
}

// Stats tells what a [Schedule] has done.
type Stats struct {
	Steps    int64 // calls of the script, failed ones included
	Failed   int64 // those that had no answer
	Reserved int64 // units
	Used     int64 // units that left in a slot
	Missed   int64 // units whose slot went by
	Returned int64 // units that were handed back
	Alone    int64 // units that left by the policy, without Redis
	InHand   int64 // units that are reserved now
}

// New returns a schedule that all processes share that use the same name, in the same
// database. They must state the same rate and burst.
//
// It asks Redis nothing yet. It refuses an empty name, an invalid rate or burst, those
// whose numbers are too large for a script (T or a burst of decades; a fraction with a
// denominator beyond 2^40), [scheduler.Unlimited], and a Policy that was not chosen.
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
	return newSchedule(l, newKeyring(name, kindPace), r, burst, p, c)
}

func newSchedule(l *link, keys keyring, r scheduler.Rate, burst int64, p Policy, c *config) (*Schedule, error) {
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
	if _, err := p.share(r, burst, c); err != nil {
		return nil, err
	}
	steps, err := scheduler.NewGCRA(scheduler.Per(2, c.horizon), 10)
	if err != nil {
		return nil, fmt.Errorf("redis: %w", err)
	}
	return &Schedule{
		link: l, keys: keys, rate: r, pace: pace, burst: burst, policy: p, config: c,
		hand: lease{pace: pace}, steps: steps,
	}, nil
}

// mustBeMade panics if s is a zero value.
func (s *Schedule) mustBeMade() {
	if s.config == nil {
		panic(zeroSchedule)
	}
}

// Rate returns the rate that all processes share.
func (s *Schedule) Rate() scheduler.Rate { return s.rate }

// Burst returns how many units may leave back to back after an idle spell.
func (s *Schedule) Burst() int64 { return s.burst }

// Tolerance returns J, after which an unused slot is let go.
func (s *Schedule) Tolerance() time.Duration {
	s.mustBeMade()
	return s.config.tolerance
}

// MaxCost returns what one step can reserve at the most: 2^31 - 1 units, or those of 71
// years.
func (s *Schedule) MaxCost() int64 {
	s.mustBeMade()
	return s.pace.maxUnits()
}

// Notify implements the optional part of [scheduler.Scheduler].
func (s *Schedule) Notify(again func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.again = again
}

// Stats returns a snapshot.
func (s *Schedule) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	counts := s.counts
	counts.InHand = s.hand.units
	return counts
}

// Next implements [scheduler.Scheduler]. It never waits: for calls without a slot it has
// some reserved, and answers with a guess.
func (s *Schedule) Next(t time.Time, ahead, n int64) time.Time {
	s.mustBeMade()
	ahead, n = max(ahead, 0), max(n, 1)
	s.mu.Lock()
	defer s.mu.Unlock()
	if n > s.MaxCost() || s.closed {
		return t.Add(never)
	}
	now := s.config.now()
	// What may not leave for long, as another limit or a hold is in its way, needs no
	// slot yet: slots that are reserved now are for now.
	soon := t.Sub(now) <= s.horizonLocked()
	need := saturatingSum(ahead, n)
	if soon {
		s.asked = true
		if need > s.demand {
			s.demand, s.doubt = need, false
			s.joined++
		}
		if ahead == 0 {
			s.heads++
			s.head = n
		}
	} else {
		s.later = true
	}
	if ahead == 0 && !t.After(now) {
		s.missLocked(s.hand.missed(n, now.Add(-s.config.tolerance)))
	}
	s.lookAtStoreLocked(now)
	at := s.nextLocked(now, t, ahead, n)
	if soon {
		head := int64(0)
		if ahead == 0 {
			head = n
		}
		s.planLocked(now, need, head)
	}
	return at
}

// missLocked lets the first slots go. Calls that wait for them still do.
func (s *Schedule) missLocked(n int64) {
	if n > 0 {
		if n == s.hand.units {
			// If no other has reserved any behind them, the next step begins where they
			// did: a process that was late loses the time, and not its turn.
			s.stale.rest, s.stale.tail, s.stale.returned = s.hand.surplus()
			s.stale.back = true
		}
		s.hand.drop(n)
		s.counts.Missed += n
	}
}

// nextLocked answers from what is known.
func (s *Schedule) nextLocked(now, t time.Time, ahead, n int64) time.Time {
	ref := later(now, t)
	skip := int64(0)
	if t.After(now) {
		skip = s.hand.missed(n, t.Add(-s.config.tolerance))
	}
	need := saturatingSum(ahead, n)
	have := s.hand.units - skip
	if have >= need {
		return later(t, s.hand.slot(skip+need-1))
	}
	if s.away {
		switch s.policy.kind {
		case open:
			return t
		case local:
			return s.share.Next(t, max(ahead-have, 0), n)
		default:
			// A line that waits asks again, so the store is looked for, and found.
			return later(t, s.config.soon(now, probeEvery))
		}
	}
	// The slots to come lie behind TAT, and they come with the next reply.
	first := later(ref, s.tail.Add(-s.rate.For(s.burst-1)))
	first = later(first, s.config.soon(now, max(s.rtt, time.Millisecond)))
	wait := s.rate.For(need - have - 1)
	if wait > never/2 {
		return t.Add(never)
	}
	return first.Add(wait)
}

// Commit implements [scheduler.Scheduler].
func (s *Schedule) Commit(due, left time.Time, n int64) {
	s.mustBeMade()
	n = max(n, 1)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.demand = max(s.demand-n, 0)
	// Its slots are the first ones in hand.
	switch {
	case s.hand.units >= n:
		s.hand.drop(n)
		s.counts.Used += n
	case s.away && s.policy.kind == open:
		s.counts.Alone += n
	case s.away && s.policy.kind == local:
		s.share.Commit(due, left, n)
		s.counts.Alone += n
	default:
		// It has left without asking, or the answer has changed since. It counts.
		used := s.hand.units
		s.hand.drop(used)
		s.counts.Used += used
		s.owed = saturatingSum(s.owed, n-used)
		s.planLocked(s.config.now(), 0, 0)
	}
}

// Forfeit gives up what was saved up until t, as [scheduler.GCRA.Forfeit] does: after
// the first call behind a gate the others leave one T apart.
func (s *Schedule) Forfeit(t time.Time, keep int64) {
	s.mustBeMade()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.burst == 1 {
		return
	}
	s.even = true
	// Slots in hand that lie closer than that are of the burst.
	kept := lease{pace: s.pace}
	next := t
	for k := range s.hand.runs {
		r := s.hand.runs[k]
		for r.next < r.end {
			at := r.at(s.pace, r.next)
			if kept.units >= keep && at.Before(next) {
				r.next++
				s.counts.Missed++
				continue
			}
			one := r
			one.end = r.next + 1
			kept.add(one)
			r.next++
			next = later(at, next).Add(s.rate.Interval())
		}
	}
	s.hand = kept
}

// Close hands back what is reserved, without waiting for it, and lets nothing leave any
// more. It always returns nil. Closing twice is fine.
func (s *Schedule) Close() error {
	s.mustBeMade()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	for _, timer := range []**time.Timer{&s.delayed, &s.looking} {
		if *timer != nil {
			(*timer).Stop()
			*timer = nil
		}
	}
	s.giveBackLocked(s.config.now())
	return nil
}

// lookAtStoreLocked notices that the store has gone or come back.
func (s *Schedule) lookAtStoreLocked(now time.Time) {
	away := s.link.failure() != nil
	if away == s.away {
		return
	}
	s.away = away
	if s.policy.kind != local {
		return
	}
	if !away {
		s.rejoins = true
		return
	}
	s.share, _ = s.policy.share(s.rate, s.burst, s.config)
	// It begins behind the slots that others may still have in hand: those up to the TAT
	// that is known, and one run more for each. And it does so at a random time of its
	// interval, as all find out together and should not send together.
	begin := now
	if s.tail.After(now) {
		run := s.rate.For(s.mostLocked())
		begin = s.tail.Add(min(run, never/time.Duration(s.policy.processes)) * time.Duration(s.policy.processes-1))
	}
	interval := s.share.Rate().Interval()
	begin = begin.Add(time.Duration(rand.Int64N(int64(interval))) + 1)
	spent := begin.Add(-interval)
	s.share.Commit(spent, spent, s.share.Burst())
}

// horizonLocked returns how far ahead slots are reserved.
func (s *Schedule) horizonLocked() time.Duration { return max(s.config.horizon, 2*s.rtt) }

// mostLocked returns the units of a horizon, which is the longest run.
func (s *Schedule) mostLocked() int64 { return max(s.pace.within(s.horizonLocked()), 1) }

// pendingLocked reports whether the store has yet to be told of anything, without being asked.
func (s *Schedule) pendingLocked(now time.Time) bool { return s.owed > 0 || s.tellsHoldLocked(now) }

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

func saturatingSum(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
