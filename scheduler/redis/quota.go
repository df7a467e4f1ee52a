package redis

import (
	_ "embed"
	"fmt"
	"math"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice/scheduler"
)

//go:embed fixed.lua
var fixedSource string

//go:embed log.lua
var logSource string

var (
	fixedScript = goredis.NewScript(fixedSource)
	logScript   = goredis.NewScript(logSource)
)

// A Quota is a number of units per window that all processes share, counted in Redis.
// Start with [NewFixedWindow] or [NewSlidingLog] and give it to [shaper.NewFrom], or to
// [NewShaper]; or beside a pace to [shaper.WithLimits].
//
// It is exact: all processes together never let more leave than the limit, by the clock
// of the server. What a process has taken and does not use goes back, and is lost for
// the window if the process dies. It serves the process first that asks first after it is free
// again: there is no order among processes.
//
// While Redis is away, [FailLocal] gives each process its part of the limit, anew, and
// has it count for all once Redis is back. So the limit can be exceeded by an outage; a
// quota that must not be wants [FailClosed].
//
// The zero Quota panics when it is used.
//
// All methods are safe for concurrent use, and none waits for the network. A Quota that
// is not asked, and that has counted all, has no goroutine and no timer, so it need not be
// closed.
type Quota struct {
	link   *link
	keys   keyring
	script *goredis.Script
	limit  int64
	window time.Duration // as it was stated
	counts int64         // the window that the script counts in, in microseconds
	shift  int64         // where windows begin
	log    bool
	policy Policy
	config *config

	mu sync.Mutex
	// Guarded by mu:
	again   func()
	hand    []grant
	units   int64     // in hand
	free    time.Time // when there will be more, as far as is known
	retry   time.Time // when to ask again, at the latest then
	demand  int64
	size    int64 // how many units to take at a time
	asked   bool
	heads   int64 // how often the first of a line has asked
	head    int64 // its cost
	owed    int64 // units that have left and are yet to be counted
	owedAt  time.Time
	rtt     time.Duration
	taking  bool
	looking *time.Timer
	away    bool
	share   scheduler.Scheduler
	stats   Stats
	closed  bool
}

// A grant is units that may leave until some time, and where they were taken from.
type grant struct {
	units int64
	until time.Time
	of    string
	start int64
}

// NewFixedWindow returns a quota of limit units in each window of the server's clock.
// Windows are aligned to UTC: a day begins at midnight, a week on Monday. Twice the limit
// may leave around a boundary.
//
// It refuses an empty name, a limit that is not from 1 to 2^40, a window below 1 ms or
// above 10 years or not of whole microseconds, and a Policy that was not chosen or leaves
// a process no unit.
func NewFixedWindow(client goredis.UniversalClient, name string, limit int64, window time.Duration, p Policy, opts ...Option) (*Quota, error) {
	q, err := newQuota(client, name, kindWindow, limit, window, p, opts)
	if err != nil {
		return nil, err
	}
	q.script, q.counts = fixedScript, window.Microseconds()
	// From the first day of year 1, a Monday.
	const before = 62135596800 * int64(time.Second/time.Microsecond)
	q.shift = before % q.counts
	return q, nil
}

// NewSlidingLog returns a quota of limit units in any window, wherever it begins. Redis
// keeps an entry for each step of the latest window, at most one for each unit. The
// window is longer by [WithLease], for which a process may keep what it has taken.
//
// It refuses what [NewFixedWindow] refuses.
func NewSlidingLog(client goredis.UniversalClient, name string, limit int64, window time.Duration, p Policy, opts ...Option) (*Quota, error) {
	q, err := newQuota(client, name, kindLog, limit, window, p, opts)
	if err != nil {
		return nil, err
	}
	q.script, q.log, q.counts = logScript, true, (window + q.config.lease).Microseconds()
	return q, nil
}

func newQuota(client goredis.UniversalClient, name, kind string, limit int64, window time.Duration, p Policy, opts []Option) (*Quota, error) {
	c, err := configure(opts)
	if err != nil {
		return nil, err
	}
	const decade = 10 * 365 * 24 * time.Hour
	switch {
	case name == "":
		return nil, errNoName
	case limit < 1 || limit > maxQ:
		return nil, fmt.Errorf("redis: limit %d: must be from 1 to 2^40", limit)
	case window < time.Millisecond || window > decade || window%time.Microsecond != 0:
		return nil, fmt.Errorf("redis: window %v: must be whole microseconds, from 1ms to 10 years", window)
	case p.kind == local && p.processes > limit:
		return nil, fmt.Errorf("redis: %v of a limit of %d: leaves a process nothing", p, limit)
	}
	if err := p.validate(); err != nil {
		return nil, err
	}
	l, err := newLink(client, c)
	if err != nil {
		return nil, err
	}
	return &Quota{link: l, keys: newKeyring(name, kind), limit: limit, window: window, policy: p, config: c, size: 1}, nil
}

