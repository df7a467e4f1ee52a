package partner

import (
	"math"
	"time"
)

// A hold is the time during which a refused caller was told to stay away.
type hold struct {
	from, until time.Duration
}

// extend adds a refusal at from that stated a time. A hold that is running never
// gets shorter.
func (h *hold) extend(from, stated time.Duration) {
	if from > h.until {
		h.from = from
	}
	until := from + stated
	if until < from {
		until = math.MaxInt64 // a stated time may be as good as endless
	}
	h.until = max(h.until, until)
}

// covers tells whether a call at that instant is one during the hold. One that came
// before the refusal is not, even if it is judged after it.
func (h *hold) covers(at time.Duration) bool {
	return at >= h.from && at < h.until
}
