package schedulertest

import (
	"bytes"
	"encoding"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/sluice-go/sluice/scheduler"
)

// A stater is a schedule whose state can be saved and loaded.
type stater interface {
	encoding.BinaryMarshaler
	encoding.BinaryUnmarshaler
}

func (c Config) stateOutlivesTheProcess(t testing.TB) {
	state := func(s scheduler.Scheduler) []byte {
		data, err := s.(stater).MarshalBinary()
		if err != nil {
			t.Fatalf("MarshalBinary: %v", err)
		}
		return data
	}
	if _, err := c.New().(stater).MarshalBinary(); errors.Is(err, errors.ErrUnsupported) {
		return // as All has it, if one of its limits cannot
	}
	c.histories(func(rng *rand.Rand, saved, twin history) {
		data := state(saved.s)
		bad := [][]byte{nil, append(bytes.Clone(data), 0), []byte("to be or not to be, that is the question")}
		for range 10 {
			i := rng.IntN(len(data))
			flipped := bytes.Clone(data)
			flipped[i] ^= byte(1 + rng.IntN(255))
			bad = append(bad, data[:i], flipped)
		}
		for _, b := range bad {
			if err := saved.s.(stater).UnmarshalBinary(b); err == nil {
				t.Fatalf("UnmarshalBinary accepts %x; the state is %x", b, data)
			}
		}
		if got := state(saved.s); !bytes.Equal(got, data) {
			t.Fatalf("what UnmarshalBinary refused changed the state from %x to %x", data, got)
		}

		loaded := history{s: c.New(), now: saved.now.Add(c.gap(rng))} // time away counts as elapsed
		twin.now = loaded.now
		if err := loaded.s.(stater).UnmarshalBinary(data); err != nil {
			t.Fatalf("UnmarshalBinary: %v", err)
		}
		if got := state(loaded.s); !bytes.Equal(got, data) {
			t.Fatalf("the state %x is loaded as %x", data, got)
		}
		for range 10 {
			n := c.cost(rng, loaded.s)
			loaded.leave(n)
			twin.leave(n)
			if !loaded.now.Equal(twin.now) {
				t.Errorf("the loaded schedule lets %d units leave at %v, want %v", n,
					loaded.now.Sub(c.Origin), twin.now.Sub(c.Origin))
				return
			}
		}
	})
}