// mustBeMade panics if q is a zero value.
func (q *Quota) mustBeMade() {
	if q.config == nil {
		panic(zeroQuota)
	}
}

// MaxCost returns the limit.
func (q *Quota) MaxCost() int64 {
	q.mustBeMade()
	return q.limit
}

// Notify implements the optional part of [scheduler.Scheduler].
func (q *Quota) Notify(again func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.again = again
}

// Stats returns a snapshot.
func (q *Quota) Stats() Stats {
	q.mu.Lock()
	defer q.mu.Unlock()
	stats := q.stats
	stats.InHand = q.units
	return stats
}

// Next implements [scheduler.Scheduler]. It never waits: for calls that have no unit yet
// it has some taken, and answers with a guess.
func (q *Quota) Next(t time.Time, ahead, n int64) time.Time {
	q.mustBeMade()
	ahead, n = max(ahead, 0), max(n, 1)
	q.mu.Lock()
	defer q.mu.Unlock()
	if n > q.limit || q.closed {
		return t.Add(never)
	}
	now := q.config.now()
	need := saturatingSum(ahead, n)
	soon := t.Sub(now) <= q.config.horizon
	if soon {
		q.asked = true
		q.demand = max(q.demand, need)
		if ahead == 0 {
			q.heads++
			q.head = n
		}
	}
	q.expireLocked(now)
	q.lookAtStoreLocked()
	at := q.nextLocked(now, t, ahead, n)
	if soon {
		q.planLocked(now, need, n)
	}
	return at
}

func (q *Quota) nextLocked(now, t time.Time, ahead, n int64) time.Time {
	have := q.units
	if t.After(now) {
		for _, g := range q.hand {
			if !g.until.After(t) {
				have -= g.units
			}
		}
	}
	need := saturatingSum(ahead, n)
	if have >= need {
		return t
	}
	if q.away {
		switch q.policy.kind {
		case open:
			return t
		case local:
			return q.share.Next(t, max(ahead-have, 0), n)
		default:
			// A line that waits asks again, so the store is looked for, and found.
			return later(t, q.config.soon(now, probeEvery))
		}
	}
	at := later(later(t, q.free), q.config.soon(now, max(q.rtt, time.Millisecond)))
	// One window after the other.
	if windows := (need - have - 1) / q.limit; windows > int64(never/2/q.window) {
		return t.Add(never)
	} else if windows > 0 {
		at = at.Add(time.Duration(windows) * q.window)
	}
	return at
}

// expireLocked lets go what may not leave any more.
func (q *Quota) expireLocked(now time.Time) {
	for len(q.hand) > 0 && !q.hand[0].until.After(now) {
		q.units -= q.hand[0].units
		q.stats.Missed += q.hand[0].units
		q.hand = q.hand[1:]
		q.demand, q.size = 1, 1
	}
}

// Commit implements [scheduler.Scheduler].
func (q *Quota) Commit(due, left time.Time, n int64) {
	q.mustBeMade()
	n = max(n, 1)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.demand = max(q.demand-n, 0)
	if q.units >= n {
		q.useLocked(n)
		return
	}
	if q.away && q.policy.kind != closed {
		q.stats.Alone += n
	}
	if q.away && q.policy.kind == local {
		q.share.Commit(due, left, n)
	}
	q.owed, q.owedAt = saturatingSum(q.owed, n), left
	q.planLocked(q.config.now(), 0, 0)
}

func (q *Quota) useLocked(n int64) {
	q.units -= n
	q.stats.Used += n
	for n > 0 {
		took := min(n, q.hand[0].units)
		q.hand[0].units -= took
		n -= took
		if q.hand[0].units == 0 {
			q.hand = q.hand[1:]
		}
	}
	if q.units == 0 {
		q.size = min(2*q.size, q.limit) // all of it was of use
	}
}

// Close hands back what is in hand and has counted what left alone, without waiting for
// it, and lets nothing leave any more. What left alone is not counted if Redis is away
// still. It always returns nil. Closing twice is fine.
func (q *Quota) Close() error {
	q.mustBeMade()
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return nil
	}
	q.closed = true
	if q.looking != nil {
		q.looking.Stop()
		q.looking = nil
	}
	q.giveBackLocked(q.config.now())
	return nil
}

func (q *Quota) lookAtStoreLocked() {
	away := q.link.failure() != nil
	if away == q.away {
		return
	}
	q.away = away
	if away && q.policy.kind == local && q.share == nil {
		// Both were checked when the quota was made. It is kept from one outage to the
		// next: what left within the window counts.
		part := q.limit / q.policy.processes
		if q.log {
			q.share, _ = scheduler.NewSlidingLog(part, q.window)
		} else {
			q.share, _ = scheduler.NewFixedWindow(part, q.window)
		}
	}
}

// countLocked returns what is still to be counted.
func (q *Quota) countLocked(now time.Time) int64 {
	if now.Sub(q.owedAt) > q.window {
		q.owed = 0 // it was in another window
	}
	return min(q.owed, math.MaxInt32)
}
