package feedback

import "net/http"

// Adyen is the Classifier for Adyen, which refuses with a 500 whose detail says "too
// many requests". It states no time, and does not say that the request was not
// processed.
func Adyen(a *Answer) Verdict {
	if a.Status() == http.StatusInternalServerError {
		doc := parseJSON(a.Body())
		for _, key := range [...]string{"detail", "message", "title"} {
			if doc.get(key).says("too many requests") {
				return refusal(a)
			}
		}
	}
	return Default(a)
}
