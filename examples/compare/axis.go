package main

import (
	"math"
	"math/bits"
	"time"
)

// An axis divides time into slots of equal length. A slot is a fraction of a window or
// a number of windows, so a window never begins inside of one.
type axis struct {
	window    time.Duration
	perWindow int64 // slots
	perSlot   int64 // windows
	first     int64 // slot that is shown, counted from time 0
	slots     int   // that are shown
}

// newAxis returns the finest axis that shows everything in at most so many slots.
func newAxis(c *comparison, slots int) axis {
	var first, last time.Duration
	if len(c.calls) > 0 {
		first, last = c.calls[0].at, c.calls[len(c.calls)-1].at
	}
	for _, t := range c.trials {
		last = max(last, t.last)
	}
	a := axis{window: c.limits.window, perSlot: 1}
	for _, a.perWindow = range []int64{200, 100, 50, 40, 25, 20, 10, 5, 4, 2, 1} {
		if a.show(first, last) <= slots {
			return a
		}
	}
	for magnitude := int64(1); ; magnitude *= 10 {
		for _, factor := range []int64{2, 5, 10} {
			a.perSlot = magnitude * factor
			if a.show(first, last) <= slots {
				return a
			}
		}
	}
}

// show chooses the slots from first to last, from a fifth of a window on if there is
// such a slot, and returns how many they are.
func (a *axis) show(first, last time.Duration) int {
	a.first = a.number(first)
	if group := a.perWindow / 5; group > 0 && a.perWindow%5 == 0 {
		a.first -= a.first % group
	}
	a.slots = int(min(a.number(last)-a.first+1, math.MaxInt32)) // an int may have 32 bits
	return a.slots
}

// number returns the slot of an instant, counted from time 0.
func (a *axis) number(at time.Duration) int64 {
	return mulDiv(int64(at), a.perWindow, int64(a.window)*a.perSlot)
}

// slot returns it counted from the first one shown.
func (a *axis) slot(at time.Duration) int { return int(a.number(at) - a.first) }

// label says when a slot begins that is shown.
func (a *axis) label(slot int) string {
	return plain(time.Duration(mulDiv(a.first+int64(slot), int64(a.window)*a.perSlot, a.perWindow)))
}

// slotLength is rounded down where the window does not divide evenly.
func (a *axis) slotLength() time.Duration {
	return time.Duration(mulDiv(1, int64(a.window)*a.perSlot, a.perWindow))
}

// isBoundary reports whether a window begins with the slot, and only one.
func (a *axis) isBoundary(slot int) bool {
	return a.perSlot == 1 && (a.first+int64(slot))%a.perWindow == 0
}

// ticks returns slots in even steps that are as small as labels with their times have
// room for; need tells how many slots a label takes. Where steps are not longer than
// windows, each window begins with one.
func (a *axis) ticks(need func(label string) int) []int {
	try := func(step int64) (slots []int, ok bool) {
		for slot := (step - a.first%step) % step; slot < int64(a.slots); slot += step {
			if int64(need(a.label(int(slot)))) > step {
				return nil, false
			}
			slots = append(slots, int(slot))
		}
		return slots, true
	}
	for step := int64(1); step < a.perWindow; step++ {
		if a.perWindow%step != 0 {
			continue
		}
		if slots, ok := try(step); ok {
			return slots
		}
	}
	for step := a.perWindow; ; step *= 2 {
		if slots, ok := try(step); ok {
			return slots
		}
	}
}

// mulDiv returns a·b/c, rounded towards zero, for a product that may be beyond an
// int64. The quotient must not be, b not negative and c positive.
func mulDiv(a, b, c int64) int64 {
	if a < 0 {
		return -mulDiv(-a, b, c)
	}
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	quotient, _ := bits.Div64(hi, lo, uint64(c))
	return int64(quotient)
}
