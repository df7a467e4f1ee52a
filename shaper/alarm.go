package shaper

import (
	"time"

	"github.com/benbjohnson/clock"
)

// An alarm sees to it that the line is looked at when its head is due. Its methods are
// called under the lock of the Shaper. One that fires for nothing, because it was stopped
// too late, does no harm.
type alarm interface {
	// set makes the alarm fire after wait, for this head and no other. A nil head is none: a
	// key becomes free then.
	set(head *call, wait time.Duration)
	// forget is called before a call is answered or taken back: from then on it may be
	// another caller's, of another Shaper even.
	forget(c *call)
	// stop is called when no call waits on time.
	stop()
}

// newAlarm returns an alarm that calls fire, unless it wakes the head of the line itself.
func (c *config) newAlarm(fire func()) alarm {
	switch {
	case c.clock != nil:
		return &clockAlarm{clock: c.clock, fire: fire}
	case c.precise:
		var grain time.Duration
		if c.grain != nil {
			grain = *c.grain
		}
		return newPreciseAlarm(grain, fire)
	}
	return &headTimer{fire: fire}
}

// timed reports whether the alarm makes use of timers of the calls' own.
func (c *config) timed() bool { return c.clock == nil && !c.precise }

// headTimer is the alarm on the system's clock: the head's own timer. Its caller selects on
// that already, so one goroutine is woken for each departure, and not a dispatcher
// besides. For a head without a timer there is one of its own.
type headTimer struct {
	armed *time.Timer
	spare *time.Timer
	fire  func()
}

func (h *headTimer) set(head *call, wait time.Duration) {
	var timer *time.Timer
	if head != nil {
		timer = head.timer()
	}
	if timer == nil {
		if h.spare == nil {
			h.spare = time.AfterFunc(wait, h.fire)
		}
		timer = h.spare
	}
	if h.armed != timer {
		h.stop()
		h.armed = timer
	}
	timer.Reset(wait)
}

func (h *headTimer) forget(c *call) {
	if timer := c.timer(); timer != nil && h.armed == timer {
		h.stop()
	}
}

func (h *headTimer) stop() {
	if h.armed != nil {
		h.armed.Stop()
		h.armed = nil
	}
}

// clockAlarm is the alarm on a clock of the user's. A mock's timer blocks if it is reset
// after a firing that was not read, so each alarm is a new one, with nothing to read.
type clockAlarm struct {
	clock clock.Clock
	fire  func()
	timer *clock.Timer
}

func (c *clockAlarm) set(_ *call, wait time.Duration) {
	c.stop()
	c.timer = c.clock.AfterFunc(wait, c.fire)
}

func (c *clockAlarm) forget(*call) {}

func (c *clockAlarm) stop() {
	if c.timer != nil {
		c.timer.Stop()
		c.timer = nil
	}
}
