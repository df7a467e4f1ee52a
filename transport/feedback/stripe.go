package feedback

import (
	"net/http"
	"strings"
)

// Stripe is the Classifier for Stripe, which answers 429 to two things. One is a
// limit. The other, with the code lock_timeout, tells that another request is at work
// on the same object; that is no limit of the account, and no reason to hold back the
// payments that have nothing to do with it, so it is not Refused.
//
// A Stripe-Should-Retry of false makes it Final, whatever else it is.
//
// It never says Unprocessed, since Stripe does not. Payments carry an
// Idempotency-Key, which is what makes them safe to send again.
func Stripe(a *Answer) Verdict {
	v := Default(a)
	v.Final = strings.EqualFold(a.Header().Get("Stripe-Should-Retry"), "false")
	if a.Status() != http.StatusTooManyRequests || a.Header().Get("Stripe-Rate-Limited-Reason") != "" {
		return v // a limiter gives its reason
	}
	if parseJSON(a.Body()).get("error", "code").text() == "lock_timeout" {
		return Verdict{Final: v.Final}
	}
	return v
}
