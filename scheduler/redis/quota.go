package redis

import (
	"context"
	"fmt"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice/scheduler"
)

// A Quota is a number of units per window that all processes share, counted in Redis. Start with
// [NewFixedWindow] or [NewSlidingLog] and give it to [NewShaper], or to [shaper.NewFrom]; or
// beside a pace to [shaper.WithLimits].
//
// It is exact: all processes together never let more leave than the limit, by the clock of the
// server. What a process has taken and does not use goes back, and is lost for the window if the
// process is killed. It serves the process first that asks first after it is free again: there is
// no order among processes.
//
// While Redis is away, [FailLocal] gives each process its part of the limit, anew, and has it
// count for all once Redis is back. So the limit can be exceeded by an outage; a quota that must
// not be wants [FailClosed].
//
// The zero Quota panics when it is used.
//
// All methods are safe for concurrent use, and none waits for the network. A Quota whose line is
// empty, and that has counted all, has no goroutine and no timer, so it need not be closed.
type Quota struct {
	pump
	grants
	limit   int64
	window  time.Duration // as it was stated
	counted time.Duration // the window that the store counts in
	shift   int64         // where windows begin
	log     bool
}

// grants are the units in hand. Guarded by the lock of the pump.
type grants struct {
	rows     []grant
	units    int64
	returned []tagged[grant]
	free     time.Time // when there will be more, as far as is known
	retry    time.Time // when to ask again
	size     int64     // how many units to take at a time
}

// A grant is units that may leave until some time, and where they were taken from.
type grant struct {
	units int64
	until time.Time
	of    string
}

// retryAfter is when a quota that was used up is asked again: others may have handed back what
// they did not need.
const retryAfter = time.Second

// NewFixedWindow returns a quota of limit units in each window of the server's clock. Windows are
// aligned to UTC: a day begins at midnight, a week on Monday. Twice the limit may leave around a
// boundary.
//
// It refuses an empty name, a limit that is not from 1 to 2^40, a window below 1 ms or above 10
// years or not of whole microseconds, a Policy that was not chosen or leaves a process no unit,
// and a [goredis.Ring].
func NewFixedWindow(client goredis.UniversalClient, name string, limit int64, window time.Duration, p Policy, opts ...Option) (*Quota, error) {
	q, err := newQuota(client, name, kindWindow, limit, window, p, opts)
	if err != nil {
		return nil, err
	}
	q.counted = window
	// From the first day of year 1, a Monday.
	const before = 62135596800 * int64(time.Second/time.Microsecond)
	q.shift = before % window.Microseconds()
	return q, nil
}

// NewSlidingLog returns a quota of limit units in any window, wherever it begins. Redis keeps an
// entry for each step of the latest window, at most one for each unit. The window is longer by
// [WithLease], for which a process may keep what it has taken.
//
// It refuses what [NewFixedWindow] refuses.
func NewSlidingLog(client goredis.UniversalClient, name string, limit int64, window time.Duration, p Policy, opts ...Option) (*Quota, error) {
	q, err := newQuota(client, name, kindLog, limit, window, p, opts)
	if err != nil {
		return nil, err
	}
	q.log, q.counted = true, window+q.config.lease
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
	case p.most > limit:
		return nil, fmt.Errorf("redis: %v of a limit of %d: leaves a process nothing", p, limit)
	}
	if err := p.validate(); err != nil {
		return nil, err
	}
	l, err := newLink(client, c)
	if err != nil {
		return nil, err
	}
	q := &Quota{limit: limit, window: window, grants: grants{size: 1}}
	q.pump = pump{hand: q, link: l, lane: l.newLane(), key: keyOf(name, kind), policy: p, config: c, most: limit, tellsAlone: true}
	return q, nil
}

func (q *Quota) inHand() int64 { return q.units }

func (q *Quota) have(t time.Time, n int64) (time.Time, bool) {
	units := q.units
	for _, g := range q.rows {
		if !g.until.After(t) {
			units -= g.units
		}
	}
	return t, units >= n
}

func (q *Quota) guess(t, now time.Time, ahead, n int64) time.Time {
	need := saturatingSum(ahead, n)
	if _, ok := q.have(t, need); ok {
		return t
	}
	t = later(t, q.free)
	// One window after the other.
	if windows := (need - q.units - 1) / q.limit; windows > int64(never/2/q.window) {
		return t.Add(never)
	} else if windows > 0 {
		t = later(t, now.Add(time.Duration(windows-1)*q.window))
	}
	return t
}

