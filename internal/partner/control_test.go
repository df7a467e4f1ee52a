package partner_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/internal/partner"
)

// accepted sends messages until one is refused.
func accepted(t *testing.T, p *partner.Partner) int {
	for n := range 1000 {
		if send(t, p, "a").Code != http.StatusAccepted {
			return n
		}
	}
	t.Fatal("nothing is refused")
	return 0
}

// A limit drops and recovers while the partner serves. By every rule, what was
// accepted before is still on the books.
func TestLimitDropsAndRecovers(t *testing.T) {
	for _, rule := range append(partner.Rules(), "") {
		t.Run(string(rule), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				high := partner.Limit{Units: 10, Window: time.Second, By: rule}
				low := partner.Limit{Units: 4, Window: time.Second, By: rule}
				if rule == partner.GCRA {
					high.Burst, low.Burst = 10, 4
				}
				p := newPartner(t, partner.Config{SMS: partner.Endpoint{Limit: high}})
				for range 4 {
					assert.Equal(t, http.StatusAccepted, send(t, p, "a").Code)
				}
				require.NoError(t, p.SMS().SetLimit(low))
				assert.Zero(t, accepted(t, p), "the four have used it up")
				require.NoError(t, p.SMS().SetLimit(high))
				assert.Equal(t, 6, accepted(t, p), "of ten")

				time.Sleep(time.Minute)
				require.NoError(t, p.SMS().SetLimit(low))
				assert.Equal(t, 4, accepted(t, p))
				time.Sleep(time.Minute)
				require.NoError(t, p.SMS().SetLimit(high))
				assert.Equal(t, 10, accepted(t, p))
				assert.EqualValues(t, 10, p.Stats().SMS.WorstWindow)
			})
		})
	}
}

// The even spacing too counts from the last call, whatever the limit was then.
func TestEvenLimitDrops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		even := func(units int64) partner.Limit {
			return partner.Limit{Units: units, Window: time.Second, Even: true}
		}
		p := newPartner(t, partner.Config{SMS: partner.Endpoint{Limit: even(10)}})
		send(t, p, "a")
		require.NoError(t, p.SMS().SetLimit(even(2)))
		time.Sleep(500*time.Millisecond - 1)
		assert.Zero(t, accepted(t, p))
		time.Sleep(time.Nanosecond)
		assert.Equal(t, 1, accepted(t, p))
	})
}

// A message that is larger than the limit became is not a call.
func TestLimitBelowOneCall(t *testing.T) {
	p := newPartner(t, partner.Config{})
	require.NoError(t, p.SMS().SetLimit(partner.Limit{Units: 1, Window: time.Second}))
	assertProblem(t, http.StatusUnprocessableEntity, send(t, p, fmt.Sprintf("%161d", 1)))
	require.NoError(t, p.SMS().SetLimit(partner.Limit{}))
	assert.Equal(t, http.StatusAccepted, send(t, p, fmt.Sprintf("%161d", 1)).Code, "the default")
}

// What makes no sense is refused and changes nothing.
func TestControlNamesBadValues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPartner(t, partner.Config{})
		good := partner.Mood{Refusal: partner.Forbidden}
		require.NoError(t, p.Payments().Misbehave(good))
		assert.EqualError(t, p.Payments().Misbehave(partner.Mood{Pad: -1}), "partner: payments: pad -1: must be from 0 to 1048576")
		assert.EqualError(t, p.Payments().SetLimit(partner.Limit{Units: 1}), "partner: payments: window 0s: must be positive")
		assert.EqualError(t, p.SMS().SetLimit(partner.Limit{Units: 1, Window: 1, By: "x"}),
			`partner: sms: rule "x": must be one of ["token-bucket" "leaky-bucket" "fixed-window" "sliding-log" "sliding-counter" "gcra"]`)
		assert.EqualError(t, p.Break("x", 1), `partner: break "x": must be one of ["idle-close" "hang-up" "goaway" "refused-stream"]`)

		assert.Equal(t, 10, accepted(t, p))
		for range 25 {
			assert.Equal(t, http.StatusCreated, pay(t, p, "key", invoice(1)).Code)
		}
		assertProblem(t, http.StatusForbidden, pay(t, p, "key", invoice(1)))
	})
}

// Exactly n calls are refused, they take no unit, and 0 ends it.
func TestRefuse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPartner(t, partner.Config{})
		p.SMS().Refuse(2, time.Minute)
		assert.Zero(t, accepted(t, p))
		assert.Zero(t, accepted(t, p))
		assert.Equal(t, 10, accepted(t, p))
		time.Sleep(time.Hour)
		p.SMS().Refuse(5, time.Minute)
		p.SMS().Refuse(0, 0)
		assert.Equal(t, 10, accepted(t, p))
		assert.EqualValues(t, 20, p.Stats().SMS.Accepted)
		assert.EqualValues(t, 4, p.Stats().SMS.Refused)
	})
}

// Slow holds up every answer to a call, accepted, replayed or refused, and nothing else.
func TestSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPartner(t, partner.Config{Payments: partner.Endpoint{
			Latency:   time.Second,
			Misbehave: partner.Mood{Slow: 3 * time.Second},
		}})
		took := func(want time.Duration, status int, do func() int) {
			t.Helper()
			begin := time.Now()
			assert.Equal(t, status, do())
			assert.Equal(t, want, time.Since(begin))
		}
		charge := func() int { return pay(t, p, "key", invoice(1)).Code }
		took(4*time.Second, http.StatusCreated, charge)
		took(3*time.Second, http.StatusCreated, charge) // a replay
		p.Payments().Refuse(1, 0)
		took(3*time.Second, http.StatusTooManyRequests, charge)
		took(0, http.StatusUnprocessableEntity, func() int { return pay(t, p, "key", `{}`).Code })

		require.NoError(t, p.Payments().Misbehave(partner.Mood{}))
		took(0, http.StatusCreated, charge)
	})
}

