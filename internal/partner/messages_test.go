package partner_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/sluice-go/sluice/internal/partner"
)

func TestMessageAnswer(t *testing.T) {
	p := newPartner(t, partner.Config{})
	w := send(t, p, strings.Repeat("a", 161))
	assert.Equal(t, http.StatusAccepted, w.Code)
	assert.Equal(t, "application/json", w.Header().Get("Content-Type"))
	assert.JSONEq(t, `{"id":"msg_000001","status":"queued","segments":2}`, w.Body.String())

	w = send(t, p, "")
	assert.JSONEq(t, `{"id":"msg_000002","status":"queued","segments":1}`, w.Body.String())

	s := p.Stats().SMS
	assert.EqualValues(t, 2, s.Accepted)
	assert.EqualValues(t, 3, s.AcceptedUnits)
}

// Ten units in any half-open second: the call exactly a second later is outside.
func TestMessageWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limit := partner.Limit{Units: 10, Window: time.Second}
		p := newPartner(t, partner.Config{SMS: partner.Endpoint{Limit: limit}})
		long := strings.Repeat("a", 3*153) // costs 3

		for range 3 {
			assert.Equal(t, http.StatusAccepted, send(t, p, long).Code)
		}
		assertProblem(t, http.StatusTooManyRequests, send(t, p, long)) // 12 units
		time.Sleep(400 * time.Millisecond)
		assert.Equal(t, http.StatusAccepted, send(t, p, "a").Code) // 10 units
		assertProblem(t, http.StatusTooManyRequests, send(t, p, "a"))

		time.Sleep(600*time.Millisecond - 1)
		w := send(t, p, "a")
		assertProblem(t, http.StatusTooManyRequests, w)
		assert.Equal(t, "1", w.Header().Get("Retry-After"))

		time.Sleep(time.Nanosecond)
		for range 3 {
			assert.Equal(t, http.StatusAccepted, send(t, p, long).Code)
		}
		assertProblem(t, http.StatusTooManyRequests, send(t, p, "a")) // the one at 400 ms still counts

		s := p.Stats().SMS
		assert.EqualValues(t, 7, s.Accepted)
		assert.EqualValues(t, 19, s.AcceptedUnits)
		assert.EqualValues(t, 4, s.Refused)
		assert.EqualValues(t, 19, s.WorstWindow, "both ends of a closed window count")
		assert.Zero(t, s.SmallestGap)
	})
}

// Ten per second, evenly spaced, with 5 ms for the network.
func TestMessageEvenSpacing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limit := partner.Limit{Units: 10, Window: time.Second, Even: true, Slack: 5 * time.Millisecond}
		p := newPartner(t, partner.Config{SMS: partner.Endpoint{Limit: limit}})
		long := strings.Repeat("a", 12*153) // costs 12, more than one second has

		assert.Equal(t, http.StatusAccepted, send(t, p, "a").Code)
		time.Sleep(95*time.Millisecond - 1)
		assertProblem(t, http.StatusTooManyRequests, send(t, p, "a"))
		time.Sleep(time.Nanosecond)
		assert.Equal(t, http.StatusAccepted, send(t, p, long).Code)

		time.Sleep(1195*time.Millisecond - 1)
		assertProblem(t, http.StatusTooManyRequests, send(t, p, "a"))
		time.Sleep(time.Nanosecond)
		assert.Equal(t, http.StatusAccepted, send(t, p, "a").Code)

		assert.Equal(t, partner.Score{
			Accepted: 3, AcceptedUnits: 14, Refused: 2, WorstWindow: 13,
			CallsDuringHold: 2, // whole seconds say more than the spacing does
			SmallestGap:     95 * time.Millisecond, HighestConcurrency: 1,
		}, p.Stats().SMS)
	})
}

// One unit per interval says the same for messages of one part, without Even.
func TestMessageOneUnitPerWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limit := partner.Limit{Units: 1, Window: 100 * time.Millisecond, Slack: 5 * time.Millisecond}
		p := newPartner(t, partner.Config{SMS: partner.Endpoint{Limit: limit}})
		for i := range 20 {
			assert.Equal(t, http.StatusAccepted, send(t, p, "a").Code, i)
			time.Sleep(95*time.Millisecond - 1)
			assert.Equal(t, http.StatusTooManyRequests, send(t, p, "a").Code, i)
			time.Sleep(time.Nanosecond)
		}
		assertProblem(t, http.StatusUnprocessableEntity, send(t, p, strings.Repeat("a", 161)))
	})
}

// A caller that waits as long as Retry-After says is accepted; no shorter number
// of seconds would do.
func TestMessageRetryAfter(t *testing.T) {
	for _, tt := range []struct {
		window time.Duration
		want   string
		sleep  time.Duration
	}{
		{1, "1", time.Second},
		{time.Second - 1, "1", time.Second},
		{time.Second, "1", time.Second},
		{time.Second + 1, "2", 2 * time.Second},
		{90 * time.Second, "90", 90 * time.Second},
		{24*time.Hour + time.Millisecond, "86401", 86401 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			limit := partner.Limit{Units: 1, Window: tt.window}
			p := newPartner(t, partner.Config{SMS: partner.Endpoint{Limit: limit}})
			assert.Equal(t, http.StatusAccepted, send(t, p, "a").Code)
			w := send(t, p, "a")
			assertProblem(t, http.StatusTooManyRequests, w)
			assert.Equal(t, tt.want, w.Header().Get("Retry-After"), tt.window)
			time.Sleep(tt.sleep)
			assert.Equal(t, http.StatusAccepted, send(t, p, "a").Code)
		})
	}
}

// A message beyond the concurrency is refused with the shortest Retry-After, since
// the wait is not known, and costs no unit.
func TestMessageConcurrency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPartner(t, partner.Config{SMS: partner.Endpoint{
			Limit:       partner.Limit{Units: 2, Window: time.Hour},
			Concurrency: 1,
			Latency:     time.Second,
		}})
		go send(t, p, "a")
		synctest.Wait()
		w := send(t, p, "a")
		assertProblem(t, http.StatusTooManyRequests, w)
		assert.Equal(t, "1", w.Header().Get("Retry-After"))
		time.Sleep(time.Second)
		synctest.Wait()
		assert.Equal(t, http.StatusAccepted, send(t, p, "a").Code)
	})
}

func TestMessageAbandoned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPartner(t, partner.Config{SMS: partner.Endpoint{Latency: time.Second}})
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		begin := time.Now()
		w := serve(p, newRequest(t, "POST", "/v1/messages", `{"to":"1"}`).WithContext(ctx))
		assertProblem(t, http.StatusServiceUnavailable, w)
		assert.Equal(t, 300*time.Millisecond, time.Since(begin))
		assert.EqualValues(t, 1, p.Stats().SMS.Abandoned)
		assert.EqualValues(t, 1, p.Stats().SMS.Accepted)
	})
}