func (q *Quota) use(_ time.Time, n int64) (used int64) {
	for used < n && len(q.rows) > 0 {
		g := &q.rows[0]
		took := min(n-used, g.units)
		g.units -= took
		used += took
		if g.units == 0 {
			q.rows = q.rows[1:]
		}
	}
	q.units -= used
	if used > 0 && q.units == 0 {
		q.size = min(2*q.size, q.limit) // all of it was of use
	}
	return used
}

func (q *Quota) expire(now time.Time) (missed int64) {
	for len(q.rows) > 0 && !q.rows[0].until.After(now) {
		missed += q.rows[0].units
		q.rows = q.rows[1:]
		q.size = 1
	}
	q.units -= missed
	return missed
}

func (q *Quota) due(now time.Time, w want) (step bool, look time.Time) {
	if w.units == 0 || q.units >= w.cost {
		return false, time.Time{}
	}
	if q.retry.After(now) {
		return false, q.retry
	}
	return true, time.Time{}
}

func (q *Quota) send(now time.Time, w want) (func(context.Context) error, func(sent, received time.Time)) {
	probes := !q.standing.up
	r := countRequest{header: q.link.next(q.lane, now), log: q.log, window: q.counted, shift: q.shift, limit: q.limit}
	if now.Sub(q.chargeAt) > q.window {
		q.charged = nil // it was in another window
	}
	charged := len(q.charged)
	r.charged = append(r.charged, q.charged...)
	if !probes {
		if step, _ := q.due(now, w); step {
			r.least = w.cost - q.units
			r.units = min(max(min(w.units-q.units, q.size), r.least), q.limit)
		} else if q.closed || !q.sparing.IsZero() && now.Sub(q.sparing) >= spareAfter {
			q.giveBack(r.number, q.units-w.units)
		}
	}
	r.returned = q.returned
	var reply countReply
	send := func(ctx context.Context) error {
		err := q.link.ask(ctx, &r.header, probes, func(ctx context.Context) (heard, error) {
			var err error
			reply, err = q.link.store.count(ctx, q.key, r)
			return reply.heard, err
		})
		q.mu.Lock()
		defer q.mu.Unlock()
		q.lane.sent(r.header, now, err)
		return err
	}
	accept := func(sent, received time.Time) {
		q.returned = nil
		for _, c := range q.charged[:charged] {
			q.counts.Reserved += c.is
			q.counts.Used += c.is
		}
		q.charged, q.rejoins, q.living = q.charged[charged:], false, reply.living
		// An instant of the store's lies between what it is if the store has read its clock when
		// the request was sent, and what it is if that was when the reply came. What must not be
		// too late goes by the first, what must not be too early by the other.
		wait := time.Duration(reply.at-reply.now) * time.Microsecond
		g := grant{units: reply.granted, until: sent.Add(wait), of: reply.of}
		if q.log {
			g.until = sent.Add(q.config.lease)
		}
		if reply.granted > 0 {
			q.rows = append(q.rows, g)
			q.units += g.units
			q.counts.Reserved += g.units
			q.free, q.retry = time.Time{}, time.Time{}
		} else if r.units > 0 && reply.at > reply.now {
			q.free = received.Add(wait)
			q.retry = received.Add(min(wait, retryAfter))
		}
	}
	return send, accept
}

// giveBack has the last units in hand go back with a request.
func (q *Quota) giveBack(number, units int64) {
	for units > 0 && len(q.rows) > 0 {
		last := &q.rows[len(q.rows)-1]
		back := *last
		back.units = min(units, last.units)
		last.units -= back.units
		q.returned = append(q.returned, tagged[grant]{number, back})
		q.units -= back.units
		units -= back.units
		q.counts.Returned += back.units
		q.size = 1
		if q.log {
			last.of = shortened(last.of, back.units)
		}
		if last.units == 0 {
			q.rows = q.rows[:len(q.rows)-1]
		}
	}
}

func (q *Quota) freshAt() time.Time { return time.Time{} }

func (q *Quota) local(processes int64) scheduler.Scheduler {
	if q.share != nil {
		return q.share // what left alone within the window counts
	}
	part := q.limit / processes
	if part < 1 {
		return nil
	}
	var share scheduler.Scheduler
	if q.log {
		share, _ = scheduler.NewSlidingLog(part, q.window)
	} else {
		share, _ = scheduler.NewFixedWindow(part, q.window)
	}
	return share
}

// shortened returns what the entry of a log is called of which units have gone back.
func shortened(entry string, units int64) string {
	var lane string
	var number, had, charged int64
	if _, err := fmt.Sscan(entry, &lane, &number, &had, &charged); err != nil {
		return entry
	}
	return fmt.Sprintf("%s %d %d %d", lane, number, had-units, charged)
}
