package redis

import (
	"context"
	"fmt"
	"time"
)

// retryAfter is when a quota that was used up is asked again: others may have handed back
// what they did not need.
const retryAfter = time.Second

// A demanded is what one step of a quota asks for.
type demanded struct {
	units  int64
	least  int64 // fewer are of no use
	charge int64 // these have left already
	back   grant
}

// planLocked begins a step if one is needed.
func (q *Quota) planLocked(now time.Time, need, head int64) {
	switch {
	case q.closed || q.taking:
		return
	case q.away:
		q.lookLaterLocked(now, probeEvery/2)
		if q.link.mayProbe() {
			q.takeLocked(demanded{})
		}
		return
	}
	d := demanded{charge: q.countLocked(now)}
	if waiting := max(need, q.demand); q.units < max(head, 1) && waiting > q.units && !q.retry.After(now) {
		d.units = min(max(min(waiting-q.units, q.size), head-q.units), q.limit)
		d.least = max(head-q.units, 1)
	}
	switch {
	case d.units == 0 && d.charge == 0:
		q.lookLaterLocked(now, q.config.horizon)
	case d.units == 0:
		q.takeLocked(d)
	default:
		q.taking = true
		go q.takeForLine(d)
	}
}

// takeForLine takes units if a call waits, as [Schedule.reserve] does.
func (q *Quota) takeForLine(d demanded) {
	q.mu.Lock()
	again, heads := q.again, q.heads
	q.mu.Unlock()
	if again != nil {
		again()
	}
	q.mu.Lock()
	now := q.config.now()
	q.lookAtStoreLocked()
	if again != nil && q.heads == heads {
		d.units, d.least = 0, 0
	} else if q.heads != heads && q.head > q.units {
		d.least = q.head - q.units
		d.units = min(max(d.units, d.least), q.limit)
	}
	if q.closed || q.away || d.units == 0 && d.charge == 0 {
		q.taking = false
		q.endLocked(now, nil)
		q.mu.Unlock()
		return
	}
	q.stats.Steps++
	q.mu.Unlock()
	q.take(d)
}

func (q *Quota) takeLocked(d demanded) {
	q.taking = true
	q.stats.Steps++
	go q.take(d)
}

func (q *Quota) take(d demanded) {
	sent := q.config.now()
	id := q.link.requestID()
	got, err := q.link.timely(context.Background(), q.script, q.keys.forRequest(id), []any{
		q.counts, q.shift, q.limit, d.units, d.least, d.charge, d.back.units, q.origin(d.back),
		id, (3 * q.link.timeout).Milliseconds() + 1,
	}, 4, 1)
	received := q.config.now()
	if err != nil {
		q.link.failed(err)
	} else {
		q.link.answered()
	}

	q.mu.Lock()
	q.taking = false
	if err != nil {
		q.stats.Failed++
	} else {
		q.acceptLocked(d, got, id, sent, received)
	}
	again := q.again
	q.mu.Unlock()
	if again != nil {
		again()
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.endLocked(q.config.now(), err)
}

// endLocked sees to what came up while a step was under way.
func (q *Quota) endLocked(now time.Time, err error) {
	switch {
	case q.taking:
		// The next one is.
	case q.closed:
		if err == nil {
			q.giveBackLocked(now)
		}
	case q.countLocked(now) > 0:
		q.lookAtStoreLocked()
		q.planLocked(now, 0, 0)
	default:
		q.lookLaterLocked(now, q.config.horizon)
	}
}

// origin says where units that come back were taken.
func (q *Quota) origin(g grant) any {
	if q.log {
		return g.of
	}
	return g.start
}

func (q *Quota) acceptLocked(d demanded, got []int64, id string, sent, received time.Time) {
	now, granted, at, start := got[0], got[1], got[2], got[3]
	if q.rtt == 0 {
		q.rtt = received.Sub(sent)
	}
	q.rtt += (received.Sub(sent) - q.rtt) / 8
	q.owed -= min(d.charge, q.owed)
	q.stats.Reserved += granted + d.charge
	q.stats.Used += d.charge
	q.stats.Returned += d.back.units

	// An instant of the server's lies between what it is if the server has read its
	// clock when the request was sent, and what it is if that was when the reply came.
	// What must not be too late goes by the first, what must not be too early by the other.
	wait := time.Duration(at-now) * time.Microsecond
	g := grant{units: granted, start: start, of: fmt.Sprintf("%s %d", id, granted+d.charge)}
	if q.log {
		g.until = sent.Add(q.config.lease)
	} else {
		g.until = sent.Add(wait)
	}
	if granted > 0 {
		q.hand = append(q.hand, g)
		q.units += granted
	} else if d.units > 0 && at > now {
		q.free = received.Add(wait)
		q.retry = received.Add(min(wait, retryAfter))
	}
}

// lookLaterLocked sees to it that what no call waits for goes back; see look.go.
func (q *Quota) lookLaterLocked(now time.Time, d time.Duration) {
	if q.looking == nil && !q.closed && (q.units > 0 || q.away || q.countLocked(now) > 0 || q.retry.After(now)) {
		q.looking = time.AfterFunc(d, q.look)
	}
}

func (q *Quota) look() {
	q.mu.Lock()
	q.looking = nil
	q.asked = false
	again := q.again
	q.mu.Unlock()
	if again != nil {
		again()
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.config.now()
	switch {
	case q.closed || q.taking:
	case !q.asked:
		q.giveBackLocked(now)
		if q.countLocked(now) > 0 {
			q.lookAtStoreLocked()
			q.planLocked(now, 0, 0)
		}
	default:
		q.lookLaterLocked(now, q.config.horizon)
	}
}

// giveBackLocked hands back one grant, and has counted what is to be; the end of that
// step sees to the next grant.
func (q *Quota) giveBackLocked(now time.Time) {
	q.demand, q.size = 0, 1
	q.expireLocked(now)
	q.lookAtStoreLocked()
	d := demanded{charge: q.countLocked(now)}
	if q.taking || q.away || q.units == 0 && d.charge == 0 {
		return
	}
	if q.units > 0 {
		d.back = q.hand[0]
		q.hand = q.hand[1:]
		q.units -= d.back.units
	}
	q.takeLocked(d)
}

func (q *Quota) guard() (context.Context, error) {
	if q.policy.kind != closed {
		return nil, nil
	}
	down, why := q.link.untilDown()
	if why == nil {
		return down, nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.lookAtStoreLocked()
	q.planLocked(q.config.now(), 0, 0)
	return nil, why
}

func (q *Quota) shut() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.closed
}
