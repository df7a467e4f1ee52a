package partner

import (
	"fmt"
	"time"
)

// A Control changes how one endpoint of a partner behaves while it serves. It is
// safe for concurrent use. A request sees a change if it is judged after it.
type Control struct {
	name     string
	gate     *gate
	fallback Limit // for the zero Limit
}

// SMS controls the endpoint for messages.
func (p *Partner) SMS() Control { return Control{"sms", p.sms.gate, defaultSMS().Limit} }

// Payments controls the endpoint for payments.
func (p *Partner) Payments() Control {
	return Control{"payments", p.payments.gate, defaultPayments().Limit}
}

// Misbehave changes the endpoint's mood; the zero Mood ends all misbehaviour. It
// refuses a Mood that makes no sense, and then nothing changes.
func (c Control) Misbehave(m Mood) error {
	if err := m.validate(); err != nil {
		return fmt.Errorf("partner: %s: %w", c.name, err)
	}
	m = m.clone()
	c.gate.mu.Lock()
	defer c.gate.mu.Unlock()
	c.gate.mood = m
	return nil
}

// SetLimit changes the endpoint's limit: let it drop and later recover. The calls
// that were accepted in the last window count under the new limit too. The zero
// Limit is the endpoint's default. An error leaves the limit as it was.
func (c Control) SetLimit(l Limit) error {
	if l == (Limit{}) {
		l = c.fallback
	}
	if err := l.validate(); err != nil {
		return fmt.Errorf("partner: %s: %w", c.name, err)
	}
	c.gate.mu.Lock()
	defer c.gate.mu.Unlock()
	c.gate.limit = l
	c.gate.relimitLocked()
	return nil
}

// Refuse makes the endpoint refuse its next n calls, whatever the limit says, as if
// each might be accepted after wait. A wait of 0 is not known, as when there
// are too many calls at a time. It replaces what an earlier Refuse left over, so an
// n of 0 ends it.
func (c Control) Refuse(n int, wait time.Duration) {
	c.gate.mu.Lock()
	defer c.gate.mu.Unlock()
	c.gate.forced, c.gate.forcedWait = max(0, n), max(0, wait)
}