// A hold begins when the refusal is written. A call that came while a slow refusal was
// on its way is innocent; the slow refusal states what is left of the wait.
func TestHoldBeginsWithTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPartner(t, partner.Config{SMS: partner.Endpoint{
			Misbehave: partner.Mood{Slow: 2 * time.Second, Hint: partner.RetryAfterMillis},
		}})
		p.SMS().Refuse(1, 5*time.Second)
		go func() {
			h := send(t, p, "a").Header()
			assert.Equal(t, "3000", h.Get("Retry-After-Ms"))
			assert.Equal(t, "Sat, 01 Jan 2000 00:00:02 GMT", h.Get("Date"))
		}()
		time.Sleep(time.Second)
		send(t, p, "a") // answered at 3 s
		assert.Zero(t, p.Stats().SMS.CallsDuringHold)
		send(t, p, "a") // answered at 5 s
		assert.EqualValues(t, 1, p.Stats().SMS.CallsDuringHold)
		send(t, p, "a")
		assert.EqualValues(t, 1, p.Stats().SMS.CallsDuringHold, "at 5 s it is over")
	})
}

// A body that takes its time.
type lateBody struct {
	io.Reader
	delay time.Duration
}

func (b *lateBody) Read(p []byte) (int, error) {
	time.Sleep(b.delay)
	b.delay = 0
	return b.Reader.Read(p)
}

// A call that arrived before a refusal is innocent, even if it is judged after it
// because its body took so long.
func TestHoldAndALateBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPartner(t, partner.Config{})
		late := func(delay time.Duration) {
			r := newRequest(t, "POST", "/v1/messages", "")
			r.Body = io.NopCloser(&lateBody{strings.NewReader(`{"to":"1"}`), delay})
			serve(p, r)
		}
		go late(2 * time.Second)
		time.Sleep(time.Second)
		p.SMS().Refuse(1, 5*time.Second)
		send(t, p, "a")
		time.Sleep(time.Second)
		synctest.Wait()
		assert.EqualValues(t, 1, p.Stats().SMS.Accepted)
		assert.Zero(t, p.Stats().SMS.CallsDuringHold)
		late(time.Hour) // came too early, however late it is judged
		assert.EqualValues(t, 1, p.Stats().SMS.CallsDuringHold)
	})
}

// Of two holds the later stands, in whatever order they are stated.
func TestHoldsMoveForward(t *testing.T) {
	for _, waits := range [][]time.Duration{{10 * time.Second, 3 * time.Second}, {3 * time.Second, 10 * time.Second}} {
		synctest.Test(t, func(t *testing.T) {
			p := newPartner(t, partner.Config{})
			for _, wait := range waits {
				p.SMS().Refuse(1, wait)
				send(t, p, "a")
			}
			assert.EqualValues(t, 1, p.Stats().SMS.CallsDuringHold, "the second refused call is one")
			time.Sleep(10*time.Second - 1)
			send(t, p, "a")
			assert.EqualValues(t, 2, p.Stats().SMS.CallsDuringHold)
			time.Sleep(time.Nanosecond)
			send(t, p, "a")
			assert.EqualValues(t, 2, p.Stats().SMS.CallsDuringHold)
		})
	}
}

// All that can be changed is changed while many callers call.
func TestChangesWhileServing(t *testing.T) {
	const callers, each = 4, 60
	p := newPartner(t, partner.Config{SMS: partner.Endpoint{Key: partner.BySender}})
	url, stop, client := start(t, p)
	var changes, calls sync.WaitGroup
	done := make(chan struct{})
	changes.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-done:
				return
			default:
			}
			mood := partner.Mood{
				Hint:    partner.Hints()[i%len(partner.Hints())],
				Refusal: partner.Refusals()[i%len(partner.Refusals())],
				Header:  http.Header{"X-Mood": {fmt.Sprint(i)}},
				Pad:     i % 100, Skew: time.Duration(i),
			}
			limit := partner.Limit{Units: int64(i%50 + 1), Window: 10 * time.Millisecond, By: partner.Rules()[i%len(partner.Rules())]}
			for _, c := range []partner.Control{p.SMS(), p.Payments()} {
				assert.NoError(t, c.Misbehave(mood))
				assert.NoError(t, c.SetLimit(limit))
				c.Refuse(i%2, time.Duration(i))
			}
			assert.NoError(t, p.Break(partner.IdleClose, i%2))
			p.Stats()
		}
	})
	for n := range callers {
		calls.Go(func() {
			for i := range each {
				body := fmt.Sprintf(`{"from":"%d","to":"1","amount":1,"currency":"EUR"}`, n)
				for _, path := range []string{"/v1/messages", "/v1/payments"} {
					_, err := call(t.Context(), client, url+path, fmt.Sprint(n, i), body)
					assert.NoError(t, err, "an idle close is resent by net/http")
				}
			}
		})
	}
	calls.Wait()
	close(done)
	changes.Wait()
	stop()

	s := p.Stats()
	assert.EqualValues(t, callers*each, s.SMS.Accepted+s.SMS.Refused)
	assert.EqualValues(t, callers*each, s.Payments.Accepted+s.Payments.Refused)
	assert.EqualValues(t, s.SMS.Accepted+s.SMS.Refused+s.Payments.Accepted+s.Payments.Refused+s.Wire.Broken[partner.IdleClose], s.Wire.Requests)
	assert.Len(t, s.SMS.Keys, callers)
}
