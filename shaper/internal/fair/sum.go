package fair

import (
	"math/bits"

	"github.com/sluice-go/sluice/shaper/internal/pq"
)

// A span is a part of V, up to until, in which a flow counts with a weight.
type span struct{ until, weight int64 }

// spans are those of a flow until the S of its head. There is more than one weight if the weight
// of the flow has changed while the fluid was behind what has left of it.
type spans struct {
	n   int
	are [mostSpans]span
}

// mostSpans bounds the memory of a flow whose weight changes with each call.
const mostSpans = 8

func (p *spans) all() []span { return p.are[:p.n] }

// add appends a span. If there is no room, the last three become two that come to as much.
func (p *spans) add(b span) *spans {
	if p == nil {
		p = new(spans)
	}
	switch n := p.n; {
	case n > 0 && p.are[n-1].until >= b.until:
		return p
	case n > 0 && p.are[n-1].weight == b.weight:
		p.are[n-1].until = b.until
		return p
	case n == mostSpans:
		p.merge()
	}
	p.are[p.n] = b
	p.n++
	return p
}

func (p *spans) merge() {
	last := p.are[mostSpans-3:]
	from := p.are[mostSpans-4].until
	at, hi, lo := from, uint64(0), uint64(0)
	for _, b := range last {
		h, l := bits.Mul64(uint64(b.until-at), uint64(b.weight))
		var carry uint64
		lo, carry = bits.Add64(lo, l, 0)
		hi, at = hi+h+carry, b.until
	}
	weight, rest := bits.Div64(hi, lo, uint64(at-from))
	last[0] = span{at - int64(rest), int64(weight)}
	last[1] = span{at, int64(weight) + 1}
	p.n = mostSpans - 1
	if rest == 0 {
		p.n--
	}
}

// fall moves S of the head, or of what comes next, to before the latest so many parts of what has
// left, at most all that the fluid has not served.
func (s *Sharing[O]) fall(f *Flow[O], units int64) {
	for p := f.before; p != nil; p = f.before {
		last := &p.are[p.n-1]
		behind := served(max(f.start.v-last.until, 0), f.seat)
		if units <= behind || last.until <= s.v {
			break
		}
		from := s.v
		if p.n > 1 {
			from = max(from, p.are[p.n-2].until)
		}
		units -= behind
		within := served(last.until-from, int32(last.weight))
		if units <= within {
			last.until -= units / last.weight
			f.start = tag{v: last.until}
			return
		}
		units -= within
		f.start = tag{v: from}
		if p.n--; p.n == 0 {
			f.before = nil
		}
	}
	f.start = f.start.fall(units, f.seat)
}

// stretch returns the weight with which the fluid serves a flow at V, and until when.
func (s *Sharing[O]) stretch(f *Flow[O]) (weight int32, until int64) {
	for p := f.before; p != nil; {
		if p.are[0].until > s.v {
			return int32(p.are[0].weight), p.are[0].until
		}
		p.n = copy(p.are[:], p.all()[1:])
		if p.n == 0 {
			f.before, p = nil, nil
		}
	}
	if s.v < f.end.v && f.seat != f.named {
		return f.seat, f.end.v
	}
	return f.named, f.last.v
}

// weigh has a flow be in the sum with the weight that it has at V, or not at all.
func (s *Sharing[O]) weigh(f *Flow[O]) {
	weight, until := s.stretch(f)
	in := f.inSum > 0
	switch {
	case until > s.v && in && weight == f.weight && until >= f.leaves && f.leaves > s.v:
		// It is looked at again no later than it changes.
	case until > s.v && in:
		s.sum += int64(weight) - int64(f.weight)
		f.weight, f.leaves = weight, until
		s.served.Put(f, until)
	case until > s.v:
		s.sum += int64(weight)
		f.weight, f.leaves = weight, until
		s.served.Put(f, until)
	case in:
		s.leaveSum(f)
	}
}

// retire looks at the flows of which V has reached the end of a stretch. What the fluid has served
// more than their calls, as tags are rounded up, is served to the others.
func (s *Sharing[O]) retire() {
	for f := s.served.First(); f != nil && f.leaves <= s.v; f = s.served.First() {
		if s.weigh(f); f.inSum == 0 && f.last.v == s.v {
			s.pending += int64(f.last.over)
		}
	}
}

func (s *Sharing[O]) leaveSum(f *Flow[O]) {
	s.sum -= int64(f.weight)
	s.served.Remove(f)
}

// ahead returns how much the fluid has served that has not left, less what has left that it
// has not served.
func (s *Sharing[O]) ahead() (sum int64) {
	for _, h := range []*pq.Queue[Flow[O]]{s.begun, s.later} {
		for f := range h.Each {
			if f.start.v > s.v {
				sum -= s.owedOf(f)
			} else {
				sum += min(s.servedOf(f), parts(f.units))
			}
		}
	}
	for f := range s.served.Each {
		if !f.waits {
			sum -= s.owedOf(f)
		}
	}
	return sum
}

// rebase has V be 0, and all tags less by as much.
func (s *Sharing[O]) rebase() {
	by := s.v
	s.v = 0
	s.served.Shift(-by)
	for _, h := range []*pq.Queue[Flow[O]]{s.begun, s.later} {
		h.Shift(-by)
		for f := range h.Each {
			f.rebase(by)
		}
	}
	for f := range s.served.Each {
		if !f.waits {
			f.rebase(by)
		}
	}
}

func (f *Flow[O]) rebase(by int64) {
	for _, tag := range []*int64{&f.start.v, &f.end.v, &f.finish, &f.last.v, &f.anchor.v, &f.leaves} {
		*tag -= by
	}
	f.floor = max(f.floor-by, noFloor)
	if f.before != nil {
		for i := range f.before.all() {
			f.before.are[i].until -= by
		}
	}
}
