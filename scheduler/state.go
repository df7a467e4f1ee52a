package scheduler

import (
	"encoding"
	"errors"
	"fmt"
	"math"
	"time"
)

// A stater is a schedule whose state outlives the process.
type stater interface {
	encoding.BinaryMarshaler
	encoding.BinaryUnmarshaler
}

// MarshalBinary returns the whole state, limits included. It refuses a zero GCRA.
// See the package documentation.
func (g *GCRA) MarshalBinary() ([]byte, error) {
	if g.pace == nil {
		return nil, errZeroState("GCRA")
	}
	e := encode(kindGCRA)
	e.rate(g.rate)
	e.Int(g.burst)
	e.Duration(g.tolerance)
	e.Uint(g.emission.den)
	e.Instant(g.tat)
	e.Uint(g.frac)
	e.Instant(g.seen)
	return e.Finish()
}

// UnmarshalBinary replaces g by the schedule that the state was taken of. An error
// leaves g as it was.
func (g *GCRA) UnmarshalBinary(data []byte) error {
	d := decode(kindGCRA, data)
	n := GCRA{pace: &pace{rate: d.rate(), burst: d.Int(), tolerance: d.Duration()}}
	d.Check(n.burst >= 1 && (d.Err() != nil || checkRate(n.rate, n.burst) == nil), "the burst")
	d.Check(n.tolerance >= 0, "the tolerance")
	den := d.Uint()
	n.tat, n.frac, n.seen = d.Instant(), d.Uint(), d.Instant()
	if d.Err() == nil {
		n.emission = newEmission(n.rate)
		d.Check(den > 0 && den <= maxDen && den%n.emission.units == 0 && n.frac < den, "a fraction")
		n.emission.den = den
	}
	if err := d.Finish(); err != nil {
		return err
	}
	*g = n
	return nil
}

// MarshalBinary returns the whole state, limits included. It refuses a zero TokenBucket.
// See the package documentation.
func (b *TokenBucket) MarshalBinary() ([]byte, error) {
	if b.burst < 1 {
		return nil, errZeroState("TokenBucket")
	}
	return encodeBucket(kindTokenBucket, b.rate, b.burst, b.balance, b.touched)
}

// UnmarshalBinary replaces b by the schedule that the state was taken of. An error
// leaves b as it was.
func (b *TokenBucket) UnmarshalBinary(data []byte) error {
	var n TokenBucket
	var err error
	n.rate, n.burst, n.emission, n.balance, n.touched, err = decodeBucket(kindTokenBucket, data)
	if err == nil {
		*b = n
	}
	return err
}

// MarshalBinary returns the whole state, limits included. It refuses a zero LeakyBucket.
// See the package documentation.
func (b *LeakyBucket) MarshalBinary() ([]byte, error) {
	if b.capacity < 1 {
		return nil, errZeroState("LeakyBucket")
	}
	return encodeBucket(kindLeakyBucket, b.rate, b.capacity, b.level, b.touched)
}

// UnmarshalBinary replaces b by the schedule that the state was taken of. An error
// leaves b as it was.
func (b *LeakyBucket) UnmarshalBinary(data []byte) error {
	var n LeakyBucket
	var err error
	n.rate, n.capacity, n.emission, n.level, n.touched, err = decodeBucket(kindLeakyBucket, data)
	if err == nil {
		*b = n
	}
	return err
}

func encodeBucket(kind byte, r Rate, size int64, a amount, touched time.Time) ([]byte, error) {
	e := encode(kind)
	e.rate(r)
	e.Int(size)
	e.amount(a)
	e.Instant(touched)
	return e.Finish()
}

func decodeBucket(kind byte, data []byte) (r Rate, size int64, p emission, a amount, touched time.Time, err error) {
	d := decode(kind, data)
	r, size = d.rate(), d.Int()
	d.Check(size >= 1 && (d.Err() != nil || checkRate(r, size) == nil), "the size")
	if d.Err() == nil {
		p = newEmission(r)
	}
	a, touched = d.amount(p), d.Instant()
	return r, size, p, a, touched, d.Finish()
}

