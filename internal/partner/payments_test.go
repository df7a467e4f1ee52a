package partner_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/sluice-go/sluice/internal/partner"
)

func invoice(n int) string {
	return fmt.Sprintf(`{"amount":1250,"currency":"EUR","reference":"invoice %d"}`, n)
}

func TestPaymentAnswerAndReplay(t *testing.T) {
	p := newPartner(t, partner.Config{})
	first := pay(t, p, "key 1", invoice(1))
	assert.Equal(t, http.StatusCreated, first.Code)
	assert.Equal(t, "application/json", first.Header().Get("Content-Type"))
	assert.Empty(t, first.Header().Values("Idempotent-Replayed"))
	assert.JSONEq(t, `{"id":"pay_000001","status":"succeeded","amount":1250,"currency":"EUR"}`, first.Body.String())

	assert.JSONEq(t, `{"id":"pay_000002","status":"succeeded","amount":1250,"currency":"EUR"}`,
		pay(t, p, "key 2", invoice(2)).Body.String())

	again := pay(t, p, "key 1", invoice(1))
	assert.Equal(t, http.StatusCreated, again.Code)
	assert.Equal(t, "true", again.Header().Get("Idempotent-Replayed"))
	assert.Equal(t, first.Body.String(), again.Body.String())

	assertProblem(t, http.StatusUnprocessableEntity, pay(t, p, "key 1", invoice(3)))

	s := p.Stats().Payments
	assert.EqualValues(t, 4, s.Accepted, "replays and conflicts are calls")
	assert.EqualValues(t, 2, s.Charges)
	assert.EqualValues(t, 1, s.Replays)
	assert.EqualValues(t, 1, s.Conflicts)
	assert.Zero(t, s.DuplicateCharges)
	assert.Zero(t, s.BadRequests)
}

// By default the 26th call in a second is refused, without a word about when to
// come back. A refusal leaves no trace of its key.
func TestPaymentDefaultLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPartner(t, partner.Config{})
		for range 25 {
			assert.Equal(t, http.StatusCreated, pay(t, p, "key", invoice(1)).Code)
		}
		w := pay(t, p, "other", invoice(2))
		assertProblem(t, http.StatusTooManyRequests, w)
		assert.Empty(t, w.Header().Values("Retry-After"))

		time.Sleep(990*time.Millisecond - 1)
		assertProblem(t, http.StatusTooManyRequests, pay(t, p, "other", invoice(2)))
		time.Sleep(time.Nanosecond)
		w = pay(t, p, "other", invoice(2))
		assert.Equal(t, http.StatusCreated, w.Code)
		assert.Empty(t, w.Header().Values("Idempotent-Replayed"))

		s := p.Stats().Payments
		assert.EqualValues(t, 26, s.Accepted)
		assert.EqualValues(t, 26, s.WorstWindow, "the slack does not shorten the score's window")
		assert.EqualValues(t, 2, s.Refused)
		assert.EqualValues(t, 2, s.Charges)
		assert.EqualValues(t, 24, s.Replays)
	})
}

// By default 5 calls are processed at a time. The others are refused at once and
// take no unit; the score shows how many came.
func TestPaymentConcurrency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPartner(t, partner.Config{Payments: partner.Endpoint{
			Limit:   partner.Limit{Units: 10, Window: time.Hour},
			Latency: 100 * time.Millisecond,
		}})
		for round := range 2 {
			var calls sync.WaitGroup
			for i := range 5 {
				calls.Go(func() {
					n := 10*round + i
					assert.Equal(t, http.StatusCreated, pay(t, p, fmt.Sprint(n), invoice(n)).Code)
				})
			}
			synctest.Wait()
			for range 2 {
				w := pay(t, p, "one too many", invoice(100))
				assertProblem(t, http.StatusTooManyRequests, w)
				assert.Empty(t, w.Header().Values("Retry-After"))
			}
			begin := time.Now()
			calls.Wait()
			assert.Equal(t, 100*time.Millisecond, time.Since(begin))
		}
		s := p.Stats().Payments
		assert.EqualValues(t, 10, s.Accepted)
		assert.EqualValues(t, 4, s.Refused)
		assert.Equal(t, 6, s.HighestConcurrency)
	})
}

