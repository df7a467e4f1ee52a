package shaper_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/event"
	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
)

// told writes events as lines, without what is of no matter to a test.
type told struct {
	start time.Time
	lines []string
}

func (l *told) hook(e event.Event) {
	line := fmt.Sprintf("%v %s%s %v", e.Time.Sub(l.start), e.Of, e.Key, e.Kind)
	if !e.Until.IsZero() {
		line += fmt.Sprint(" until ", e.Until.Sub(l.start))
	}
	if e.Rate != nil {
		line += fmt.Sprint(" ", e.Rate)
	}
	if e.Err != nil {
		line += fmt.Sprint(": ", e.Err)
	}
	l.lines = append(l.lines, line)
}

func (l *told) take() []string {
	lines := l.lines
	l.lines = nil
	return lines
}

// Every change of state is told once, with the key that it is about, and what changes nothing is
// not. The hook may use what it is told about.
func TestEvents(t *testing.T) {
	for name, of := range map[string]func(t *testing.T, o shaper.Option) (pacer, func() error){
		"Shaper": func(t *testing.T, o shaper.Option) (pacer, func() error) {
			s := newShaper(t, scheduler.PerSecond(10), shaper.WithQueue(1), o)
			return s, s.Close
		},
		"Group": func(t *testing.T, o shaper.Option) (pacer, func() error) {
			g := newGroup[string](t, scheduler.PerSecond(10), shaper.WithQueue(1), o)
			return oneKey{t, g}, g.Close
		},
		"under an account": func(t *testing.T, o shaper.Option) (pacer, func() error) {
			g := newGroup[string](t, scheduler.PerSecond(10), shaper.Under(newShaper(t, scheduler.Unlimited)), shaper.WithQueue(1), o)
			return oneKey{t, g}, g.Close
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				log := told{start: time.Now()}
				var p pacer
				p, shut := of(t, shaper.WithEvents("sms", func(e event.Event) { log.hook(e); p.Delay() }))
				key := ""
				if name != "Shaper" {
					key = "k"
				}
				require.True(t, p.AllowN(1))
				require.False(t, p.AllowN(1))
				assert.Empty(t, log.take(), "calls are no events")
				p.HoldUntil(log.start.Add(time.Second))
				p.HoldUntil(log.start.Add(time.Second)) // no change
				p.Pause()
				p.Pause()
				p.Resume()
				p.Resume()
				require.NoError(t, p.SetRate(scheduler.PerSecond(5)))
				require.NoError(t, p.SetRate(scheduler.PerSecond(5)))
				require.NoError(t, p.Scale(1, 2))
				r := newRecorder()
				for range 3 {
					r.submit(func() error { return p.WaitN(t.Context(), 1) })
				}
				assert.Equal(t, []string{
					"0s sms" + key + " held until 1s", "0s sms" + key + " paused", "0s sms" + key + " resumed",
					"0s sms" + key + " rate changed 5/s", "0s sms" + key + " rate changed 5/2s",
				}, log.lines[:5])
				for _, line := range log.take()[5:] {
					assert.Contains(t, line, "0s sms"+key+" refused: shaper: queue full (cost 1, would wait ")
				}
				require.NoError(t, shut())
				require.NoError(t, shut())
				synctest.Wait()
				assert.Equal(t, 1, len(slices.DeleteFunc(log.take(), func(line string) bool { return line != "0s sms closed" })))
			})
		})
	}
}

// A Group tells that there is no room for a key.
func TestEventsOfKeysThatCannotBeMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := told{start: time.Now()}
		g := newGroup[int](t, scheduler.PerHour(1), shaper.WithMaxKeys(1), shaper.WithEvents("g", log.hook))
		require.NoError(t, g.Wait(t.Context(), 1))
		require.Error(t, g.Wait(t.Context(), 2))
		require.Error(t, g.Acquire(t.Context(), 3, 1))
		_, err := g.Enqueue(4, shaper.Call{}, func(error) {})
		require.Error(t, err)
		const full = " keys full: shaper: too many keys: all 1 still owe something, wait or are held (cost 1)"
		assert.Equal(t, []string{"0s g2" + full, "0s g3" + full, "0s g4" + full}, log.take())
	})
}

// A hook costs calls that leave nothing.
func TestEventsAllocateNothing(t *testing.T) {
	s := newShaper(t, scheduler.Every(1), shaper.WithBurst(1_000_000_000), shaper.WithEvents("s", func(event.Event) {}))
	assert.Zero(t, testing.AllocsPerRun(1000, func() {
		if s.Wait(t.Context()) != nil || !s.Allow() {
			t.Fail()
		}
	}))
}
