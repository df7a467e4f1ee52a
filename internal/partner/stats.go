package partner

import "time"

// Stats is the score of a partner at one moment.
type Stats struct {
	SMS      Score        `json:"sms"`
	Payments PaymentScore `json:"payments"`
	Wire     WireScore    `json:"wire"`
}

// A Score counts what one endpoint saw. Once it is quiet, every request that
// reached the endpoint is in exactly one of Accepted, Refused and BadRequests.
type Score struct {
	Accepted      int64 `json:"accepted"`       // calls within the limits
	AcceptedUnits int64 `json:"accepted_units"` // their units
	Refused       int64 `json:"refused"`        // calls beyond them
	BadRequests   int64 `json:"bad_requests"`   // requests that are not calls at all
	Abandoned     int64 `json:"abandoned"`      // accepted calls whose context ended during processing

	// CallsDuringHold is how many calls came too early after a refusal: after it was
	// written, and before the time that it had stated. They may have been accepted.
	// Of several such times the latest stands.
	CallsDuringHold int64 `json:"calls_during_hold"`

	// WorstWindow is the most units accepted in any closed window of the length that
	// the limit had then. Calls at both of its ends count, so a caller that keeps exactly to
	// 10/s in even spacing scores 11.
	WorstWindow int64 `json:"worst_window"`

	// SmallestGap is the shortest time between two accepted calls, in ns. It has
	// no meaning while Accepted is below 2.
	SmallestGap time.Duration `json:"smallest_gap_ns"`

	// HighestConcurrency is the most requests in hand at one time, from arrival to
	// answer, refused and bad ones included. So it tells when callers went beyond
	// what the endpoint processes at a time.
	HighestConcurrency int `json:"highest_concurrency"`

	// Keys is the score of each customer, by the endpoint's Key; nil if it has none.
	// What is not known to be one customer's is only in the endpoint's score:
	// BadRequests, Abandoned and HighestConcurrency. After 1000 customers, or with a
	// name of more than 64 bytes, the rest share "(others)".
	Keys map[string]Score `json:"keys,omitempty"`
}

// A PaymentScore is a Score and what happened to the accepted calls: each was a
// charge, a replay, a conflict, or abandoned.
type PaymentScore struct {
	Score
	Charges   int64 `json:"charges"`
	Replays   int64 `json:"replays"`   // repeated answers to the same key and body
	Conflicts int64 `json:"conflicts"` // keys in use for another body, or still being processed

	// DuplicateCharges is how many charges were made for a reference that had been
	// charged before. References are remembered ten times as long as keys; a
	// payment without one is not looked at.
	DuplicateCharges int64 `json:"duplicate_charges"`
}

// A tally measures the accepted calls of an endpoint, independently of the meter
// that accepted them.
type tally struct {
	window time.Duration
	log    arrivals // of the closed window that ends with the last call
	worst  int64
	last   time.Duration
	gap    time.Duration
	calls  int64
	units  int64
}

func (t *tally) add(now time.Duration, n int64) {
	t.log.forget(now - t.window)
	t.log.add(now, n)
	t.worst = max(t.worst, t.log.units)

	if gap := now - t.last; t.calls == 1 || t.calls > 1 && gap < t.gap {
		t.gap = gap
	}
	t.last = now
	t.calls++
	t.units += n
}
