package feedback

import "time"

// A Verdict is what one response says about the partner's limit. The zero Verdict
// says nothing: the response is an answer like any other.
type Verdict struct {
	// Refused reports that the partner turned the request away because of a limit.
	Refused bool
	// Spent reports that the request was not turned away, and that nothing remains: the next
	// one would be. Wait tells when that is over, if it is Stated.
	Spent bool
	// Account reports that the limit is that of the whole account, not of the key that the
	// request is for.
	Account bool
	// Wait is how long to stay away, counted from the moment at which the response
	// was received. It is in [0, max] and means something only if Stated.
	Wait time.Duration
	// Stated reports that the partner said when to come back. Without it the caller
	// chooses a time, such as one that doubles from refusal to refusal.
	Stated bool
	// AtLeast is the least time to stay away if none is Stated, in [0, max]: the partner
	// has named no time, but is known to ask for that much. The time that the caller
	// chooses counts on top: the longer of the two. It is 0 if a time is Stated.
	AtLeast time.Duration
	// Capped reports that the partner stated a time above max. Wait is max then.
	Capped bool
	// Trouble reports that the partner states neither a limit nor a time, but that it is in
	// trouble: a plain 503. That may be one resource of many, so it is held against all of
	// them only if other answers don't say otherwise. It is false if a time is Stated.
	Trouble bool
	// Unprocessed reports that the partner says that it has not processed the
	// request, so that sending it again cannot do anything twice.
	Unprocessed bool
	// Final reports that the partner asks not to send this request again, whatever
	// its method or its Idempotency-Key. It says nothing about other requests.
	Final bool
}

// Within returns v with its Wait bounded to [0, max], as every Classifier of this
// package does it. It is for the verdicts of others: a negative Wait becomes 0, one
// above max becomes max and is marked as Capped, and one that is not Stated becomes
// 0. AtLeast is bounded in the same way, without being marked, and becomes 0 if a time
// is Stated, as Trouble becomes false. A negative max counts as 0.
func (v Verdict) Within(max time.Duration) Verdict {
	if !v.Stated {
		v.Wait, v.Capped = 0, false
		v.AtLeast, _ = bound(v.AtLeast, max)
		return v
	}
	v.AtLeast, v.Trouble = 0, false
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
