package call

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
)

// An Outcome is what became of a call.
type Outcome int

const (
	Accepted Outcome = iota // the partner took it: 2xx
	Refused                 // not now, the partner says: 429, 503
	Failed                  // any other answer, or none
	Unsent                  // it has not left
)

// An Answer is the outcome of a call and what it brought back.
type Answer struct {
	Outcome Outcome
	Status  int // 0 if there was no answer
	Header  http.Header
	Body    []byte // the first 64 KiB
	Err     error
}

// Reason says in a few words why a call was not accepted. It names neither the URL,
// which may hold a secret, nor anything that was sent.
func (a Answer) Reason() string {
	if a.Err == nil {
		return fmt.Sprint(a.Status, " ", http.StatusText(a.Status))
	}
	if urlError := (*url.Error)(nil); errors.As(a.Err, &urlError) {
		return urlError.Err.Error()
	}
	return a.Err.Error()
}