// While the first call of a key is being processed, others with this key are
// conflicts, and only the first is charged.
func TestPaymentStillProcessed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPartner(t, partner.Config{Payments: partner.Endpoint{Latency: time.Second}})
		go func() { assert.Equal(t, http.StatusCreated, pay(t, p, "key", invoice(1)).Code) }()
		synctest.Wait()
		begin := time.Now()
		assertProblem(t, http.StatusConflict, pay(t, p, "key", invoice(1)))
		assertProblem(t, http.StatusUnprocessableEntity, pay(t, p, "key", invoice(2)))
		assert.Zero(t, time.Since(begin), "conflicts are not processed")
		time.Sleep(time.Second)
		synctest.Wait()
		assert.Equal(t, "true", pay(t, p, "key", invoice(1)).Header().Get("Idempotent-Replayed"))
		assert.Zero(t, time.Since(begin)-time.Second, "nor are replays")

		s := p.Stats().Payments
		assert.EqualValues(t, 1, s.Charges)
		assert.EqualValues(t, 2, s.Conflicts)
		assert.EqualValues(t, 1, s.Replays)
	})
}

// A call whose caller leaves is not charged; its key and its place are free again.
func TestPaymentAbandoned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPartner(t, partner.Config{Payments: partner.Endpoint{Concurrency: 1, Latency: time.Second}})
		for _, after := range []time.Duration{0, 300 * time.Millisecond, time.Second - 1} {
			ctx, cancel := context.WithTimeout(t.Context(), after)
			r := newRequest(t, "POST", "/v1/payments", invoice(1)).WithContext(ctx)
			r.Header.Set("Idempotency-Key", "key")
			begin := time.Now()
			assertProblem(t, http.StatusServiceUnavailable, serve(p, r))
			assert.Equal(t, after, time.Since(begin))
			cancel()
		}
		w := pay(t, p, "key", invoice(1))
		assert.Equal(t, http.StatusCreated, w.Code)
		assert.Empty(t, w.Header().Values("Idempotent-Replayed"))

		s := p.Stats().Payments
		assert.EqualValues(t, 4, s.Accepted)
		assert.EqualValues(t, 3, s.Abandoned)
		assert.EqualValues(t, 1, s.Charges)
	})
}

// The score notices what idempotency keys cannot prevent: one reference under two
// keys, and a key that was forgotten meanwhile.
func TestPaymentDuplicateCharges(t *testing.T) {
	p := newPartner(t, partner.Config{Keys: 2, Payments: partner.Endpoint{
		Limit: partner.Limit{Units: 100, Window: time.Hour},
	}})
	pay(t, p, "a", invoice(1))
	pay(t, p, "b", invoice(1))
	assert.EqualValues(t, 1, p.Stats().Payments.DuplicateCharges, "new key")

	pay(t, p, "c", invoice(2))
	assert.Equal(t, "true", pay(t, p, "b", invoice(1)).Header().Get("Idempotent-Replayed"), "still known")
	assert.Empty(t, pay(t, p, "a", invoice(1)).Header().Get("Idempotent-Replayed"), "forgotten")
	assert.EqualValues(t, 2, p.Stats().Payments.DuplicateCharges, "forgotten key")

	for _, key := range []string{"d", "e"} {
		assert.Equal(t, http.StatusCreated, pay(t, p, key, `{"amount":1,"currency":"EUR"}`).Code)
	}
	assert.EqualValues(t, 2, p.Stats().Payments.DuplicateCharges, "no reference, no duplicate")

	for n := 3; n <= 20; n++ {
		pay(t, p, fmt.Sprint(n), invoice(n))
	}
	pay(t, p, "f", invoice(1))
	assert.EqualValues(t, 3, p.Stats().Payments.DuplicateCharges, "20 references ago")
	pay(t, p, "g", invoice(21))
	pay(t, p, "h", invoice(1))
	assert.EqualValues(t, 3, p.Stats().Payments.DuplicateCharges, "beyond what is remembered")
}
