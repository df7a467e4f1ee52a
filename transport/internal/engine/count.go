package engine

import (
	"slices"
	"time"
)

// A count is how many units of a partner's limit remain, by what its answers have told. It may not
// have counted yet what is sent and not answered, but has counted the rest. So no more is sent
// than the lowest count once that is in flight.
type count struct {
	flying  int64    // calls that are sent and not answered, if keys are several, as far as they are known
	windows []window // what holds now comes first: later ones end later, and allow more
}

// A window is what an answer has told: no more than low remain until then.
type window struct {
	low    int64
	until  time.Time
	status int  // of the answer
	capped bool // it has stated more than can be held
}

// maxWindows bounds how many are remembered. There are several as partners round the end, and as
// answers come late.
const maxWindows = 8

func (c *count) told(n window) {
	c.windows = slices.DeleteFunc(c.windows, func(w window) bool { return w.low >= n.low && !w.until.After(n.until) })
	i := 0
	for i < len(c.windows) && !c.windows[i].until.After(n.until) {
		i++
	}
	if i < len(c.windows) && c.windows[i].low <= n.low {
		return
	}
	c.windows = slices.Insert(c.windows, i, n)
	if last := len(c.windows) - 1; last == maxWindows {
		c.windows[last-1].until = c.windows[last].until
		c.windows = c.windows[:last]
	}
}

// now returns what holds now, or nil.
func (c *count) now(now time.Time) *window {
	for len(c.windows) > 0 && !c.windows[0].until.After(now) {
		c.windows = slices.Delete(c.windows, 0, 1)
	}
	if len(c.windows) == 0 {
		return nil
	}
	return &c.windows[0]
}

// take counts a call among those that are sent.
func (e *Engine) take(c *Call) {
	if e.One {
		c.flies = true
		e.flying.Add(1)
	}
}

// land takes a call out of those that are sent.
func (e *Engine) land(c *Call) {
	if !c.flies {
		return
	}
	c.flies = false
	if e.One {
		e.flying.Add(-1)
	} else if k := e.memory.get(c.Key); k != nil {
		k.count.flying = max(k.count.flying-1, 0)
		k.mu.Unlock()
	}
}

// sendsLocked reports whether one more call can be sent. With the last one that can the key is
// held.
func (e *Engine) sendsLocked(k *state, c *Call) bool {
	if !e.One && !c.flies {
		c.flies = true
		k.count.flying++
	}
	now := time.Now()
	if k.hold.After(now) {
		k.count.windows = nil // the hold was lifted by hand, and so is what is known
	}
	w := k.count.now(now)
	if w == nil {
		return true
	}
	flying := e.flyingLocked(k)
	if flying >= w.low {
		e.holdByLocked(w, k, c, now)
	}
	return flying <= w.low
}

func (e *Engine) flyingLocked(k *state) int64 {
	if e.One {
		return e.flying.Load()
	}
	return k.count.flying
}

// Counted is told of an answer, before Answered is, that so many units remain, above 0, until the
// limit starts afresh. It reports whether there is a hold by that.
func (e *Engine) Counted(c *Call, a Answer, units int64, reset time.Duration) (moved bool) {
	if reset <= 0 || e.Hold == nil {
		return false
	}
	e.Forget(a.Received)
	k, remembered := e.memory.make(c.Key)
	defer k.mu.Unlock()
	if !remembered {
		return false
	}
	k.used = a.Received
	k.count.told(window{units, a.Received.Add(min(reset, e.MaxHold)), a.Status, reset >= e.MaxHold})
	w := k.count.now(a.Received)
	others := e.flyingLocked(k)
	if c.flies {
		others--
	}
	if others < w.low {
		return false
	}
	c.Until, moved = e.holdByLocked(w, k, c, a.Received)
	return moved
}

// holdByLocked holds the key of a call by a count. One that is to be tried still is.
func (e *Engine) holdByLocked(w *window, k *state, c *Call, now time.Time) (time.Time, bool) {
	a := Answer{Status: w.status, Received: now}
	a.Verdict.Capped = w.capped || k.capped
	return e.holdLocked(c.Key, c.Key, k, w.until, c.known, a)
}
