package shaper

import (
	"encoding"
	"fmt"
	"time"

	"github.com/sluice-go/sluice/internal/codec"
	"github.com/sluice-go/sluice/scheduler"
)

// Kinds of states, beside those of the schedules.
const (
	kindShaper = 'P'
	kindGroup  = 'K'
)

// MarshalBinary returns what must outlive the process: what is owed, of all limits, the
// hold, the pause, and the rate and share that were set. It may be called at any time, while
// calls leave and wait as well as after [Shaper.Close]; it is the state of one moment.
// Save it from time to time, for a process that is killed, and at the end.
//
// Calls that wait, or are in flight, and counts are no part of it, nor are bounds and weights,
// which the program sets.
//
// A schedule of [NewFrom] or [WithLimits] that is no encoding.BinaryMarshaler and
// BinaryUnmarshaler is an error that names its type. Those of package scheduler all are.
func (s *Shaper) MarshalBinary() ([]byte, error) {
	l := s.own.lock()
	defer l.unlock()
	snap, err := s.own.snapshotLocked()
	if err != nil {
		return nil, err
	}
	e := codec.Encode(kindShaper)
	e.Duration(l.time.skew())
	snap.encode(e)
	return e.Finish()
}

// UnmarshalBinary replaces the state by one of [Shaper.MarshalBinary], as a rule before the
// first call. The Shaper decides then as the other one would have; time away counts as
// elapsed. If the clock was set back meanwhile, what is owed is waited for until the clock
// has caught up. Calls that wait go on to do so; one that cannot make its deadline any more
// is refused.
//
// The Shaper must have been made in the same way. Where numbers have changed since then,
// those that it was made with hold, and units that are owed stay owed: the rate, the burst,
// the tolerance, the size of a bucket, and the limits of windows. A rate set by
// [Shaper.SetRate] holds on if the one that the Shaper was made with is the same as before.
// Windows of another length, zone or day start, and other open hours, are an error: what is
// owed cannot be told then. Of a schedule of your own all is as its UnmarshalBinary has it.
//
// Damaged and foreign bytes are an error. An error leaves the Shaper as it was.
func (s *Shaper) UnmarshalBinary(data []byte) error {
	s.made()
	d := codec.Decode("shaper", kindShaper, data)
	skew := decodeSkew(d)
	snap := decodeSnapshot(d)
	if err := d.Finish(); err != nil {
		return err
	}
	l := s.own.lock()
	defer l.unlock()
	return s.own.restoreLocked(snap, skew)
}

// A snapshot is the state of a Shaper. Its instants are on the time of that, which its skew
// makes wall-clock times.
type snapshot struct {
	made, full scheduler.Rate // zero for a schedule without a rate
	share      share
	gate       gate
	debt       int64    // see fullLocked
	states     [][]byte // of the pacer and of each limit
}

// Which fields stand in a snapshot. Most keys of a Group have nothing special.
const (
	hasRates = 1 << iota
	isPaused
	isReopening
	hasDebt
	allFlags = 1<<iota - 1
)

func (f *flow) snapshotLocked() (snapshot, error) {
	l := f.limits()
	snap := snapshot{made: l.base, full: l.full, share: l.share, gate: l.gate, debt: l.debt}
	for _, limit := range l.schedules() {
		state, err := marshal(limit)
		if err != nil {
			return snap, err
		}
		snap.states = append(snap.states, state)
	}
	return snap, nil
}

func (n *snapshot) encode(e *codec.Encoder) {
	var flags int64
	if n.made != n.full || n.share != whole {
		flags |= hasRates
	}
	if n.gate.paused {
		flags |= isPaused
	}
	if n.gate.reopening {
		flags |= isReopening
	}
	if n.debt > 1 {
		flags |= hasDebt
	}
	e.Int(flags)
	encodeRate(e, n.made)
	if flags&hasRates != 0 {
		encodeRate(e, n.full)
		e.Int(n.share.num)
		e.Int(n.share.den)
	}
	if flags&isReopening != 0 {
		e.Instant(n.gate.openAt)
	}
	if flags&hasDebt != 0 {
		e.Int(n.debt)
	}
	e.Int(int64(len(n.states)))
	for _, state := range n.states {
		e.Bytes(state)
	}
}

func decodeSnapshot(d *codec.Decoder) snapshot {
	flags := d.Int()
	d.Check(flags&^allFlags == 0, "a flag")
	n := snapshot{made: decodeRate(d), share: whole, debt: 1}
	n.full = n.made
	if flags&hasRates != 0 {
		n.full = decodeRate(d)
		n.share = share{d.Int(), d.Int()}
		d.Check(n.share.num >= 1 && n.share.num <= n.share.den, "the share")
	}
	n.gate.paused = flags&isPaused != 0
	if flags&isReopening != 0 {
		n.gate.reopening = true
		n.gate.openAt = d.Instant()
	}
	if flags&hasDebt != 0 {
		n.debt = d.Int()
		d.Check(n.debt > 1, "the cost of the latest call")
	}
	states := d.Int()
	d.Check(states >= 0 && states <= int64(d.Len()), "the number of limits")
	for range states {
		if d.Err() != nil {
			break
		}
		n.states = append(n.states, d.Bytes())
	}
	return n
}

// encodeRate writes a rate as its text, and none as an empty one.
func encodeRate(e *codec.Encoder, r scheduler.Rate) {
	text, err := r.MarshalText()
	if err != nil {
		text = nil
	}
	e.Bytes(text)
}

func decodeRate(d *codec.Decoder) (r scheduler.Rate) {
	if text := d.Bytes(); len(text) > 0 {
		d.Check(r.UnmarshalText(text) == nil, "a rate")
	}
	return r
}

