package feedback

import (
	"net/http"
	"time"
)

// githubSecondary is how long GitHub asks to stay away at least if a secondary limit
// is hit and the answer names no time, and to wait exponentially longer from then on.
const githubSecondary = time.Minute

// GitHub is the Classifier for GitHub. Its primary limit is what [Default] reads from
// a 403 or a 429. A secondary limit leaves requests of the primary one and may come
// without Retry-After, known by its message alone; its documentation then asks for a
// minute at least, which is the AtLeast here. GraphQL refuses in a 200.
//
// GitHub does not tell whether it has processed what it refuses, so neither does this.
func GitHub(a *Answer) Verdict {
	v := Default(a)
	switch a.Status() {
	case http.StatusForbidden, http.StatusTooManyRequests:
		if !v.Refused && !githubMessage(parseJSON(a.Body())) {
			return v // about permission
		}
		v.Refused = true
		return a.atLeast(v, githubSecondary)
	case http.StatusOK:
		if !a.isGraphQL() || !a.isJSON() {
			return v
		}
		for _, e := range parseJSON(a.Body()).get("errors").list() {
			switch kind := e.get("type").text(); {
			case kind == "RATE_LIMITED", kind == "RATE_LIMIT", githubMessage(e):
				return a.atLeast(refusal(a), githubSecondary)
			}
		}
	}
	return v
}

// githubMessage reports whether a message is that of a secondary limit, under its
// present or its former name.
func githubMessage(n node) bool {
	message := n.get("message")
	return message.says("secondary rate limit") || message.says("abuse detection")
}
