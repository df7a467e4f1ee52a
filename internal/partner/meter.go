package partner

import "time"

// A meter decides whether a call of n units that arrives now is accepted. Instants
// are measured from an arbitrary epoch and never decrease. A meter is not safe for
// concurrent use.
//
// admit returns 0 if the call is accepted and records it. Otherwise nothing
// changes and admit returns the wait after which the same call would be accepted,
// as long as no other call is meanwhile. n is positive and at most the limit's
// largest.
//
// charge records a call that was accepted before, by whatever rule.
type meter interface {
	admit(now time.Duration, n int64) (wait time.Duration)
	charge(at time.Duration, n int64)
}

// A logMeter accepts at most units in any half-open window of length span.
type logMeter struct {
	units int64
	span  time.Duration
	log   arrivals
}

func (m *logMeter) admit(now time.Duration, n int64) time.Duration {
	// An arrival exactly span ago is outside the window that ends with now.
	m.log.forget(now - m.span + 1)
	if excess := n - (m.units - m.log.units); excess > 0 {
		return m.span - (now - m.log.reaches(excess))
	}
	m.log.add(now, n)
	return 0
}

func (m *logMeter) charge(at time.Duration, n int64) { m.log.add(at, n) }

// An evenMeter accepts a call once the one before it has had its time.
type evenMeter struct {
	limit Limit
	last  arrival // no units: no call yet
}

func (m *evenMeter) admit(now time.Duration, n int64) time.Duration {
	if m.last.units > 0 {
		apart := m.limit.spacing(m.last.units) - m.limit.Slack
		if early := apart - (now - m.last.at); early > 0 {
			return early
		}
	}
	m.last = arrival{now, n}
	return 0
}

func (m *evenMeter) charge(at time.Duration, n int64) { m.last = arrival{at, n} }
