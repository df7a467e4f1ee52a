package precise

// A lead is how long before an instant the timer expires. To wake a core that sleeps
// takes tens of microseconds, more on a virtual machine, and never the same. So the
// timer expires a little early, and what is left is spent in yielding to others.
//
// It follows how long waking takes on this machine now: most wake-ups shall come in
// time, but only just, as yielding costs CPU time.
type lead struct{ ns int64 }

const (
	maxLead = 100_000
	// Three steps down balance one up, so the lead settles where three of four wake-ups
	// take less. Steps are small, so that no single one counts, however late.
	leadStep = 500
	leadRise = 3 * leadStep
)

// note is told how long after its expiry the timer has woken the goroutine.
func (l *lead) note(late int64) {
	if late > l.ns {
		l.ns = min(l.ns+leadRise, maxLead)
	} else {
		l.ns = max(l.ns-leadStep, 0)
	}
}
