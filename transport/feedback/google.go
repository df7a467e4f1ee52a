package feedback

import "net/http"

// Google is the Classifier for the APIs of Google, some of which refuse with a 403
// whose reason tells it from a question of permission. The time, if there is one, is
// the retryDelay of google.rpc.RetryInfo in the body, of a 429 and a 503 too. A quota
// per day states none.
func Google(a *Answer) Verdict {
	v := Default(a)
	switch a.Status() {
	case http.StatusForbidden, http.StatusTooManyRequests, http.StatusServiceUnavailable:
	default:
		return v
	}
	if v.Stated {
		return v
	}
	e := parseJSON(a.Body()).first().get("error") // a stream of answers is an array
	switch limit := googleLimit(e); {
	case limit:
		v = refusal(a)
	case !v.Refused:
		return v
	}
	for _, detail := range e.get("details").list() {
		if wait, ok := parseDuration(detail.get("retryDelay").text()); ok {
			return a.stated(v, wait)
		}
	}
	return v
}

// googleLimit reports whether an error is about a limit.
func googleLimit(e node) bool {
	if e.get("status").text() == "RESOURCE_EXHAUSTED" {
		return true
	}
	for _, detail := range append(e.get("errors").list(), e.get("details").list()...) {
		switch detail.get("reason").text() {
		case "rateLimitExceeded", "userRateLimitExceeded", "quotaExceeded",
			"dailyLimitExceeded", "concurrentLimitExceeded", "RATE_LIMIT_EXCEEDED":
			return true
		}
	}
	return false
}
