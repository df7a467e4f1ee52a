package transport

import "time"

// adaptive is the share of its rate at which a key runs: additive increase,
// multiplicative decrease. The increase is fast where the partner is known to allow it,
// slow around where it refused last, and faster again beyond, where its limit must have
// changed.
type adaptive struct {
	share   int64 // in parts of wholeShare; 0 counts as all
	refused int64 // the share that was refused last
	changed time.Time
}

const (
	wholeShare = 10_000

	// Parts of the whole that the share grows by in a second.
	growFast   = wholeShare / 20
	growSlow   = wholeShare / 200
	growBeyond = wholeShare / 33

	// growEvery keeps changes few. A key that was not used for long has not shown more
	// than one that was used for longestGrowth.
	growEvery     = 100 * time.Millisecond
	longestGrowth = time.Second
)

func (a *adaptive) reduced() bool { return a.share != 0 && a.share != wholeShare }

func (a *adaptive) cut(now time.Time, floor int64) {
	if a.share == 0 {
		a.share = wholeShare
	}
	a.refused = a.share
	a.share = max(a.share*7/10, min(floor, a.share))
	a.changed = now
}

// grow is told of a success, and reports whether the share has grown.
func (a *adaptive) grow(now time.Time) bool {
	since := now.Sub(a.changed)
	if !a.reduced() || since < growEvery {
		return false
	}
	speed := int64(growBeyond)
	switch {
	case a.share < a.refused*95/100:
		speed = growFast
	case a.share < a.refused*105/100:
		speed = growSlow
	}
	a.changed = now
	a.share = min(a.share+max(1, speed*int64(min(since, longestGrowth))/int64(time.Second)), wholeShare)
	return true
}

func (t *Transport) adapts() bool { return t.floor > 0 && t.pace.scale != nil }
