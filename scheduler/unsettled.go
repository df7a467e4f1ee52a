package scheduler

import (
	"slices"
	"sort"
)

// unsettled are the departures of a schedule that is a line of debts, a GCRA or a bucket, that
// may still be settled. A nil one has none.
//
// Each departure makes the debt before it, as of its instant, d: max(d, 0) + cost. So a change
// x of the debt before it goes on as max(d+x, 0) - max(d, 0), and d grows by x. Departures in
// a row act like a single one, with a d that then comes from theirs; see then. So to know what
// the departures after an unsettled one make of a change, up to and including the next
// unsettled one, takes one number, whatever their count.
//
// Debts are counted in wholes and fractions, as amounts: base is how many fractions are a
// whole.
type unsettled struct {
	calls []unsettledCall
	base  uint64
}

type unsettledCall struct {
	id   uint64
	cost int64
	// after stands for the departures after this one, up to and including that of the next
	// unsettled call.
	after amount
}

// nothing stands for no departures: every change goes on.
var nothing = amount{units: maxUnits}

// swallowed stands for a departure that no change before it passes.
var swallowed = amount{units: -maxUnits}

// then is called for each departure, with what was owed at its instant. It is negative if the
// line had run dry before.
func (u *unsettled) then(debt amount) {
	if u == nil {
		return
	}
	last := &u.calls[len(u.calls)-1].after
	*last = inARow(u.base, *last, debt)
}

// inARow returns the d that stands for departures with that of a, followed by those of b.
func inARow(base uint64, a, b amount) amount {
	switch {
	case a.units < 0 && b.units < 0:
		return sumOf(base, a, b)
	case a.units < 0:
		return a
	case b.units < 0:
		return b
	case less(b, a):
		return b
	}
	return a
}

// add has a call be unsettled, of which the departure was told to then.
func (u *unsettled) add(base uint64, id uint64, cost int64) *unsettled {
	if u == nil {
		u = &unsettled{base: base}
	}
	u.calls = append(u.calls, unsettledCall{id: id, cost: max(cost, 0), after: nothing})
	return u
}

// find returns where a call is, or -1.
func (u *unsettled) find(id uint64) int {
	if u == nil {
		return -1
	}
	i := sort.Search(len(u.calls), func(i int) bool { return u.calls[i].id >= id })
	if i == len(u.calls) || u.calls[i].id != id {
		return -1
	}
	return i
}

// settle returns what is left, after all later departures, of a change of the debt that call
// i has left behind, and what is still unsettled.
func (u *unsettled) settle(i int, change amount) (*unsettled, amount) {
	for j := i; j < len(u.calls) && change != (amount{}); j++ {
		after := &u.calls[j].after
		if *after == nothing {
			continue
		}
		before := positive(*after)
		*after = sumOf(u.base, *after, change)
		change = differenceOf(u.base, positive(*after), before)
	}
	if i > 0 {
		// The departures up to it, itself included, and those after it are in a row now.
		last := &u.calls[i-1].after
		*last = inARow(u.base, *last, u.calls[i].after)
	}
	if u.calls = slices.Delete(u.calls, i, i+1); len(u.calls) == 0 {
		return nil, change
	}
	return u, change
}

func (u *unsettled) len() int {
	if u == nil {
		return 0
	}
	return len(u.calls)
}

// in returns the same calls with their debts counted in another way.
func (u *unsettled) in(base uint64, convert func(amount) amount) *unsettled {
	if u == nil {
		return nil
	}
	other := &unsettled{calls: slices.Clone(u.calls), base: base}
	for i := range other.calls {
		after := &other.calls[i].after
		if after.units > -maxUnits && after.units < maxUnits {
			*after = convert(*after)
		}
	}
	return other
}

// swallowed returns the same calls, of which no change makes any difference.
func (u *unsettled) swallowed(base uint64) *unsettled {
	other := u.in(base, func(amount) amount { return swallowed })
	other.then(swallowed)
	return other
}

func positive(a amount) amount {
	if a.units < 0 {
		return amount{}
	}
	return a
}

func less(a, b amount) bool {
	return a.units < b.units || a.units == b.units && a.frac < b.frac
}
