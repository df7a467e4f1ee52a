package partner

import (
	"context"
	"math"
	"net/http"
	"time"
)

// linger makes an answer wait for d, or until ctx ends.
func (g *gate) linger(ctx context.Context, w http.ResponseWriter, d time.Duration) {
	if d <= 0 {
		return
	}
	// The server's own patience was set before the partner was told to be slow. It
	// cannot be changed where there is no server, and need not.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(add(d, 2*readTimeout)))
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// slow returns how long the mood makes an answer wait.
func (g *gate) slow() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.mood.Slow
}

// stamp dates an answer by the partner's clock.
func (g *gate) stamp(w http.ResponseWriter) {
	g.mu.Lock()
	skew := g.mood.Skew
	g.mu.Unlock()
	setDate(w.Header(), time.Now().Add(skew))
}

func setDate(h http.Header, t time.Time) {
	h.Set("Date", t.UTC().Format(http.TimeFormat))
}

// add returns the sum of two durations that are not negative, or the longest one.
func add(a, b time.Duration) time.Duration {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
