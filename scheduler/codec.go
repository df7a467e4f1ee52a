package scheduler

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"time"
)

// The state of a schedule as bytes:
//
//	kind     1 byte, a letter for the type
//	version  1 byte
//	fields   8 bytes each, big endian; texts and nested states with their length first
//	sum      4 bytes, CRC-32 (IEEE) of all before
//
// An instant is two fields, seconds since 1970 and nanoseconds: the wall clock, so
// that it means the same to the next process.
const stateVersion = 1

const (
	kindAll            = 'A'
	kindSlidingCounter = 'C'
	kindFixedWindow    = 'F'
	kindGCRA           = 'G'
	kindHours          = 'H'
	kindLeakyBucket    = 'L'
	kindSlidingLog     = 'S'
	kindTokenBucket    = 'T'
)

type encoder struct{ data []byte }

func encode(kind byte) *encoder { return &encoder{data: []byte{kind, stateVersion}} }

func (e *encoder) uint(v uint64)            { e.data = binary.BigEndian.AppendUint64(e.data, v) }
func (e *encoder) int(v int64)              { e.uint(uint64(v)) }
func (e *encoder) duration(d time.Duration) { e.int(int64(d)) }
func (e *encoder) instant(t time.Time)      { e.int(t.Unix()); e.int(int64(t.Nanosecond())) }
func (e *encoder) amount(a amount)          { e.int(a.units); e.uint(a.frac) }
func (e *encoder) bytes(b []byte)           { e.int(int64(len(b))); e.data = append(e.data, b...) }
func (e *encoder) finish() ([]byte, error) {
	return binary.BigEndian.AppendUint32(e.data, crc32.ChecksumIEEE(e.data)), nil
}

func (e *encoder) rate(r Rate) {
	if r.unlimited {
		r = Rate{} // no valid rate has this spelling
	}
	e.int(r.units)
	e.duration(r.period)
}

// A decoder reads what an encoder wrote. After the first error it reads zeros.
type decoder struct {
	data []byte
	err  error
}

// decode checks the frame of a state and returns a decoder of its fields.
func decode(kind byte, data []byte) *decoder {
	d := &decoder{}
	const frame = 2 + 4
	switch {
	case len(data) < frame:
		d.fail("%d bytes are too short", len(data))
	case data[0] != kind:
		d.fail("it is of kind %q, want %q", data[0], kind)
	case data[1] != stateVersion:
		d.fail("it has version %d, want %d", data[1], stateVersion)
	case crc32.ChecksumIEEE(data[:len(data)-4]) != binary.BigEndian.Uint32(data[len(data)-4:]):
		d.fail("the checksum differs")
	default:
		d.data = data[2 : len(data)-4]
	}
	return d
}

func (d *decoder) fail(format string, args ...any) {
	if d.err == nil {
		d.err = fmt.Errorf("scheduler: state: "+format, args...)
	}
	d.data = nil
}

// check fails unless ok holds.
func (d *decoder) check(ok bool, what string) {
	if !ok {
		d.fail("%s is out of range", what)
	}
}

// finish returns the first error; bytes that are left over are one.
func (d *decoder) finish() error {
	d.check(len(d.data) == 0, "the length")
	return d.err
}

func (d *decoder) take(n int) []byte {
	if len(d.data) < n {
		d.fail("it ends too soon")
		return make([]byte, 8)
	}
	b := d.data[:n]
	d.data = d.data[n:]
	return b
}

func (d *decoder) uint() uint64            { return binary.BigEndian.Uint64(d.take(8)) }
func (d *decoder) int() int64              { return int64(d.uint()) }
func (d *decoder) duration() time.Duration { return time.Duration(d.int()) }

func (d *decoder) instant() time.Time {
	sec, nsec := d.int(), d.int()
	// Within the years 1 to 9999, so that no sum of it wraps around.
	d.check(sec >= -62135596800 && sec < 253402300800 && nsec >= 0 && nsec < 1e9, "an instant")
	if d.err != nil {
		return time.Time{}
	}
	return time.Unix(sec, nsec).UTC()
}

func (d *decoder) amount(e emission) amount {
	a := amount{units: d.int(), frac: d.uint()}
	d.check(-maxUnits <= a.units && a.units <= maxUnits && (a.frac < e.period || a.frac == 0), "an amount")
	return a
}

func (d *decoder) rate() Rate {
	r := Per(d.int(), d.duration())
	if r == (Rate{}) {
		return Unlimited
	}
	d.check(r.Validate() == nil, "the rate")
	return r
}

func (d *decoder) bytes() []byte {
	n := d.int()
	d.check(n >= 0 && n <= int64(len(d.data)), "a length")
	if d.err != nil {
		return nil
	}
	return d.take(int(n))
}

// window reads and checks a limit and the length of its window.
func (d *decoder) window() (limit int64, window time.Duration) {
	limit, window = d.int(), d.duration()
	d.check(limit >= 1, "the limit")
	d.check(window > 0, "the window")
	return limit, window
}
