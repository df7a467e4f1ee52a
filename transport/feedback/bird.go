package feedback

import "net/http"

// Bird is the Classifier for Bird (MessageBird), which does not process what it
// answers with 429.
func Bird(a *Answer) Verdict {
	v := Default(a)
	v.Unprocessed = a.Status() == http.StatusTooManyRequests
	return v
}
