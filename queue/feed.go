package queue

import (
	"io"
	"math/bits"
	"time"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
)

const (
	lookEvery = time.Second           // how often a line is looked at that may be held no more, or now
	slack     = time.Millisecond      // what a timer may be late
	noneYet   = 10 * time.Millisecond // how soon a source is asked again that had none
)

// fetches are how long the latest of them took that brought something.
type fetches struct {
	took [8]time.Duration
	n    int
	left int64 // how many messages are thought to leave during one, by experience
}

func (f *fetches) note(took time.Duration) {
	f.took[f.n%len(f.took)] = took
	f.n++
}

// noteLeft learns from how many messages of those in hand have left during a fetch. If all have,
// more could have; so more are taken, if there are some.
func (f *fetches) noteLeft(inHand, left int64, more bool) {
	switch {
	case left < inHand:
		f.left = left
	case more:
		f.left = 2*max(f.left, left) + 1
	}
}

// time returns how long a fetch takes at the longest. One that took much longer than others
// waited for a message.
func (f *fetches) time() (longest time.Duration) {
	took := f.took[:min(f.n, len(f.took))]
	shortest := never / 4
	for _, t := range took {
		shortest = min(shortest, t)
	}
	for _, t := range took {
		if t <= 4*shortest {
			longest = max(longest, t)
		}
	}
	return longest
}

// A sight is what was seen of the line at the latest look.
type sight struct {
	at   time.Duration
	rate scheduler.Rate
	shut bool // it is paused, or held for longer than a look
}

// look returns what was seen of the line within the time of a look.
func (d *drain) look() sight {
	now := d.now()
	d.mu.Lock()
	seen, looked := d.seen, d.looked
	d.mu.Unlock()
	if looked && now-seen.at < lookEvery {
		return seen
	}
	st := d.line.Stats()
	seen = sight{at: now, rate: st.Rate, shut: st.Paused || !st.HeldUntil.IsZero() && d.clock.Until(st.HeldUntil) > lookEvery}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.seen, d.looked = seen, true
	return seen
}

// feed takes messages until there are no more. It returns why.
func (d *drain) feed() error {
	for d.taking.Err() == nil {
		n, wait := d.want()
		if n < 1 {
			d.sleep(wait, d.wake)
			continue
		}
		before, began := d.queue.Stats(), d.now()
		messages, err := d.source.Take(d.taking, int(n))
		took := d.now() - began
		if len(messages) > 0 {
			d.fetch.note(took)
			d.fetch.noteLeft(before.Waiting, begun(d.queue.Stats())-begun(before), int64(len(messages)) >= n)
		}
		if fault := d.accept(messages); fault != nil {
			return fault
		}
		switch {
		case err == io.EOF:
			// Only the bare value is the agreed sign. Wrapped it tells of a connection that
			// broke.
			return err
		case err != nil && d.taking.Err() != nil:
			return errEnough
		case err != nil:
			return err
		case len(messages) == 0 && took < noneYet:
			d.sleep(noneYet-took, nil)
		}
	}
	return errEnough
}

func begun(s Stats) int64 { return s.Running + s.Done + s.Failed }

// sleep waits for so long, or until something comes, or the taking ends.
func (d *drain) sleep(wait time.Duration, something <-chan struct{}) {
	t := d.clock.Timer(wait)
	defer t.Stop()
	select {
	case <-t.C:
	case <-something:
	case <-d.taking.Done():
	}
}

// want returns how many messages are to be taken now, or how long to wait at the most before that
// is asked again.
func (d *drain) want() (n int64, wait time.Duration) {
	seen, has := d.look(), d.queue.Stats()
	if seen.shut || has.Delayed >= int64(d.told.maxDelayed) {
		return 0, lookEvery
	}
	took := d.fetch.time()
	lead := took + took/4 + slack
	if delay := d.queue.group.DelayOf("", shaper.Call{Class: maxClass}); delay > lead {
		return 0, min(delay-lead, lookEvery)
	}
	meanwhile, most := d.meanwhile(has, seen, took), d.most(has, seen, took)
	ahead := unitsIn(seen.rate, lead)
	if ahead < unbounded {
		ahead++
	}
	return min(ahead, most) - (has.Waiting - meanwhile), lookEvery
}

// meanwhile returns how many of the messages in hand have certainly left when a fetch has come.
func (d *drain) meanwhile(has Stats, seen sight, took time.Duration) int64 {
	certain := unitsIn(seen.rate, max(took-1, 0))
	return max(min(has.Waiting, certain, d.fetch.left), 0)
}

// most returns how many messages may be in hand.
func (d *drain) most(has Stats, seen sight, took time.Duration) int64 {
	leave := d.fetch.left
	if n := unitsIn(seen.rate, took); n < unbounded {
		if seen.rate.For(n) < took {
			n++
		}
		if has.Running < int64(d.told.workers) {
			leave = n
		}
		leave = min(leave, n)
	}
	return leave + 1
}

// unitsIn returns how many whole units the rate has in a time; unbounded if it has none.
func unitsIn(r scheduler.Rate, d time.Duration) int64 {
	if r.Units() < 1 || r.Period() < 1 {
		return unbounded
	}
	hi, lo := bits.Mul64(uint64(r.Units()), uint64(d))
	if hi >= uint64(r.Period()) {
		return unbounded
	}
	n, _ := bits.Div64(hi, lo, uint64(r.Period()))
	return int64(min(n, unbounded))
}
