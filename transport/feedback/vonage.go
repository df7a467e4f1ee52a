package feedback

import (
	"net/http"
	"strings"
	"time"
)

// Vonage is the Classifier for Vonage (Nexmo), whose older services refuse in the body
// of a 200: status 1 means throttled. A message of several parts has a status for
// each; the request counts as Unprocessed only if none of them was accepted. The time
// stands in the text, in milliseconds between brackets. Services without messages have
// a single status; since documents of any kind have one, it must come with the text of
// an error.
//
// It looks at the body of every 200 that says it is JSON. The XML form of those services
// is not read. The newer services answer 429.
func Vonage(a *Answer) Verdict {
	if a.Status() != http.StatusOK || !a.isJSON() {
		return Default(a)
	}
	doc := parseJSON(a.Body())
	parts := doc.get("messages").list()
	if len(parts) == 0 {
		if vonageText(doc) == "" {
			return Default(a)
		}
		parts = []node{doc} // the services that have no messages
	}
	throttled := 0
	var wait time.Duration
	told := false
	for _, part := range parts {
		if !vonageThrottled(part) {
			continue
		}
		throttled++
		if d, ok := waitInText(vonageText(part)); ok {
			wait, told = max(wait, d), true
		}
	}
	if throttled == 0 {
		return Default(a)
	}
	v := refusal(a)
	v.Unprocessed = throttled == len(parts)
	if told {
		v = a.stated(v, wait)
	}
	return v
}

func vonageThrottled(part node) bool {
	status := part.get("status")
	return status.text() == "1" || status.says("throughput") && status.says("exceeded")
}

// vonageText returns the text of an error, under either of its names.
func vonageText(part node) string {
	if text := part.get("error-text").text(); text != "" {
		return text
	}
	return part.get("error_text").text()
}

// waitInText finds "wait [ 978 ]" or "wait 978 ms": milliseconds, unless another unit
// follows.
func waitInText(text string) (time.Duration, bool) {
	_, text, ok := strings.Cut(strings.ToLower(text), "wait")
	if !ok {
		return 0, false
	}
	text = strings.TrimLeft(text, " [")
	end := strings.IndexFunc(text, func(c rune) bool { return c < '0' || c > '9' })
	if end <= 0 {
		return 0, false
	}
	d, ok := parseDecimal(text[:end])
	unit := strings.TrimLeft(text[end:], " ")
	if !ok || !strings.HasPrefix(unit, "]") && !strings.HasPrefix(unit, "ms") {
		return 0, false
	}
	return d.of(time.Millisecond), true
}