// MarshalBinary returns the whole state, limits included. It refuses a zero FixedWindow.
// See the package documentation.
func (f *FixedWindow) MarshalBinary() ([]byte, error) {
	if f.limit < 1 {
		return nil, errZeroState("FixedWindow")
	}
	e := encode(kindFixedWindow)
	e.Int(f.limit)
	e.Duration(f.length)
	zone := "" // LoadLocation takes that for UTC; here it means no zone, or the nameless one of f
	if f.zone != nil {
		zone = f.zone.String()
	}
	e.Bytes([]byte(zone))
	e.Duration(f.dayStart)
	e.Instant(f.end)
	e.Int(f.used)
	e.Instant(f.seen)
	return e.Finish()
}

// UnmarshalBinary replaces f by the schedule that the state was taken of. An error
// leaves f as it was. A time zone is known by its name: that of f if it has the same
// one, and else what [time.LoadLocation] finds.
func (f *FixedWindow) UnmarshalBinary(data []byte) error {
	d := decode(kindFixedWindow, data)
	var n FixedWindow
	n.limit, n.length = d.window()
	zone := string(d.Bytes())
	n.dayStart = d.Duration()
	n.end, n.used, n.seen = d.Instant(), d.Int(), d.Instant()
	d.Check(n.used >= 0, "a count")
	if err := d.Finish(); err != nil {
		return err
	}
	var err error
	if n.zone, err = loadZone(zone, f.zone); err != nil {
		return err
	}
	if err := n.checkCalendar(); err != nil {
		return err
	}
	*f = n
	return nil
}

// loadZone returns the time zone of a name: known if it has that name, nil for none, and
// else what the system has.
func loadZone(name string, known *time.Location) (*time.Location, error) {
	switch {
	case known != nil && known.String() == name: // "" too: a zone may be nameless
		return known, nil
	case name == "":
		return nil, nil
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("scheduler: state: %w", err)
	}
	return zone, nil
}

// MarshalBinary returns the whole state, hours included. It refuses a zero Hours.
// See the package documentation.
func (h *Hours) MarshalBinary() ([]byte, error) {
	if h.zone == nil {
		return nil, errZeroState("Hours")
	}
	e := encode(kindHours)
	e.Bytes([]byte(h.zone.String()))
	e.Duration(h.from)
	e.Duration(h.to)
	e.Instant(h.seen)
	return e.Finish()
}

// UnmarshalBinary replaces h by the schedule that the state was taken of. An error
// leaves h as it was. A time zone is known by its name, as [FixedWindow.UnmarshalBinary]
// has it.
func (h *Hours) UnmarshalBinary(data []byte) error {
	d := decode(kindHours, data)
	zone := string(d.Bytes())
	n := Hours{from: d.Duration(), to: d.Duration(), seen: d.Instant()}
	if err := d.Finish(); err != nil {
		return err
	}
	var err error
	if n.zone, err = loadZone(zone, h.zone); err != nil {
		return err
	}
	if err := n.validate(); err != nil {
		return err
	}
	*h = n
	return nil
}

// MarshalBinary returns the whole state, limits included. It refuses a zero SlidingLog.
// See the package documentation.
func (l *SlidingLog) MarshalBinary() ([]byte, error) {
	if l.limit < 1 {
		return nil, errZeroState("SlidingLog")
	}
	e := encode(kindSlidingLog)
	e.Int(l.limit)
	e.Duration(l.window)
	e.Instant(l.epoch)
	e.Instant(l.seen)
	total := int64(0)
	if l.gone > 0 {
		total = l.log[l.gone-1].total
	}
	for _, entry := range l.log[l.gone:] {
		e.Int(entry.at)
		e.Int(entry.total - total)
		total = entry.total
	}
	return e.Finish()
}

