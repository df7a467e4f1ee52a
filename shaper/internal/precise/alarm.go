package precise

import "time"

// Available reports whether precise alarms can be had here and now. They need Linux,
// a kernel that has given this process a timerfd and has not refused to set it since,
// and a clock of time.Now that is the machine's: inside a bubble of testing/synctest it
// is not. The first call makes the timerfd, which the process keeps.
func Available() bool {
	// The clock comes first: what the releaser is made of must not belong to a bubble.
	return clockIsReal() && shared().works()
}

// An Alarm calls its function once, soon after a set time has passed and never before.
// Its methods may be called from several goroutines.
//
// An Alarm that is set is referenced by this package, with all that its function
// refers to, until it has fired or is stopped. Otherwise it needs no care: it can be
// collected.
type Alarm struct {
	r    *releaser
	fire func()

	// Guarded by r.mu.
	at    int64       // when it is due, see sinceEpoch
	place int         // in r.due, or nowhere
	timer *time.Timer // serves in place of r, where r does not work
}

// New returns an Alarm that is not set. Where [Available] is true, fire runs on the
// process's one release goroutine, after all that were due earlier: it should be short
// and not block. Elsewhere it is run by a plain timer, on a goroutine of its own, with
// that timer's accuracy. It may call Set and Stop of this and other Alarms.
func New(fire func()) *Alarm {
	r := plain
	if Available() {
		r = shared()
	}
	return &Alarm{r: r, fire: fire, place: nowhere}
}

// Set has the Alarm fire once d has passed, in place of what was set before; as soon as
// possible if d is not positive. If it was about to fire, it may still do so, and fires
// for d nonetheless.
func (a *Alarm) Set(d time.Duration) {
	a.r.mu.Lock()
	defer a.r.mu.Unlock()
	a.r.setLocked(a, d)
}

// Stop drops what was set. It does not wait for the Alarm's function: if that was about
// to be called, it may still run once after Stop has returned.
func (a *Alarm) Stop() {
	a.r.mu.Lock()
	defer a.r.mu.Unlock()
	a.r.stopLocked(a)
}
