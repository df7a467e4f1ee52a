package feedback

import (
	"net/http"
	"time"
)

// millisFields are the fields that state a delay in milliseconds: of Azure's OpenAI
// service, of Cosmos DB, and of AWS, whose name does not tell.
var millisFields = [...]string{"Retry-After-Ms", "X-Ms-Retry-After-Ms", "X-Amz-Retry-After"}

// retryAfterMillis reads the longest of the delays in milliseconds.
func retryAfterMillis(h http.Header) (wait time.Duration, ok bool) {
	for _, name := range millisFields {
		for s := range elements(field(h, name)) {
			if d, valid := parseDecimal(s); valid {
				wait, ok = max(wait, d.of(time.Millisecond)), true
			}
		}
	}
	return wait, ok
}

// retryAfter reads Retry-After (RFC 9110, section 10.2.3), a delay in seconds or an
// HTTP-date, and beyond it fractions and the other ways to write a duration or a
// date. The longest of several stands ("120, 60"); "1,000" is none. With epoch a number
// can be a point in time.
func retryAfter(h http.Header, now time.Time, epoch bool) (wait time.Duration, ok bool) {
	for s := range elements(field(h, "Retry-After")) {
		if d, valid := parseDecimal(s); valid && !epoch {
			// However large it is: the standard knows no other number.
			wait, ok = max(wait, d.of(time.Second)), true
		} else if d, valid := untilReset(s, now); valid {
			wait, ok = max(wait, d), true
		}
	}
	return wait, ok
}
