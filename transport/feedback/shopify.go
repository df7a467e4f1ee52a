package feedback

import (
	"math"
	"math/bits"
	"net/http"
	"time"
)

// Shopify is the Classifier for Shopify. REST refuses with a 429 and Retry-After, as
// [Default] reads it. GraphQL refuses in a 200, with the error THROTTLED and the state
// of the bucket of points, from which the wait follows: the points that the query
// lacks at the rate at which they come back. Such a query was not run.
func Shopify(a *Answer) Verdict {
	if a.Status() != http.StatusOK || !a.isGraphQL() || !a.isJSON() {
		return Default(a)
	}
	doc := parseJSON(a.Body())
	throttled := false
	for _, e := range doc.get("errors").list() {
		throttled = throttled || e.get("extensions", "code").text() == "THROTTLED"
	}
	if !throttled {
		return Default(a)
	}
	v := refusal(a)
	v.Unprocessed = doc.get("data").v == nil
	if wait, ok := shopifyWait(doc.get("extensions", "cost")); ok {
		v = a.stated(v, wait)
	}
	return v
}

// shopifyWait is (requested - available) / rate, in whole nanoseconds, rounded up.
func shopifyWait(cost node) (time.Duration, bool) {
	// In billionths of a point, which is finer than they are written.
	points := func(n node) (uint64, bool) {
		d, ok := parseDecimal(n.text())
		return uint64(d.of(1e9)), ok
	}
	requested, ok1 := points(cost.get("requestedQueryCost"))
	available, ok2 := points(cost.get("throttleStatus", "currentlyAvailable"))
	rate, ok3 := points(cost.get("throttleStatus", "restoreRate"))
	if !ok1 || !ok2 || !ok3 || rate == 0 {
		return 0, false
	}
	if requested <= available {
		return 0, true
	}
	hi, lo := bits.Mul64(requested-available, uint64(time.Second))
	lo, carry := bits.Add64(lo, rate-1, 0)
	hi += carry
	if hi >= rate {
		return forever, true
	}
	wait, _ := bits.Div64(hi, lo, rate)
	return time.Duration(min(wait, math.MaxInt64)), true
}
