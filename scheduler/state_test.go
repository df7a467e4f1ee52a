package scheduler_test

import (
	"encoding"
	"encoding/binary"
	"hash/crc32"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/scheduler"
)

type stater interface {
	scheduler.Scheduler
	encoding.BinaryMarshaler
	encoding.BinaryUnmarshaler
}

// each returns one schedule of every kind, with something on its books.
func each(t testing.TB) map[string]stater {
	t.Helper()
	odd := newGCRA(t, scheduler.PerSecond(7), 2, scheduler.WithTolerance(time.Millisecond))
	kinds := map[string]stater{
		"GCRA":           odd,
		"Unlimited":      newGCRA(t, scheduler.Unlimited, 1),
		"TokenBucket":    newTokenBucket(t, scheduler.PerSecond(7), 10),
		"LeakyBucket":    newLeakyBucket(t, scheduler.PerSecond(7), 10),
		"FixedWindow":    newFixedWindow(t, 100, day, scheduler.WithLocation(location(t, "Europe/Berlin"))),
		"SlidingLog":     newSlidingLog(t, 10, time.Minute),
		"SlidingCounter": newSlidingCounter(t, 10, time.Minute),
		"Hours":          newHours(t, location(t, "Europe/Berlin"), 9*time.Hour, 17*time.Hour),
		"All":            scheduler.All(newGCRA(t, scheduler.PerSecond(3), 1), newSlidingLog(t, 5, time.Second)).(stater),
	}
	for _, s := range kinds {
		s.Commit(origin, origin, 3)
		s.Commit(origin, origin.Add(time.Second), 1)
	}
	require.NoError(t, odd.SetRate(origin.Add(time.Second), scheduler.PerMinute(11)))
	return kinds
}

func TestStateOfAnotherKindIsRefused(t *testing.T) {
	kinds := each(t)
	for from, saved := range kinds {
		data, err := saved.MarshalBinary()
		require.NoError(t, err)
		for to, s := range each(t) {
			if from == to || from == "Unlimited" && to == "GCRA" || from == "GCRA" && to == "Unlimited" {
				continue
			}
			assert.ErrorContains(t, s.UnmarshalBinary(data), "kind", "%s into %s", from, to)
		}
	}
}

// stateless is a schedule of its user's without a state to save.
type stateless struct{ scheduler.Scheduler }

func TestStateOfAll(t *testing.T) {
	g, l := newGCRA(t, scheduler.PerSecond(3), 1), newSlidingLog(t, 5, time.Second)
	both := scheduler.All(g, l).(stater)
	both.Commit(origin, origin, 2)
	before, err := both.MarshalBinary()
	require.NoError(t, err)

	other := scheduler.All(newGCRA(t, scheduler.PerSecond(3), 1), newSlidingCounter(t, 5, time.Second)).(stater)
	foreign, err := other.MarshalBinary()
	require.NoError(t, err)
	assert.ErrorContains(t, both.UnmarshalBinary(foreign), "kind")
	after, err := both.MarshalBinary()
	require.NoError(t, err)
	assert.Equal(t, before, after, "the first limit has its state back")

	assert.ErrorContains(t, scheduler.All(g).(stater).UnmarshalBinary(before), "2 limits, want 1")
	_, err = scheduler.All(g, stateless{l}).(stater).MarshalBinary()
	assert.ErrorContains(t, err, "stateless")
}

func TestStateOfAnUnknownZoneIsRefused(t *testing.T) {
	f := newFixedWindow(t, 5, day, scheduler.WithLocation(time.FixedZone("Nowhere", 3600)))
	data, err := f.MarshalBinary()
	require.NoError(t, err)
	assert.ErrorContains(t, new(scheduler.FixedWindow).UnmarshalBinary(data), "Nowhere")
	same := newFixedWindow(t, 5, day, scheduler.WithLocation(time.FixedZone("Nowhere", 3600)))
	assert.NoError(t, same.UnmarshalBinary(data), "it has that zone")

	h := newHours(t, time.FixedZone("Nowhere", 3600), 0, time.Hour)
	data, err = h.MarshalBinary()
	require.NoError(t, err)
	assert.ErrorContains(t, new(scheduler.Hours).UnmarshalBinary(data), "Nowhere")
	assert.NoError(t, newHours(t, time.FixedZone("Nowhere", 0), 0, 1).UnmarshalBinary(data), "it has that zone")
}

// A zone may have no name, and is not to be taken for none.
func TestStateInANamelessZone(t *testing.T) {
	nameless := time.FixedZone("", 3*60*60)
	at := time.Date(2026, 3, 1, 20, 0, 0, 0, time.UTC) // 23:00 there
	f := newFixedWindow(t, 1, day, scheduler.WithLocation(nameless))
	f.Commit(at, at, 1)
	data, err := f.MarshalBinary()
	require.NoError(t, err)
	loaded := newFixedWindow(t, 1, day, scheduler.WithLocation(nameless))
	require.NoError(t, loaded.UnmarshalBinary(data))
	assert.Equal(t, at.Add(25*time.Hour), loaded.Next(at, 1, 1))

	h := newHours(t, nameless, 0, time.Hour)
	data, err = h.MarshalBinary()
	require.NoError(t, err)
	loadedHours := newHours(t, nameless, 0, time.Hour)
	require.NoError(t, loadedHours.UnmarshalBinary(data))
	assert.Equal(t, at.Add(time.Hour), loadedHours.Next(at, 0, 1))
}

// FuzzState: no bytes make a schedule panic. What it accepts is a state that it
// writes the same way, and works.
func FuzzState(f *testing.F) {
	for _, s := range each(f) {
		data, err := s.MarshalBinary()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data[:len(data)-4])
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		data := withSum(body) // or hardly any input would get past the checksum
		for name, s := range each(t) {
			if s.UnmarshalBinary(data) != nil {
				continue
			}
			again, err := s.MarshalBinary()
			if err != nil || string(again) != string(data) {
				t.Fatalf("%s reads %x and writes %x (%v)", name, data, again, err)
			}
			now := origin
			for range 5 {
				due := s.Next(now, 3, 1)
				if due.Before(now) {
					t.Fatalf("%s of state %x: Next lies before t", name, data)
				}
				s.Commit(now, now, 1)
			}
		}
	})
}

func withSum(body []byte) []byte {
	return binary.BigEndian.AppendUint32(append([]byte(nil), body...), crc32.ChecksumIEEE(body))
}
