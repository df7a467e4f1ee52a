package fair

import "math/bits"

// An anchor says that the fluid had served of the calls of a flow that wait as much as at, in
// parts of units, when V was v, and goes on from there. It belongs to a place among the units of
// the flow and to no call. It is set where a call joins a flow that had run dry in the fluid, and
// where a head takes the seat of another.
type anchor struct{ at, v int64 }

var noAnchor = anchor{at: -1}

const (
	noFloor = -1 << 61
	latest  = 1 << 62 // no tag is later
)

// A tag is a V at which the fluid has served something, rounded up, and how many parts more the
// fluid has served by then. What comes after it needs so many less: otherwise what is rounded
// would add up.
type tag struct {
	v    int64
	over int32
}

// rise returns the tag at which a flow has been served so many parts that is served since v.
func (v tag) rise(parts int64, weight int32) tag {
	w, parts := int64(weight), parts-int64(v.over)
	if parts <= 0 {
		return tag{v.v, int32(-parts)}
	}
	steps := (parts + w - 1) / w
	return tag{min(v.v+steps, latest), int32(steps*w - parts)}
}

// fall returns the tag at which the fluid had so many parts still to serve.
func (v tag) fall(parts int64, weight int32) tag {
	w, parts := int64(weight), parts+int64(v.over)
	return tag{v.v - parts/w, int32(parts % w)}
}

// through returns the tag at which the fluid has served the parts from from to to, if it was at
// v at the first.
func (f *Flow[O]) through(v tag, from, to int64, weight int32) tag {
	if a := f.anchor; a.at >= from && a.at < to {
		v, from = tag{v: a.v}, a.at
	}
	return v.rise(to-from, weight)
}

// reached returns the tag at which the fluid has served so much since the seat of the head began.
func (f *Flow[O]) reached(units int64) tag {
	if cost := parts(f.cost); units > cost {
		return f.through(f.end, cost, units, f.named)
	}
	return f.through(f.start, 0, units, f.seat)
}

// ends notes where the calls behind the head begin and end.
func (f *Flow[O]) ends() {
	cost := parts(f.cost)
	if !f.moved {
		f.end = f.through(f.start, 0, cost, f.seat)
	}
	f.last = f.through(f.end, cost, parts(f.units), f.named)
}

// takeUp is called before a call joins that is not the only one. If the fluid has ended with
// the calls before it, it begins with this one at V.
func (s *Sharing[O]) takeUp(f *Flow[O]) {
	if f.last.v <= s.v {
		f.anchor = anchor{parts(f.units), s.v}
	}
}

// goOn says that the fluid has served so much since the seat of the head began. What it serves
// behind the head from now on it serves with the weight that counts there.
func (s *Sharing[O]) goOn(f *Flow[O], served int64) {
	cost := parts(f.cost)
	switch {
	case served <= 0 || served >= parts(f.units):
	case served <= cost:
		f.anchor = anchor{served, s.v}
	default:
		f.end, f.moved = tag{v: s.v - (served-cost)/int64(f.named)}, true
		if f.anchor.at >= cost {
			f.anchor = noAnchor
		}
	}
}

// servedOf returns what V has passed since the seat of the head began, as if there were no end
// of the calls behind it.
func (s *Sharing[O]) servedOf(f *Flow[O]) int64 {
	v, at, cost := f.start, int64(0), parts(f.cost)
	if f.moved && f.end.v <= s.v {
		v, at = f.end, cost
	}
	if f.anchor.at > at {
		v, at = tag{v: f.anchor.v}, f.anchor.at
	}
	if s.v <= v.v {
		return at
	}
	if at < cost {
		if n := int64(v.over) + served(s.v-v.v, f.seat); n <= cost-at {
			return at + n
		}
		v, at = v.rise(cost-at, f.seat), cost
	}
	return min(at+int64(v.over)+served(s.v-v.v, f.named), far)
}

// owedOf returns what the fluid has not served yet of what has left of a flow.
func (s *Sharing[O]) owedOf(f *Flow[O]) (owed int64) {
	at := s.v
	if f.before != nil {
		for _, b := range f.before.all() {
			owed = min(owed+served(max(b.until-at, 0), int32(b.weight)), far)
			at = max(at, b.until)
		}
	}
	return min(owed+served(max(f.start.v-at, 0), f.seat), far)
}

// parts returns a cost in parts of units.
func parts(cost int64) int64 { return min(cost, most) * unit }

// PartsOf returns so many units, more or less, in parts.
func PartsOf(units int64) int64 {
	if units < 0 {
		units = -max(units, -most)
	}
	return parts(units)
}

// served returns the parts that a flow is served while V moves on by d, or the most that is told.
func served(d int64, weight int32) int64 {
	hi, lo := bits.Mul64(uint64(d), uint64(weight))
	if hi > 0 || lo > far {
		return far
	}
	return int64(lo)
}
