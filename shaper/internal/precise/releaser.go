package precise

import (
	"container/heap"
	"runtime"
	"sync"
	"time"
)

const (
	// defaultLinger is longer than the pauses in steady work, and too short to be
	// noticed.
	defaultLinger = 100 * time.Millisecond
	// maxSleep keeps what is armed within what a kernel of 32 bits can count.
	maxSleep = 24 * time.Hour
)

// A releaser fires Alarms when they are due.
type releaser struct {
	timer *kernelTimer
	// linger is how long the release goroutine stays when there is nothing to do.
	linger time.Duration

	mu sync.Mutex
	// failed: the kernel does not serve; each Alarm has a timer of its own.
	failed    bool
	due       alarms
	goroutine state
	// armed is when the timer expires or has expired. While the goroutine is asleep it
	// is not later than the lead before the earliest due. The kernel counts from a moment after the
	// clock was read, so it is never too early.
	armed int64
	// idle: nothing was set since the timer was armed for the end of the linger.
	idle bool
	lead lead
}

// The states of the release goroutine.
type state int

const (
	none   state = iota
	awake        // will look at what is due, and arm the timer, before it sleeps
	asleep       // wakes when the timer expires
)

// shared is the process's one releaser, made on first use.
var shared = sync.OnceValue(newReleaser)

// plain serves the Alarms of where there is no precise one.
var plain = &releaser{failed: true}

func newReleaser() *releaser {
	timer, err := newKernelTimer()
	return &releaser{timer: timer, linger: defaultLinger, failed: err != nil}
}

func (r *releaser) works() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.failed
}

func (r *releaser) setLocked(a *Alarm, d time.Duration) {
	if r.failed {
		if a.timer == nil {
			a.timer = time.AfterFunc(d, a.fire)
		} else {
			a.timer.Reset(d)
		}
		return
	}
	now := sinceEpoch()
	a.at = after(now, d)
	if a.place == nowhere {
		heap.Push(&r.due, a)
	} else {
		heap.Fix(&r.due, a.place)
	}
	r.idle = false
	switch r.goroutine {
	case none:
		r.goroutine = awake
		go r.run()
	case awake:
		// It arms the timer once, at the end of its pass, however many were set.
	case asleep:
		// For something later it may wake up for nothing once: mostly it is set anew
		// before.
		if at := a.at - r.lead.ns; at < r.armed {
			r.armLocked(now, at)
		}
	}
}

func (r *releaser) stopLocked(a *Alarm) {
	if a.timer != nil {
		a.timer.Stop()
	}
	if a.place == nowhere {
		return
	}
	heap.Remove(&r.due, a.place)
	if len(r.due) > 0 || r.goroutine != asleep {
		return
	}
	// The goroutine would stay for as long as what was stopped.
	if now := sinceEpoch(); r.armed > after(now, r.linger) {
		r.lingerLocked(now)
	}
}

// run is the release goroutine.
func (r *releaser) run() {
	ended := false
	defer func() {
		if !ended { // a function of an Alarm has called runtime.Goexit
			go r.run()
		}
	}()
	err := r.timer.watch(r.pass)
	ended = true
	if err != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.failLocked(sinceEpoch())
	}
}

// pass fires what is due and arms the timer for what comes next. It reports whether
// the goroutine ends.
func (r *releaser) pass() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	woken := r.goroutine == asleep // by the timer, and not just started
	r.goroutine = awake
	now := sinceEpoch()
	if late := now - r.armed; woken && late >= 0 && !r.idle {
		r.lead.note(late)
	}
	for {
		if r.fireLocked(now) {
			// More may have become due meanwhile, and what is armed counts from now.
		} else if len(r.due) > 0 && r.due[0].at-r.lead.ns <= now {
			r.yieldLocked()
		} else {
			break
		}
		now = sinceEpoch()
	}
	expired := r.armed <= now
	switch {
	case len(r.due) > 0:
		if next := r.due[0].at - r.lead.ns; expired || next != r.armed {
			r.armLocked(now, next)
		}
	case !r.idle:
		r.lingerLocked(now)
	case expired:
		r.goroutine = none
		return true
	}
	r.goroutine = asleep
	return r.failed
}

// fireLocked calls the functions of all Alarms that are due by now, and reports
// whether there were any. They leave the heap one at a time: one that is set anew or
// stopped by the function of another does not fire for what was set before.
func (r *releaser) fireLocked(now int64) bool {
	fired := false
	for len(r.due) > 0 && r.due[0].at <= now {
		r.callLocked(heap.Pop(&r.due).(*Alarm).fire)
		fired = true
	}
	return fired
}

// yieldLocked lets others run, for a moment.
func (r *releaser) yieldLocked() {
	r.mu.Unlock()
	defer r.mu.Lock()
	runtime.Gosched()
}

func (r *releaser) callLocked(fire func()) {
	r.mu.Unlock()
	// Deferred, because fire may end the goroutine.
	defer r.mu.Lock()
	fire()
}

// lingerLocked has the goroutine end if nothing is set for a while.
func (r *releaser) lingerLocked(now int64) {
	r.idle = true
	r.armLocked(now, after(now, r.linger))
}

func (r *releaser) armLocked(now, at int64) {
	// The timer does not take zero. If it expires too soon the next pass arms it anew.
	d := min(max(time.Duration(at-now), 1), maxSleep)
	if err := r.timer.arm(d); err != nil {
		r.failLocked(now)
		return
	}
	r.armed = after(now, d)
}

// failLocked gives each Alarm that is set a timer of its own, and ends the goroutine.
func (r *releaser) failLocked(now int64) {
	if r.failed {
		return
	}
	r.failed = true
	for _, a := range r.due {
		a.place = nowhere
		a.timer = time.AfterFunc(time.Duration(a.at-now), a.fire)
	}
	r.due = nil
	r.timer.interrupt()
}
