// Package codec writes and reads the states that outlive a process:
//
//	kind     1 byte, a letter for the type
//	version  1 byte
//	fields   8 bytes each, big endian; texts and nested states with their length first
//	sum      4 bytes, CRC-32 (IEEE) of all before
//
// An instant is two fields, seconds since 1970 and nanoseconds: the wall clock, so
// that it means the same to the next process.
package codec

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"time"
)

const version = 1

// An Encoder appends fields to a state.
type Encoder struct{ data []byte }

// Encode begins the state of a kind.
func Encode(kind byte) *Encoder { return &Encoder{data: []byte{kind, version}} }

// Part begins a part of a state, which is nested by Bytes and has no frame of its own.
func Part() *Encoder { return &Encoder{} }

func (e *Encoder) Uint(v uint64)            { e.data = binary.BigEndian.AppendUint64(e.data, v) }
func (e *Encoder) Int(v int64)              { e.Uint(uint64(v)) }
func (e *Encoder) Duration(d time.Duration) { e.Int(int64(d)) }
func (e *Encoder) Instant(t time.Time)      { e.Int(t.Unix()); e.Int(int64(t.Nanosecond())) }
func (e *Encoder) Bytes(b []byte)           { e.Int(int64(len(b))); e.data = append(e.data, b...) }

// Raw appends bytes as they are, for tests.
func (e *Encoder) Raw(b []byte) { e.data = append(e.data, b...) }

// Fields returns what was appended to a Part.
func (e *Encoder) Fields() []byte { return e.data }

// Finish returns the whole state. The error is always nil.
func (e *Encoder) Finish() ([]byte, error) {
	return binary.BigEndian.AppendUint32(e.data, crc32.ChecksumIEEE(e.data)), nil
}

// A Decoder reads what an Encoder wrote. After the first error it reads zeros.
type Decoder struct {
	pkg  string
	data []byte
	err  error
}

// Decode checks the frame of a state and returns a Decoder of its fields, whose errors
// begin with the name of the package.
func Decode(pkg string, kind byte, data []byte) *Decoder {
	d := &Decoder{pkg: pkg}
	const frame = 2 + 4
	switch {
	case len(data) < frame:
		d.Fail("%d bytes are too short", len(data))
	case data[0] != kind:
		d.Fail("it is of kind %q, want %q", data[0], kind)
	case data[1] != version:
		d.Fail("it has version %d, want %d", data[1], version)
	case crc32.ChecksumIEEE(data[:len(data)-4]) != binary.BigEndian.Uint32(data[len(data)-4:]):
		d.Fail("the checksum differs")
	default:
		d.data = data[2 : len(data)-4]
	}
	return d
}

// Part returns a Decoder of a part that stands next.
func (d *Decoder) Part() *Decoder { return &Decoder{pkg: d.pkg, data: d.Bytes(), err: d.err} }

// Fail is for what is wrong with the state. The first error stands.
func (d *Decoder) Fail(format string, args ...any) {
	if d.err == nil {
		d.err = fmt.Errorf(d.pkg+": state: "+format, args...)
	}
	d.data = nil
}

// Check fails unless ok holds.
func (d *Decoder) Check(ok bool, what string) {
	if !ok {
		d.Fail("%s is out of range", what)
	}
}

// Err returns the first error.
func (d *Decoder) Err() error { return d.err }

// Len returns how many bytes are left.
func (d *Decoder) Len() int { return len(d.data) }

// Finish returns the first error; bytes that were not read are one.
func (d *Decoder) Finish() error {
	d.Check(len(d.data) == 0, "the length")
	return d.err
}

func (d *Decoder) take(n int) []byte {
	if len(d.data) < n {
		d.Fail("it ends too soon")
		return make([]byte, 8)
	}
	b := d.data[:n]
	d.data = d.data[n:]
	return b
}

func (d *Decoder) Uint() uint64            { return binary.BigEndian.Uint64(d.take(8)) }
func (d *Decoder) Int() int64              { return int64(d.Uint()) }
func (d *Decoder) Duration() time.Duration { return time.Duration(d.Int()) }

func (d *Decoder) Instant() time.Time {
	sec, nsec := d.Int(), d.Int()
	// Within the years 1 to 9999, so that no sum of it wraps around.
	d.Check(sec >= -62135596800 && sec < 253402300800 && nsec >= 0 && nsec < 1e9, "an instant")
	if d.err != nil {
		return time.Time{}
	}
	return time.Unix(sec, nsec).UTC()
}

func (d *Decoder) Bytes() []byte {
	n := d.Int()
	d.Check(n >= 0 && n <= int64(len(d.data)), "a length")
	if d.err != nil {
		return nil
	}
	return d.take(int(n))
}
