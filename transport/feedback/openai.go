package feedback

import (
	"net/http"
	"strings"
	"time"
)

// OpenAI is the Classifier for OpenAI. A 429 with the code insufficient_quota means
// that the money has run out: no waiting helps, and it is not Refused. A request that
// asks for more tokens than are left meets no count of 0, and the time stands in the
// text only: "try again in 1.2s".
func OpenAI(a *Answer) Verdict {
	v := Default(a)
	if a.Status() != http.StatusTooManyRequests {
		return v
	}
	e := parseJSON(a.Body()).get("error")
	if e.get("code").text() == "insufficient_quota" || e.get("type").text() == "insufficient_quota" {
		return Verdict{}
	}
	if wait, ok := tryAgainIn(e.get("message").text()); ok {
		v = a.stated(v, wait)
	}
	return v
}

// tryAgainIn finds "try again in" and the duration behind it.
func tryAgainIn(text string) (time.Duration, bool) {
	_, text, ok := strings.Cut(text, "try again in ")
	if !ok {
		return 0, false
	}
	text, _, _ = strings.Cut(text, " ")
	return parseDuration(strings.TrimRight(text, ".,")) // of the sentence
}
