package feedback

import "net/http"

// statusOverloaded is what Anthropic answers instead of 503.
const statusOverloaded = 529

// A word is how much a status alone says about a limit.
type word int

const (
	// silent is the word of a success, of a redirect, and of what is about the one
	// request: 400, 401, 404, 408, 409, 410 or 422, say. Sending another one is no mistake,
	// whatever time such an answer states.
	silent word = iota
	// timed is a refusal if the partner states when to come back.
	timed
	// counted is a refusal if it does, or if a header counts 0 remaining requests.
	counted
	// busy is a refusal, but without a time it may be one resource that is in trouble.
	busy
	// limited is a refusal.
	limited
)

// wordOf is the one table of statuses.
func wordOf(status int) word {
	switch status {
	case http.StatusTooManyRequests:
		return limited
	case http.StatusServiceUnavailable:
		return busy
	case http.StatusForbidden:
		return counted
	case http.StatusRequestEntityTooLarge, // RFC 9110, section 15.5.14: it may be temporary
		http.StatusTeapot,   // a blocked client
		420,                 // enhance your calm
		http.StatusTooEarly, // RFC 8470
		430,                 // too many requests that look like an attack
		http.StatusInternalServerError,
		http.StatusBadGateway,
		http.StatusGatewayTimeout,
		509, // bandwidth limit exceeded
		statusOverloaded,
		598: // a proxy's timeout
		return timed
	}
	return silent
}

// MayRefuse reports whether [Default] ever takes an answer with this status for a
// refusal. Of any other it needs no more than what remains; see [Counts].
func MayRefuse(status int) bool { return wordOf(status) != silent }
