package engine

import "time"

// adaptive is the share of its rate at which a key runs: additive increase,
// multiplicative decrease. The increase is fast where the partner is known to allow it,
// slow around where it refused last, and ever faster beyond, where its limit must have
// changed.
type adaptive struct {
	share   int64 // in parts of Whole; 0 counts as all
	refused int64 // the share that was refused last, as far as can be told
	changed time.Time
}

const (
	Whole = 10_000

	// Parts of the whole that the share grows by in a second.
	growFast   = Whole / 20
	growSlow   = Whole / 1000
	growBeyond = Whole / 10

	// Around what was refused last, in percent of it, the share grows slowly: each time that
	// it gets there costs a hold.
	slowFrom = 98
	slowTo   = 101

	// growEvery keeps changes few. A key that was not used for long has not shown more
	// than one that was used for longestGrowth.
	growEvery     = 100 * time.Millisecond
	longestGrowth = time.Second
)

func (a *adaptive) reduced() bool { return a.share != 0 && a.share != Whole }

func (a *adaptive) cut(now time.Time, floor int64) {
	if a.share == 0 {
		a.share = Whole
	}
	// A partner counts over a while, so what it refuses is what the share was before.
	a.refused = max(a.share-a.speed(), a.share*8/10)
	a.share = max(a.share*7/10, min(floor, a.share))
	a.changed = now
}

// speed is how much the share grows by in a second.
func (a *adaptive) speed() int64 {
	switch {
	case !a.reduced():
		return 0
	case a.share < a.refused*slowFrom/100:
		return growFast
	case a.share < a.refused*slowTo/100:
		return growSlow
	}
	return min(max(a.share-a.refused, growSlow), growBeyond)
}

// grow is told of a success, and reports whether the share has grown.
func (a *adaptive) grow(now time.Time) bool {
	since := now.Sub(a.changed)
	if !a.reduced() || since < growEvery {
		return false
	}
	if since > longestGrowth {
		since, a.changed = longestGrowth, now.Add(-longestGrowth)
	}
	speed := a.speed()
	grown := speed * int64(since) / int64(time.Second)
	// The time that makes no whole part yet is left for the next call.
	a.changed = a.changed.Add(time.Duration(grown * int64(time.Second) / speed))
	a.share = min(a.share+grown, Whole)
	return grown > 0
}

// adapts reports whether rates are cut. Whether Scale can work is asked before, by CanScale.
func (e *Engine) adapts() bool { return e.Floor > 0 && e.Scale != nil }
