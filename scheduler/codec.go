package scheduler

import (
	"time"

	"github.com/sluice-go/sluice/internal/codec"
)

// Kinds of states; see package codec for their form.
const (
	kindAll            = 'A'
	kindSlidingCounter = 'C'
	kindFixedWindow    = 'F'
	kindGCRA           = 'G'
	kindHours          = 'H'
	kindLeakyBucket    = 'L'
	kindSlidingLog     = 'S'
	kindTokenBucket    = 'T'
)

type encoder struct{ *codec.Encoder }

func encode(kind byte) encoder { return encoder{codec.Encode(kind)} }

func (e encoder) amount(a amount) { e.Int(a.units); e.Uint(a.frac) }

func (e encoder) rate(r Rate) {
	if r.unlimited {
		r = Rate{} // no valid rate has this spelling
	}
	e.Int(r.units)
	e.Duration(r.period)
}

type decoder struct{ *codec.Decoder }

// decode checks the frame of a state and returns a decoder of its fields.
func decode(kind byte, data []byte) decoder { return decoder{codec.Decode("scheduler", kind, data)} }

func (d decoder) amount(p emission) amount {
	a := amount{units: d.Int(), frac: d.Uint()}
	d.Check(-maxUnits <= a.units && a.units <= maxUnits && (a.frac < p.period || a.frac == 0), "an amount")
	return a
}

func (d decoder) rate() Rate {
	r := Per(d.Int(), d.Duration())
	if r == (Rate{}) {
		return Unlimited
	}
	d.Check(r.Validate() == nil, "the rate")
	return r
}

// window reads and checks a limit and the length of its window.
func (d decoder) window() (limit int64, window time.Duration) {
	limit, window = d.Int(), d.Duration()
	d.Check(limit >= 1, "the limit")
	d.Check(window > 0, "the window")
	return limit, window
}
