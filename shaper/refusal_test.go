package shaper_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
)

func TestRefusalLabel(t *testing.T) {
	for reason, want := range map[error]string{
		shaper.ErrQueueFull:   "queue_full",
		shaper.ErrMaxDelay:    "max_delay",
		shaper.ErrDeadline:    "deadline",
		shaper.ErrCost:        "cost",
		shaper.ErrClosed:      "closed",
		shaper.ErrTooManyKeys: "too_many_keys",
		errors.New("mine"):    "other",
		nil:                   "other",
		fmt.Errorf("%w: 7 keys", shaper.ErrTooManyKeys): "too_many_keys",
	} {
		assert.Equal(t, want, (&shaper.Refusal{Reason: reason}).Label())
	}
}

func TestRefusalIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t, scheduler.PerSecond(3), shaper.WithMaxDelay(0))
		require.True(t, s.Allow())
		assert.Equal(t, `label=max_delay reason="shaper: wait exceeds the maximum delay" cost=2 delay=333.333ms`,
			logged(s.WaitN(t.Context(), 2)))
		s.HoldUntil(time.Now().Add(time.Minute))
		assert.Equal(t, `label=max_delay reason="shaper: wait exceeds the maximum delay" cost=1 delay=1m0s held_until=2000-01-01T00:01:00.000Z`,
			logged(s.Wait(t.Context())))
		assert.Equal(t, `label=other reason="" cost=0`, logged(&shaper.Refusal{}))
	})
}

// logged returns what a log says of a value, which it tells as a group.
func logged(value any) string {
	var b bytes.Buffer
	slog.New(slog.NewTextHandler(&b, nil)).Info("", "", value)
	_, text, _ := strings.Cut(b.String(), `msg="" `)
	return strings.TrimSpace(strings.ReplaceAll(" "+text, ` "".`, " "))
}

// Each field of Stats is logged, under its name.
func TestStatsAreLogged(t *testing.T) {
	until := time.Unix(0, 0)
	for _, value := range []slog.LogValuer{
		shaper.Stats{Rate: scheduler.PerSecond(3), NextDue: until, HeldUntil: until},
		shaper.GroupStats{},
	} {
		var names []string
		for _, attr := range value.LogValue().Group() {
			names = append(names, strings.ReplaceAll(attr.Key, "_", ""))
		}
		var fields []string
		for i := range reflect.TypeOf(value).NumField() {
			fields = append(fields, strings.ToLower(reflect.TypeOf(value).Field(i).Name))
		}
		assert.ElementsMatch(t, fields, names)
	}
	s := newShaper(t, scheduler.PerSecond(3))
	require.True(t, s.Allow())
	assert.Equal(t, "submitted=1 left=1 cancelled=0 refused=0 waiting=0 units=0 in_flight=0 oldest=0s left_units=1 unused_units=0 paused=false rate=3/s", logged(s.Stats()))
	window := shaper.MustNewFrom(scheduler.Must(scheduler.NewFixedWindow(3, time.Hour)))
	assert.Equal(t, "submitted=0 left=0 cancelled=0 refused=0 waiting=0 units=0 in_flight=0 oldest=0s left_units=0 unused_units=0 paused=false", logged(window.Stats()), "it has no rate")
}

// A message tells a wait with as many digits as say something.
func TestRefusalRoundsTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t, scheduler.PerMinute(7), shaper.WithMaxDelay(ms))
		require.True(t, s.Allow())
		err := s.Wait(t.Context())
		assert.EqualError(t, err, "shaper: wait exceeds the maximum delay (cost 1, would wait 8.571s)")
		refusal := asRefusal(t, err)
		assert.Equal(t, 8_571_428_572*time.Nanosecond, refusal.Delay)
		assert.Equal(t, "shaper: wait exceeds the maximum delay (cost 1)", refusal.Brief())
	})
}

func asRefusal(t *testing.T, err error) *shaper.Refusal {
	t.Helper()
	var refusal *shaper.Refusal
	require.ErrorAs(t, err, &refusal)
	return refusal
}

// Behind a pause, and while all places in flight are taken, a wait may be unknown. It is
// told as that, and not as one of 1 ns. To come again makes sense all the same.
func TestUnknownWaits(t *testing.T) {
	waits := map[string]struct {
		stop func(*shaper.Shaper)
		rate scheduler.Rate
		wait func(*shaper.Shaper, context.Context) error
	}{
		"paused":           {(*shaper.Shaper).Pause, scheduler.Unlimited, (*shaper.Shaper).Wait},
		"paused at a rate": {(*shaper.Shaper).Pause, scheduler.PerSecond(1), (*shaper.Shaper).Wait},
		"in flight": {func(s *shaper.Shaper) { _ = s.Acquire(context.Background(), 1) }, scheduler.Unlimited,
			func(s *shaper.Shaper, ctx context.Context) error { return s.Acquire(ctx, 1) }},
	}
	for name, w := range waits {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newShaper(t, w.rate, shaper.WithQueue(1), shaper.WithMaxInFlight(1), shaper.WithMaxDelay(0))
				w.stop(s)
				refused := asRefusal(t, w.wait(s, t.Context()))
				assert.EqualError(t, refused, "shaper: wait exceeds the maximum delay (cost 1)")
				assert.Zero(t, refused.Delay)
				assert.Equal(t, time.Duration(1), refused.WouldWait())
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		g, err := shaper.NewGroup[string](scheduler.Unlimited, shaper.WithQueue(1))
		require.NoError(t, err)
		require.NoError(t, g.Pause("a"))
		rec := newRecorder()
		rec.submit(func() error { return g.Wait(t.Context(), "a") })
		refused := asRefusal(t, g.Wait(t.Context(), "a"))
		assert.EqualError(t, refused, "shaper: queue full (cost 1)")
		assert.Equal(t, time.Duration(1), refused.WouldWait())
		g.Resume("a")
		synctest.Wait()
		assert.Equal(t, []time.Duration{0}, rec.left())
	})
}

// What no time mends has no wait: a loop that asks again must end. A place for a key may come.
func TestFinalRefusalsHaveNoWait(t *testing.T) {
	s := newShaper(t, scheduler.Unlimited)
	assert.Zero(t, asRefusal(t, s.WaitN(t.Context(), 0)).WouldWait())
	require.NoError(t, s.Close())
	assert.Zero(t, asRefusal(t, s.Wait(t.Context())).WouldWait())

	g := shaper.MustNewGroup[string](scheduler.PerHour(1), shaper.WithMaxKeys(1))
	require.True(t, g.Allow("a"))
	refused := asRefusal(t, g.Wait(t.Context(), "b"))
	assert.Equal(t, "too_many_keys", refused.Label())
	assert.Positive(t, refused.WouldWait())
}

// A dated context tells a deadline, or only a time.
type dated struct {
	context.Context
	at time.Time
	ok bool
}

func (d dated) Deadline() (time.Time, bool) { return d.at, d.ok }

func TestDeadlineIsOneOnlyIfTheContextSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShaper(t, scheduler.PerSecond(1))
		require.True(t, s.Allow())
		assert.NoError(t, s.Wait(dated{t.Context(), time.Now(), false}))
		assert.ErrorIs(t, s.Wait(dated{t.Context(), time.Time{}, true}), shaper.ErrDeadline)
		assert.NoError(t, s.Wait(dated{t.Context(), time.Time{}, false}))
		assert.NoError(t, s.Wait(dated{t.Context(), time.Unix(1<<60, 0), true}))
	})
}
