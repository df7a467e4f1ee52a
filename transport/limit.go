package transport

import (
	"net/http"

	"github.com/sluice-go/sluice/transport/feedback"
)

// WithLimits has f called with each limit that an answer states (RateLimit-Policy,
// X-RateLimit-Limit and others; see [feedback.ReadLimits]), refusals too, before the caller gets
// the answer and the next request can leave by it. key is that of [NewKeyed], empty with [New].
// So f can have a limit follow what the partner tells, as by Update of a Shaper:
//
//	transport.WithLimits(func(_ string, l feedback.Limit) {
//		_ = pace.Update(func(s scheduler.Scheduler) error {
//			if window, ok := s.(*scheduler.SlidingLog); ok && l.Window == 10*time.Second {
//				return window.SetLimit(time.Now(), l.Units)
//			}
//			return nil
//		})
//	})
//
// f is called for each such answer, whether it says anything new or not, on the goroutine of the
// request: it should be quick, and must be safe for concurrent use. What a partner states is not
// checked but for being above 0: f decides what to believe. Not with WithClassifier(nil).
func WithLimits(f func(key string, l feedback.Limit)) Option {
	return func(c *config) { c.limits = f }
}

// learn hands on what an answer states.
func (t *Transport) learn(p *passage, h http.Header) {
	if t.limits == nil {
		return
	}
	for _, l := range feedback.ReadLimits(h) {
		t.limits(p.Key, l)
	}
}
