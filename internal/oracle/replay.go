package oracle

import (
	"math/big"
	"time"
)

// A Replay is a GCRA of which the costs may become known later. It keeps all that has happened,
// and is told again from there on with the true cost.
//
// The instants of departures stay what they were: as of the tolerance, and of what was known
// then. One within whose nanosecond TAT lay happened at TAT; a clock of whole nanoseconds
// cannot tell the two apart.
type Replay struct {
	Burst     int64
	Tolerance time.Duration
	// Plain has a cost that becomes known taken off TAT, or put on it, and nothing told again:
	// it is how not to do it.
	Plain bool

	t      *big.Rat // emission interval in ns
	events []replayed
	tat    *big.Rat
	seen   *big.Rat
}

// A replayed event raises TAT to at, and then adds a cost, or counts what is owed beyond at in
// another emission interval.
type replayed struct {
	at    *big.Rat
	cost  int64
	t     *big.Rat // of the event, and after it
	turns bool     // it changes the emission interval, from the one before

	before *big.Rat // TAT
}

// longAgo is before everything.
var longAgo = new(big.Rat).SetInt64(-1 << 62)

// NewReplay returns a GCRA that owes nothing.
func NewReplay(t *big.Rat, burst int64, tolerance time.Duration) *Replay {
	return &Replay{Burst: burst, Tolerance: tolerance, t: t, tat: longAgo, seen: longAgo}
}

// TAT returns what it is as far as is known.
func (r *Replay) TAT() *big.Rat { return r.tat }

// Due returns the first nanosecond, not before t, in which n units may leave.
func (r *Replay) Due(t int64, n int64) int64 {
	lead := new(big.Rat).Mul(r.t, Instant(r.Burst-min(n, r.Burst)))
	due := Ceil(lead.Sub(r.tat, lead))
	at := r.seen
	if Instant(t).Cmp(at) > 0 {
		at = Instant(t)
	}
	from := Ceil(at)
	if due.Cmp(from) > 0 {
		return due.Int64()
	}
	return from.Int64()
}

// Leave has n units leave, and returns the number of the departure.
func (r *Replay) Leave(due, left, n int64) int {
	d := due
	if left-due > int64(r.Tolerance) {
		d = left - int64(r.Tolerance)
	}
	at := r.reach(d)
	r.add(replayed{at: at, cost: n, t: r.t})
	return len(r.events) - 1
}

// SetInterval changes the emission interval at now. While a cost may become known that is a
// departure that costs nothing; otherwise a TAT that has come stays what it was.
func (r *Replay) SetInterval(now int64, t *big.Rat, unsettled bool) {
	seen := r.seen
	at := r.reach(now)
	if !unsettled {
		if r.seen = seen; r.tat.Cmp(at) < 0 {
			at = r.tat
		}
	}
	r.add(replayed{at: at, t: t, turns: true})
}

// Forfeit gives up what is saved up until t, but for keep units.
func (r *Replay) Forfeit(t, keep int64) {
	at := Instant(t)
	if at.Cmp(r.seen) < 0 {
		at = Instant(Ceil(r.seen).Int64())
	}
	lead := new(big.Rat).Mul(r.t, Instant(r.Burst-min(max(keep, 1), r.Burst)))
	r.add(replayed{at: lead.Add(lead, at), t: r.t})
}

// Settle says what a departure has cost.
func (r *Replay) Settle(i int, cost int64) {
	e := &r.events[i]
	if r.Plain {
		more := new(big.Rat).Mul(r.t, Instant(cost-e.cost))
		r.tat = more.Add(more, r.tat)
		e.cost = cost
		return
	}
	e.cost = cost
	r.tat = e.before
	for ; i < len(r.events); i++ {
		r.apply(i)
	}
}

// reach returns the instant of an event at t, not before the latest one.
func (r *Replay) reach(t int64) *big.Rat {
	at := Instant(t)
	if at.Cmp(r.seen) < 0 {
		at = r.seen
	}
	r.seen = at
	if r.tat.Cmp(at) < 0 && Ceil(r.tat).Cmp(Ceil(at)) == 0 {
		return r.tat
	}
	return at
}

func (r *Replay) add(e replayed) {
	r.events = append(r.events, e)
	r.apply(len(r.events) - 1)
}

func (r *Replay) apply(i int) {
	e := &r.events[i]
	e.before = r.tat
	tat := r.tat
	if tat.Cmp(e.at) < 0 {
		tat = e.at
	}
	if e.turns {
		was := r.t
		if i > 0 {
			was = r.events[i-1].t
		}
		owed := new(big.Rat).Sub(tat, e.at)
		owed.Quo(owed, was)
		tat = owed.Mul(owed, e.t).Add(owed, e.at)
	} else if e.cost > 0 {
		add := new(big.Rat).Mul(e.t, Instant(e.cost))
		tat = add.Add(add, tat)
	}
	r.tat, r.t = tat, e.t
}
