package partner

import (
	"bytes"
	"fmt"
	"net/http"
	"time"
)

// A Mood is how an endpoint misbehaves. Its fields are independent of each other;
// the zero Mood is good behaviour. It concerns what is answered, never what is
// accepted; for that there are [Control.SetLimit] and [Control.Refuse].
type Mood struct {
	// Hint is how a refusal states in its header when to come back. The zero Hint
	// is the endpoint's own: RetryAfterSeconds for messages, NoHint for payments.
	Hint Hint

	// Refusal is the status and the body of a refusal. The zero Refusal is
	// TooMany.
	Refusal Refusal

	// Header is set on every refusal as it is, after the Hint and over it. What it
	// says does not count as a time that was stated.
	Header http.Header

	// Pad is how many spaces follow the body of a refusal, at most 1 MiB.
	Pad int

	// Slow delays every answer to a call, also a refusal. An accepted call keeps
	// its place meanwhile.
	Slow time.Duration

	// Skew is how far the partner's clock is ahead of the right time. It shows in
	// the Date of every answer of the endpoint and in each instant that a Hint
	// states, but not in what is accepted.
	Skew time.Duration
}

const maxPad = 1 << 20

func (m Mood) validate() error {
	if m.Hint != "" {
		if _, ok := hints[m.Hint]; !ok {
			return fmt.Errorf("hint %q: must be one of %q", m.Hint, Hints())
		}
	}
	if m.Refusal != "" {
		if _, ok := refusals[m.Refusal]; !ok {
			return fmt.Errorf("refusal %q: must be one of %q", m.Refusal, Refusals())
		}
	}
	if m.Pad < 0 || m.Pad > maxPad {
		return fmt.Errorf("pad %d: must be from 0 to %d", m.Pad, maxPad)
	}
	if m.Slow < 0 {
		return fmt.Errorf("slow %v: must not be negative", m.Slow)
	}
	return nil
}

// clone returns a Mood that the caller of an exported function cannot change.
func (m Mood) clone() Mood {
	m.Header = m.Header.Clone()
	return m
}

// pad appends n spaces to a body. They mean nothing in JSON.
func pad(body []byte, n int) []byte {
	return append(body, bytes.Repeat([]byte{' '}, n)...)
}
