package engine

import (
	"time"

	"github.com/sluice-go/sluice/transport/feedback"
)

// An Answer is what a call was answered.
type Answer struct {
	Verdict  feedback.Verdict
	Status   int       // to name it by; see Blame
	Served   bool      // unless it is a refusal: it shows that the partner serves
	Received time.Time // when
}

// Answered has the key of a call follow an answer to it, and c.Finding tell of it. It reports
// whether there is a hold that ends later than any before.
func (e *Engine) Answered(c *Call, a Answer) (moved bool) {
	c.Verdict = a.Verdict
	if a.Verdict.Refused {
		return e.refused(c, a)
	}
	if a.Served && !e.memory.empty() {
		e.served(c, time.Now())
	}
	if !a.Verdict.Spent || a.Verdict.Wait <= 0 {
		return false
	}
	// It says when more can be had, and nothing against the rate.
	until := a.Received.Add(a.Verdict.Wait)
	e.Forget(a.Received)
	e.on(c.Key, a.Verdict, func(name string, k *state, _ bool) {
		k.used = a.Received
		k.count.told(window{0, until, a.Status, a.Verdict.Capped})
		c.Until, moved = e.holdLocked(name, c.Key, k, until, c.known, a)
	})
	return moved
}

// on calls f with what an answer is about: the account, if it says so and there is one, or the
// key.
func (e *Engine) on(key string, v feedback.Verdict, f func(name string, k *state, remembered bool)) {
	name := key
	if v.Account && e.HoldAccount != nil {
		name = account
	}
	k, remembered := e.memory.make(name)
	defer k.mu.Unlock()
	f(name, k, remembered)
}

// refused is told of a refusal.
func (e *Engine) refused(c *Call, a Answer) (moved bool) {
	e.Forget(a.Received)
	e.on(c.Key, a.Verdict, func(name string, k *state, remembered bool) {
		k.used = a.Received
		if a.Verdict.Trouble && !k.trouble.refused() {
			c.Alone, c.Until = true, k.hold
			return
		}
		fresh := c.known >= k.last
		if fresh {
			k.before, k.last = k.last, e.memory.seen.Add(1)
			k.trouble.counted(a.Verdict.Trouble)
		}
		c.Until, moved = e.holdLocked(name, c.Key, k, k.untilLocked(a, fresh, e.MaxHold), c.known, a)
		if fresh && remembered && e.adapts() && name != account {
			k.adaptive.cut(a.Received, e.Floor)
			_ = e.Scale(c.Key, k.adaptive.share, Whole)
		}
	})
	return moved
}

// untilLocked returns until when a refusal keeps the key back.
func (k *state) untilLocked(a Answer, fresh bool, most time.Duration) time.Time {
	v, now := a.Verdict, a.Received
	if v.Stated && v.Wait > 0 {
		k.backoffs = 0
		return now.Add(v.Wait)
	}
	if !fresh {
		return now // a sibling of the one that has been counted
	}
	k.backoffs++
	n := k.backoffs
	if v.Stated {
		// "Now" is believed once. A partner that says so again and again is not asked again
		// and again.
		if n--; n == 0 {
			return now
		}
	}
	return now.Add(min(max(Backoff(n), v.AtLeast), most))
}

// holdLocked has the Waiter held. It returns until when it is, by that or before, and whether
// that has made it later.
func (e *Engine) holdLocked(name, key string, k *state, until time.Time, known int64, a Answer) (_ time.Time, moved bool) {
	before, held := e.heldLocked(key, k, a.Received, known)
	if !until.After(a.Received) {
		return before, false
	}
	err := e.tell(name, until) // which moves forward only; what holds the key may be another hold than the account's
	if held && !until.After(before) {
		return before, false
	}
	k.hold, k.told, k.status = until, e.memory.seen.Add(1), a.Status
	k.capped, k.owed = a.Verdict.Capped, err != nil
	return until, e.Hold != nil
}

// heldLocked returns whether the key is held, by itself or with the account. A Waiter that does
// not tell is, if it was told so; but if it has let a call go that was known to come after, the
// hold is lifted.
func (e *Engine) heldLocked(key string, k *state, now time.Time, known int64) (until time.Time, held bool) {
	if k.owed || e.Held == nil {
		return k.hold, k.hold.After(now) && (k.owed || known < k.told)
	}
	return e.Held(key)
}

func (e *Engine) tell(name string, until time.Time) error {
	switch {
	case e.Hold == nil:
		return nil
	case name == account:
		e.HoldAccount(until)
		return nil
	}
	return e.Hold(name, until)
}

// served is told of an answer that is no refusal.
func (e *Engine) served(c *Call, now time.Time) {
	e.each(c.Key, func(name string, k *state) bool {
		k.trouble.served() // now, whenever it was sent
		if c.known < k.last {
			if c.known >= k.before && k.trouble.falseAlarm() {
				k.backoffs = 1
			}
			return true
		}
		k.trouble.alarm = false
		k.used = now
		k.backoffs = 0
		if c.known >= k.told { // otherwise the hold is news that came later
			k.hold, k.status, k.capped, k.owed = time.Time{}, 0, false, false
		}
		if e.adapts() && k.adaptive.grow(now) {
			_ = e.Scale(name, k.adaptive.share, Whole)
		}
		return true
	})
}

// heldBy returns the end of the hold in force, and the status of the answer that has set it.
// Both are zero if none has: a hold that others have set is not the partner's.
func (e *Engine) heldBy(key string) (until time.Time, status int) {
	now := time.Now()
	e.each(key, func(_ string, k *state) bool {
		if end, held := e.heldLocked(key, k, now, 0); held && end.Equal(k.hold) {
			until, status = end, k.status
		}
		return true
	})
	return until, status
}
