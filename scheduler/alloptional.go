package scheduler

import "time"

// Forfeit implements [Forfeiter].
func (a all) Forfeit(t time.Time, keep int64) {
	for _, limit := range a {
		if l, ok := limit.(Forfeiter); ok {
			l.Forfeit(t, keep)
		}
	}
}

// Forfeited implements [Forfeiter]. A limit that saves nothing up is in the copy as it
// is.
func (a all) Forfeited(t time.Time, keep int64) Scheduler {
	other := make(all, len(a))
	for i, limit := range a {
		other[i] = limit
		if l, ok := limit.(Forfeiter); ok {
			other[i] = l.Forfeited(t, keep)
		}
	}
	return other
}

// Tolerance returns the lowest tolerance among the limits that have one, or 0.
func (a all) Tolerance() time.Duration {
	lowest := never
	for _, limit := range a {
		if l, ok := limit.(Tolerant); ok {
			lowest = min(lowest, l.Tolerance())
		}
	}
	if lowest == never {
		return 0
	}
	return lowest
}

// Demand implements [Demander]. Each limit is told from when on the others allow what is next,
// so that one that is shared gets no units ahead of a slower one.
func (a all) Demand(from time.Time, units, cost int64, deadline time.Time) {
	for i, limit := range a {
		if l, ok := limit.(Demander); ok {
			l.Demand(a.without(i).Next(from, 0, cost), units, cost, deadline)
		}
	}
}

func (a all) without(i int) all { return append(a[:i:i], a[i+1:]...) }

// Refusal implements [Refuser].
func (a all) Refusal() error {
	for _, limit := range a {
		if l, ok := limit.(Refuser); ok {
			if err := l.Refusal(); err != nil {
				return err
			}
		}
	}
	return nil
}

// A rater tells the slowest rate among the limits.
type rater struct{ limits all }

// Rate implements [Rated].
func (r rater) Rate() Rate {
	slowest := Unlimited
	for _, limit := range r.limits {
		if l, ok := limit.(Rated); ok && l.Rate().Cmp(slowest) < 0 {
			slowest = l.Rate()
		}
	}
	return slowest
}

// A herald notifies of all limits.
type herald struct{ limits all }

// Notify implements [Notifier].
func (h herald) Notify(again func()) {
	for _, limit := range h.limits {
		if l, ok := limit.(Notifier); ok {
			l.Notify(again)
		}
	}
}

// A keeper passes holds on to all limits.
type keeper struct{ limits all }

// Hold implements [Holder].
func (k keeper) Hold(until time.Time) {
	for _, limit := range k.limits {
		if l, ok := limit.(Holder); ok {
			l.Hold(until)
		}
	}
}

// What cannot be answered neutrally is offered only if a limit has it: a schedule that
// tells no rate is not unlimited, and a hold that no limit passes on is not passed on.
type (
	ratedAll struct {
		all
		rater
	}
	notifiedAll struct {
		all
		herald
	}
	heldAll struct {
		all
		keeper
	}
	ratedNotifiedAll struct {
		all
		rater
		herald
	}
	ratedHeldAll struct {
		all
		rater
		keeper
	}
	notifiedHeldAll struct {
		all
		herald
		keeper
	}
	ratedNotifiedHeldAll struct {
		all
		rater
		herald
		keeper
	}
)

// dressed returns the limits as a schedule with the optional interfaces that they have.
func (a all) dressed() Scheduler {
	type has struct{ rate, notify, hold bool }
	var h has
	for _, limit := range a {
		_, rate := limit.(Rated)
		_, notify := limit.(Notifier)
		_, hold := limit.(Holder)
		h = has{h.rate || rate, h.notify || notify, h.hold || hold}
	}
	r, n, k := rater{a}, herald{a}, keeper{a}
	switch h {
	case has{rate: true}:
		return ratedAll{a, r}
	case has{notify: true}:
		return notifiedAll{a, n}
	case has{hold: true}:
		return heldAll{a, k}
	case has{rate: true, notify: true}:
		return ratedNotifiedAll{a, r, n}
	case has{rate: true, hold: true}:
		return ratedHeldAll{a, r, k}
	case has{notify: true, hold: true}:
		return notifiedHeldAll{a, n, k}
	case has{true, true, true}:
		return ratedNotifiedHeldAll{a, r, n, k}
	}
	return a
}
