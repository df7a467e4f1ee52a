package partner

import (
	"encoding/binary"
	"errors"
	"io"
)

// The parts of RFC 9113 that the HTTP/2 server needs.
const (
	preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

	frameData         = 0x0
	frameHeaders      = 0x1
	frameRSTStream    = 0x3
	frameSettings     = 0x4
	framePing         = 0x6
	frameGoAway       = 0x7
	frameWindowUpdate = 0x8

	flagAck        = 0x1 // of SETTINGS and PING
	flagEndStream  = 0x1 // of DATA and HEADERS
	flagEndHeaders = 0x4

	codeNoError       = 0x0
	codeRefusedStream = 0x7

	settingMaxConcurrentStreams = 0x3

	frameHeader = 9
	maxFrame    = 16 << 10 // what every server must take, and this one takes no more

	// status200 is the header block that holds nothing but ":status: 200", which is
	// entry 8 of HPACK's static table (RFC 7541).
	status200 = 0x80 | 8
)

// A frame is one as it was read. The payload is good until the next is read.
type frame struct {
	kind    byte
	flags   byte
	stream  uint32
	payload []byte
}

var errFrameTooLong = errors.New("partner: a frame is longer than 16 KiB")

// readFrame reads a frame into buf, which has maxFrame bytes.
func readFrame(r io.Reader, buf []byte) (frame, error) {
	var head [frameHeader]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return frame{}, err
	}
	length := int(head[0])<<16 | int(head[1])<<8 | int(head[2])
	if length > maxFrame {
		return frame{}, errFrameTooLong
	}
	if _, err := io.ReadFull(r, buf[:length]); err != nil {
		return frame{}, err
	}
	return frame{
		kind:    head[3],
		flags:   head[4],
		stream:  binary.BigEndian.Uint32(head[5:]) & (1<<31 - 1),
		payload: buf[:length],
	}, nil
}

// appendFrame appends a frame to b. The payload is short.
func appendFrame(b []byte, f frame) []byte {
	n := len(f.payload)
	b = append(b, byte(n>>16), byte(n>>8), byte(n), f.kind, f.flags)
	b = binary.BigEndian.AppendUint32(b, f.stream)
	return append(b, f.payload...)
}

// numbers is the payload of a frame that holds 32-bit numbers.
func numbers(n ...uint32) []byte {
	var b []byte
	for _, one := range n {
		b = binary.BigEndian.AppendUint32(b, one)
	}
	return b
}
