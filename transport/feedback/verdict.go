package feedback

import "time"

// A Verdict is what one response says about the partner's limit. The zero Verdict
// says nothing: the response is an answer like any other.
type Verdict struct {
	// Refused reports that the partner turned the request away because of a limit.
	Refused bool
	// Wait is how long to stay away, counted from the moment at which the response
	// was received. It is in [0, max] and means something only if Stated.
	Wait time.Duration
	// Stated reports that the partner said when to come back. Without it the caller
	// chooses a time, such as one that doubles from refusal to refusal.
	Stated bool
	// Capped reports that the partner stated a time above max. Wait is max then.
	Capped bool
	// Unprocessed reports that the partner says that it has not processed the
	// request, so that sending it again cannot do anything twice.
	Unprocessed bool
}

// Within returns v with its Wait bounded to [0, max], as every Classifier of this
// package does it. It is for the verdicts of others: a negative Wait becomes 0, one
// above max becomes max and is marked as Capped, and one that is not Stated becomes
// 0. A negative max counts as 0.
func (v Verdict) Within(max time.Duration) Verdict {
	if !v.Stated {
		v.Wait, v.Capped = 0, false
		return v
	}
	wait, capped := bound(v.Wait, max)
	v.Wait, v.Capped = wait, v.Capped || capped
	return v
}

// bound limits a wait to [0, limit].
func bound(wait, limit time.Duration) (_ time.Duration, capped bool) {
	limit = max(limit, 0)
	if wait > limit {
		return limit, true
	}
	return max(wait, 0), false
}
