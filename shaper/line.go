package shaper

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice/scheduler"
)

// A line is where calls wait under one set of limits, and the rule for who is next. It has
// one key, of the calls of a Shaper, and those of the Groups that are under that.
//
// What decides when a call leaves is dispatchLocked; how a call comes to wait is enterLocked.
type line struct {
	bounds
	rule *classRule
	pool *callPool

	fast fastPath

	inFlight atomic.Int64 // the most calls in flight, to be asked for without the lock

	mu sync.Mutex // taken with lock and unlock
	// Guarded by mu:
	time   timeline
	limits                 // of all calls
	pacing *scheduler.GCRA // the pacer, if it is one

	first     *flow           // of the calls that are under no other limits
	head      *flow           // that whose call is next; nil if there is none that its key allows
	keys      *keys           // nil: there is one
	freed     bool            // a key has become free since the head was chosen
	len       int             // calls that wait
	apart     int             // how many of them have room of their own
	units     int64           // their costs
	dated     int             // how many of them have deadlines
	seq       uint32          // of the latest call
	refusals  map[*call]error // of calls that waited and do not know yet
	unsettled unsettled
	spare     spare
	answers   answers

	nextDue  time.Time // when the head is due; beyond all time if it waits for no instant
	putOff   int       // how often one was not, when that had come, since a call left
	alarm    alarm
	lag      lag
	life     lifecycle
	counts   counts
	unused   unused
	wordOpen bool // calls may leave without the lock; see fastPath
}

// init makes a line of calls of one key.
func (l *line) init(own *flow, limits limits, c config, base timebase, pool *callPool) {
	l.bounds = c.bounds
	if l.rule = c.rule; l.rule == nil {
		l.rule = c.classRule()
	}
	l.pool = pool
	l.time = timeline{timebase: base}
	l.limits = limits
	l.pacing, _ = l.pacer().(*scheduler.GCRA)
	l.unsettled.bounds = c.unsettled
	l.inFlight.Store(limits.places.most)
	l.unused.until = base.epoch
	l.first = own
	own.line, own.weight, own.calls.rule = l, 1, l.rule
	l.alarm = c.newAlarm(l.dispatch)
	if changing, ok := l.sched.(scheduler.Notifier); ok {
		changing.Notify(l.notified)
	}
	l.lock()
	defer l.unlock() // opens the fast path
}

// A lag is how late the calls were that left the line last, up to the tolerance. With timers
// that are on time there is none.
//
// A caller that is woken late comes back late, which would lower the rate of one that
// calls in a loop. So a call that finds no call waiting may claim the instant at which its
// caller would have come, had it been woken on time. Two things bound a claim: the lag, and
// the instant before which no call was due; see limits. What came before that instant has
// made no call late.
type lag time.Duration

// woken notes the calls of one pass over the line, of which the first was due at due. It
// is the latest of them, and the callers of all of them come back together.
func (l *lag) woken(due, now time.Time, tolerance time.Duration) {
	*l = lag(min(now.Sub(due), tolerance))
}

// end lets no further call claim anything.
func (l *lag) end() { *l = 0 }

// fits reports whether the sum of costs can take one more.
func (l *line) fits(cost int64) bool { return cost <= math.MaxInt64-l.units }
