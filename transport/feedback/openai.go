package feedback

import (
	"net/http"
	"strings"
	"time"
)

// OpenAI is the Classifier for OpenAI. A 429 with the code insufficient_quota means
// that the money has run out: no waiting helps, and it is not Refused. A request that
// asks for more tokens than are left meets no count of 0, and the time stands in the
// text only: "try again in 1.2s" or "in 1 minute".
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

// tryAgainIn finds "try again in" and the duration behind it, which may be in several
// words: "1m30s", "20 s", "1 minute and 30 seconds". It ends with the sentence.
func tryAgainIn(text string) (time.Duration, bool) {
	_, text, ok := strings.Cut(text, "try again in ")
	if !ok {
		return 0, false
	}
	var sum time.Duration
	ok = false
	number := ""
	for word := range strings.FieldsSeq(text) {
		bare := strings.TrimRight(word, ".,;:!)")
		if d, valid := parseDuration(number + bare); valid {
			sum, ok, number = time.Duration(plus(int64(sum), int64(d))), true, ""
		} else if _, valid := parseDecimal(bare); valid && number == "" {
			number = bare
		} else if !ok || number != "" || bare != "and" {
			break
		}
		if strings.ContainsAny(word[len(bare):], ".;:!)") {
			break
		}
	}
	return sum, ok && number == "" // a number without a unit would make it longer
}
