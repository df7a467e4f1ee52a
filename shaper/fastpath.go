package shaper

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice/scheduler"
)

// A fastPath lets calls leave without the lock while there is nothing to it but the rate:
// no call waits, nothing is held and no other limit applies. TAT is in a single word then,
// and a call leaves by changing it. Taking the lock shuts the word first and takes TAT back
// into the schedule, so under the lock all is as if there were no fast path.
type fastPath struct {
	word atomic.Pointer[word] // nil: none yet, or none possible
	_    [56]byte             // what every call reads is not on the cache line of what each writes
	left atomic.Int64         // the calls that left this way
	more atomic.Int64         // their units beyond one each
}

// A word holds TAT at one rate, counted from one origin.
type word struct {
	tat    atomic.Int64 // shut, or TAT in ticks since the origin
	ticks  scheduler.Ticks
	burst  int64         // up to mostFast
	origin time.Duration // since the epoch of the Shaper
	opened int64         // TAT when it was opened; under mu
}

// mostFast is the largest cost of a call that leaves without the lock: no program lives
// to see a sum of such costs overflow.
const mostFast = 1 << 30

// shut is no TAT: it sends every call to the lock.
const shut = math.MaxInt64

// leave reports whether a call has left. If not, the lock has the answer.
func (f *fastPath) leave(read time.Duration, cost int64) bool {
	w := f.word.Load()
	if w == nil || cost > w.burst {
		return false
	}
	for {
		tat := w.tat.Load()
		if tat == shut {
			return false
		}
		after, ok := w.ticks.Leave(tat, read-w.origin, cost)
		if !ok {
			return false
		}
		// TAT only moves on, or returns from shut; the ticks of a word never change. So an
		// unchanged word is an unchanged schedule. It is swapped even if it stays as
		// it is: it might have been shut.
		if w.tat.CompareAndSwap(tat, after) {
			f.left.Add(1)
			if cost > 1 {
				f.more.Add(cost - 1)
			}
			return true
		}
	}
}

func (f *fastPath) units() int64 { return f.left.Load() + f.more.Load() }

// lock takes the lock and the schedule.
func (l *line) lock() {
	l.mu.Lock()
	if !l.wordOpen {
		return
	}
	l.wordOpen = false
	w := l.fast.word.Load()
	tat := w.tat.Swap(shut)
	units := l.fast.units()
	if tat == w.opened && units == l.unused.seen {
		return // no call has left
	}
	l.debt = 1 // after calls that cost no more than the burst
	before := l.gcra.TAT()
	w.ticks.Unpack(l.gcra, l.time.epoch.Add(w.origin), tat)
	l.unusedWordLocked(before, units)
}

// unlock opens the fast path if it may be open, returns the lock, and tells the answers that
// no caller waits for.
func (l *line) unlock() {
	if l.unsettled.ledger != nil {
		l.unsettled.expireLocked(l.presentLocked())
	}
	if l.gcra != nil && l.time.clock == nil && l.len == 0 && l.lag == 0 && l.life.state == open &&
		!l.gate.shut() && l.sharingLocked() == nil {
		l.openWordLocked()
	}
	if l.gcra == nil {
		l.demandLocked()
	}
	if len(l.answers.due) > 0 && !l.answers.telling {
		l.tell()
		return
	}
	l.mu.Unlock()
}

// openWordLocked puts TAT into the word. One that does not suit any more, because the
// rate has changed or its origin is long past, is left shut and replaced.
func (l *line) openWordLocked() {
	w := l.fast.word.Load()
	if w != nil && l.time.elapsed-w.origin <= w.ticks.Horizon()/2 {
		if tat, ok := w.ticks.Pack(l.gcra, l.time.epoch.Add(w.origin)); ok {
			l.storeWordLocked(w, tat)
			return
		}
	}
	ticks, ok := l.gcra.Ticks()
	if !ok {
		return
	}
	tat, ok := ticks.Pack(l.gcra, l.time.epoch.Add(l.time.elapsed))
	if !ok {
		return
	}
	w = &word{ticks: ticks, burst: min(l.gcra.Burst(), mostFast), origin: l.time.elapsed}
	l.storeWordLocked(w, tat)
	l.fast.word.Store(w)
}

func (l *line) storeWordLocked(w *word, tat int64) {
	w.opened = tat
	w.tat.Store(tat)
	l.wordOpen = true
}
