package engine

import (
	"context"
	"strconv"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/transport/feedback"
)

// setBack is the reading t of a clock that was set back by so much before it was read. How
// much time has passed, a Time keeps beside what the clock says.
func setBack(t time.Time, by time.Duration) time.Time {
	// The seconds of a Time with a monotonic reading stand above the 30 bits of its nanoseconds.
	*(*uint64)(unsafe.Pointer(&t)) -= uint64(by/time.Second) << 30
	return t
}

// Keys are forgotten by the time that has passed, also if the clock is set meanwhile.
func TestRefusalsAreForgottenByElapsedTime(t *testing.T) {
	for name, by := range map[string]time.Duration{"right": 0, "back": 24 * time.Hour, "ahead": -24 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			// Not in a bubble, whose times have no reading but that of the clock. Nothing waits.
			e := Engine{Waiter: Of(ready{}), MaxHold: time.Hour}
			start := time.Now()
			require.Equal(t, time.Minute, setBack(start, by).Add(time.Minute).Sub(start))
			refuse := func(key string, now time.Time) {
				verdict := feedback.Verdict{Refused: true, Stated: true, Wait: time.Second}
				e.Answered(&Call{Key: key}, Answer{Verdict: verdict, Status: 429, Received: now})
			}
			refuse("a", start)
			refuse("b", start)
			later := setBack(start.Add(forgetAfter+time.Second), by)
			refuse("c", setBack(start.Add(forgetAfter+time.Second-1), by))
			require.EqualValues(t, 3, e.memory.size.Load(), "their hold has ended a second after the start")
			refuse("c", later)
			require.EqualValues(t, 3, e.memory.size.Load(), "it is looked now and then")
			refuse("c", later.Add(forgetEvery))
			require.EqualValues(t, 1, e.memory.size.Load())
			require.Nil(t, e.memory.get("a"))
		})
	}
}

// Keys that were refused are bounded, and those whose hold is long over make room.
func TestRefusedKeysAreBounded(t *testing.T) {
	e := Engine{Waiter: Of(ready{}), MaxHold: time.Hour}
	now := time.Now()
	refuse := func(key string, at time.Time) {
		verdict := feedback.Verdict{Refused: true, Stated: true, Wait: time.Second}
		e.Answered(&Call{Key: key}, Answer{Verdict: verdict, Status: 429, Received: at})
	}
	for i := range maxKeys + 10 {
		refuse(strconv.Itoa(i), now)
	}
	require.EqualValues(t, maxKeys, e.memory.size.Load())
	refuse("late", now.Add(forgetAfter+2*time.Second))
	require.EqualValues(t, 1, e.memory.size.Load())
}

type ready struct{}

func (ready) Wait(context.Context) error { return nil }
