package feedback

import (
	"net/http"
	"strings"
)

// Salesforce is the Classifier for Salesforce, which refuses with a 403 and the error
// code REQUEST_LIMIT_EXCEEDED, for its limit per 24 hours as for that of concurrent
// requests. If the body has no error code at all, a Sforce-Limit-Info that shows the
// usage at its limit tells as much. Neither states a time.
func Salesforce(a *Answer) Verdict {
	if a.Status() != http.StatusForbidden {
		return Default(a)
	}
	switch parseJSON(a.Body()).first().get("errorCode").text() {
	case "REQUEST_LIMIT_EXCEEDED":
		return refusal(a)
	case "":
		if salesforceSpent(a.Header()) {
			return refusal(a)
		}
	}
	return Default(a)
}

// salesforceSpent reads "api-usage=15000/15000", which may be one of several entries
// and may be followed by a usage per application, in parentheses.
func salesforceSpent(h http.Header) bool {
	for entry := range elements(field(h, "Sforce-Limit-Info")) {
		entry, _, _ = strings.Cut(entry, ";")
		usage, ok := strings.CutPrefix(entry, "api-usage=")
		if !ok {
			continue
		}
		used, limit, ok := strings.Cut(usage, "/")
		n, ok1 := parseDecimal(used)
		m, ok2 := parseDecimal(limit)
		if ok && ok1 && ok2 && !m.isZero() && n.whole >= m.whole {
			return true
		}
	}
	return false
}