// UnmarshalBinary replaces l by the schedule that the state was taken of. An error
// leaves l as it was.
func (l *SlidingLog) UnmarshalBinary(data []byte) error {
	d := decode(kindSlidingLog, data)
	var n SlidingLog
	n.limit, n.window = d.window()
	n.epoch, n.seen = d.Instant(), d.Instant()
	entries := d.Len() / 16
	if d.Err() == nil {
		n.log = make([]logEntry, 0, entries)
		latest, total := int64(n.seen.Sub(n.epoch)), int64(0)
		for previous := int64(math.MinInt64); len(n.log) < entries; {
			at, units := d.Int(), d.Int()
			d.Check(previous <= at && at <= latest, "an entry")
			d.Check(units >= 0 && units <= math.MaxInt64-total, "the units of an entry")
			if d.Err() != nil {
				break
			}
			total += units
			n.log = append(n.log, logEntry{at, total})
			previous = at
		}
	}
	if err := d.Finish(); err != nil {
		return err
	}
	*l = n
	return nil
}

// MarshalBinary returns the whole state, limits included. It refuses a zero SlidingCounter.
// See the package documentation.
func (c *SlidingCounter) MarshalBinary() ([]byte, error) {
	if c.limit < 1 {
		return nil, errZeroState("SlidingCounter")
	}
	e := encode(kindSlidingCounter)
	e.Int(c.limit)
	e.Duration(c.window)
	e.Instant(c.start)
	e.Int(c.previous)
	e.Int(c.current)
	e.Instant(c.seen)
	return e.Finish()
}

// UnmarshalBinary replaces c by the schedule that the state was taken of. An error
// leaves c as it was.
func (c *SlidingCounter) UnmarshalBinary(data []byte) error {
	d := decode(kindSlidingCounter, data)
	var n SlidingCounter
	n.limit, n.window = d.window()
	n.start, n.previous, n.current, n.seen = d.Instant(), d.Int(), d.Int(), d.Instant()
	d.Check(n.previous >= 0 && n.current >= 0, "a count")
	if err := d.Finish(); err != nil {
		return err
	}
	*c = n
	return nil
}

// errStateless is for a limit of a user's that cannot save its state.
func errStateless(limit Scheduler) error {
	return fmt.Errorf("scheduler: state: a %T has none to marshal: %w", limit, errors.ErrUnsupported)
}

// MarshalBinary returns the states of all limits. If one of them is no
// encoding.BinaryMarshaler, the error matches [errors.ErrUnsupported].
func (a all) MarshalBinary() ([]byte, error) {
	e := encode(kindAll)
	e.Int(int64(len(a)))
	for _, limit := range a {
		s, ok := limit.(stater)
		if !ok {
			return nil, errStateless(limit)
		}
		state, err := s.MarshalBinary()
		if err != nil {
			return nil, err
		}
		e.Bytes(state)
	}
	return e.Finish()
}

// UnmarshalBinary hands each limit its state back. The limits must be as many and of
// the same types, in the same order. An error leaves all of them as they were, but that a
// zero value may have been loaded.
func (a all) UnmarshalBinary(data []byte) error {
	states, err := a.split(data)
	if err != nil {
		return err
	}
	before := make([][]byte, len(a))
	for i, limit := range a {
		s, ok := limit.(stater)
		if !ok {
			return errStateless(limit)
		}
		before[i], _ = s.MarshalBinary() // a zero value has none
	}
	for i, limit := range a {
		if err := limit.(stater).UnmarshalBinary(states[i]); err != nil {
			return errors.Join(err, a.restore(before[:i]))
		}
	}
	return nil
}

// split returns the states of the limits.
func (a all) split(data []byte) ([][]byte, error) {
	d := decode(kindAll, data)
	if n := d.Int(); d.Err() == nil && n != int64(len(a)) {
		d.Fail("it is of %d limits, want %d", n, len(a))
	}
	states := make([][]byte, len(a))
	for i := range states {
		states[i] = d.Bytes()
	}
	return states, d.Finish()
}

// restore hands the first limits the states that they had.
func (a all) restore(states [][]byte) error {
	var errs []error
	for i, state := range states {
		if state != nil {
			errs = append(errs, a[i].(stater).UnmarshalBinary(state))
		}
	}
	return errors.Join(errs...)
}