// decodeSkew reads a skew. A clock may have been set by years, but not by centuries.
func decodeSkew(d *codec.Decoder) time.Duration {
	const most = 100 * 366 * 24 * time.Hour
	skew := d.Duration()
	d.Check(-most <= skew && skew <= most, "the skew")
	return skew
}

// skew returns how much later the wall clock is than the time of the Shaper, which goes by
// elapsed time alone.
func (b *timebase) skew() time.Duration {
	if b.clock == nil {
		now := time.Now()
		return now.Round(0).Sub(b.epoch.Round(0)) - now.Sub(b.epoch)
	}
	return b.clock.Now().Sub(b.epoch) - b.since()
}

// restoreLocked replaces the state of the key's limits by that of others with the given skew.
func (f *flow) restoreLocked(n snapshot, skew time.Duration) error {
	l, limits := f.line, f.limits()
	schedules := limits.schedules()
	if len(n.states) != len(schedules) {
		return fmt.Errorf("shaper: state: it is of %d limits, want %d", len(n.states), len(schedules))
	}
	if n.made != limits.base {
		n.full = limits.base // it was made in another way since then
	}
	load := loading{now: l.time.now(), shift: skew - l.time.skew()}
	l.passLocked(load.now)
	before := rateOf(limits.pacer())
	_, settable := limits.pacer().(scheduler.RateSetter) // so it is the first schedule, and no All
	for i, limit := range schedules {
		r, err := rateOf(limit), error(nil)
		if i == 0 && settable && r != (scheduler.Rate{}) {
			r, err = n.full.Scale(n.share.num, n.share.den)
		}
		if err == nil {
			err = load.schedule(limit, n.states[i], r)
		}
		if err != nil {
			load.undo()
			return fmt.Errorf("shaper: state: %w", err)
		}
	}
	terms := limits.mine()
	terms.full, terms.share, terms.gate, terms.debt = n.full, n.share, n.gate, n.debt
	if terms.gate.reopening {
		terms.gate.openAt = terms.gate.openAt.Add(load.shift)
	}
	limits.passed(load.now)
	if f.own == nil {
		l.unused.turn(before, rateOf(limits.pacer()))
		l.repaceLocked()
		l.lag.end()
	}
	f.dismissLateLocked(load.now)
	f.changedLocked(load.now)
	return nil
}

// A loading replaces the states of schedules, all or none.
type loading struct {
	now   time.Time
	shift time.Duration // from the time of the Shaper that was saved
	done  []func()      // each takes one back
}

func (l *loading) undo() {
	for _, back := range l.done {
		back()
	}
}

// schedule loads a state into a schedule. If it has a rate, that is r afterwards.
func (l *loading) schedule(s scheduler.Scheduler, state []byte, r scheduler.Rate) error {
	if g, ok := s.(*scheduler.GCRA); ok {
		return l.gcra(g, state, r)
	}
	before, err := marshal(s)
	if err != nil {
		return err
	}
	l.done = append(l.done, func() { _ = s.(encoding.BinaryUnmarshaler).UnmarshalBinary(before) })
	most, made := s.MaxCost(), madeWith(s)
	if err := s.(encoding.BinaryUnmarshaler).UnmarshalBinary(state); err != nil {
		return err
	}
	if other := madeWith(s); other != made {
		return fmt.Errorf("a %T has %s, want %s", s, other, made)
	}
	if shifting, ok := s.(interface{ Shift(time.Duration) }); ok {
		shifting.Shift(l.shift)
	}
	if err := l.resize(s, most); err != nil {
		return err
	}
	if rated, ok := s.(scheduler.RateSetter); ok && rateOf(s) != r {
		return rated.SetRate(l.now, r)
	}
	return nil
}

// resize sets the largest cost that may leave, which is the limit of a window and the size of a
// bucket.
func (l *loading) resize(s scheduler.Scheduler, most int64) error {
	if s.MaxCost() == most {
		return nil
	}
	switch s := s.(type) {
	case interface{ SetLimit(time.Time, int64) error }:
		return s.SetLimit(l.now, most)
	case interface{ Resize(time.Time, int64) error }:
		return s.Resize(l.now, most)
	}
	return nil
}

// madeWith tells what a state must not change.
func madeWith(s scheduler.Scheduler) string {
	if telling, ok := s.(interface{ MadeWith() string }); ok {
		return telling.MadeWith()
	}
	return ""
}

func (l *loading) gcra(g *scheduler.GCRA, state []byte, r scheduler.Rate) error {
	var saved scheduler.GCRA
	if err := saved.UnmarshalBinary(state); err != nil {
		return err
	}
	next, err := scheduler.NewGCRA(r, g.Burst(), scheduler.WithTolerance(g.Tolerance()))
	if err != nil {
		return err
	}
	saved.Shift(l.shift)
	if err := next.TakeOver(l.now, &saved); err != nil {
		return err
	}
	before := *g
	l.done = append(l.done, func() { *g = before })
	*g = *next
	return nil
}

func rateOf(s scheduler.Scheduler) scheduler.Rate {
	if rated, ok := s.(scheduler.Rated); ok {
		return rated.Rate()
	}
	return scheduler.Rate{}
}

func marshal(s scheduler.Scheduler) ([]byte, error) {
	_, loads := s.(encoding.BinaryUnmarshaler)
	m, saves := s.(encoding.BinaryMarshaler)
	if !loads || !saves {
		return nil, fmt.Errorf("shaper: state: a %T cannot be saved: it must be an encoding.BinaryMarshaler and BinaryUnmarshaler", s)
	}
	return m.MarshalBinary()
}
