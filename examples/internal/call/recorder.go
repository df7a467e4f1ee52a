package call

import (
	"context"
	"net/http"

	"github.com/sluice-go/sluice/examples/internal/departures"
)

// A Recorder is an [http.RoundTripper] that stands between a pacing transport and
// the one that sends. What reaches it has just left the line: it notes the instant
// and tells the [Call].
type Recorder struct {
	base http.RoundTripper
	log  *departures.Log
}

// NewRecorder returns a Recorder that writes to log and sends through base.
func NewRecorder(base http.RoundTripper, log *departures.Log) *Recorder {
	return &Recorder{base, log}
}

// RoundTrip sends the request of a [Call].
func (r *Recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	if c, ok := req.Context().Value(callKey{}).(*Call); ok && !c.depart(r.log) {
		if req.Body != nil {
			req.Body.Close()
		}
		return nil, context.Canceled
	}
	return r.base.RoundTrip(req)
}

// Unwrap returns the base, so that idle connections can be closed through it.
func (r *Recorder) Unwrap() http.RoundTripper { return r.base }
