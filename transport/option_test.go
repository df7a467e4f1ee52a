package transport_test

import (
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
	"github.com/sluice-go/sluice/transport"
	"github.com/sluice-go/sluice/transport/feedback"
	"github.com/stretchr/testify/require"
)

// An option that makes no sense is a mistake in the program.
func TestOptionsThatMakeNoSense(t *testing.T) {
	for want, opt := range map[string]func() transport.Option{
		"transport: maximum hold 0s: must be positive":                                func() transport.Option { return transport.WithMaxHold(0) },
		"transport: maximum delay -1ns: must be positive":                             func() transport.Option { return transport.WithMaxDelay(-1) },
		"transport: 0 in flight: must be at least 1":                                  func() transport.Option { return transport.WithMaxInFlight(0) },
		"transport: adaptive rate with a floor of 0: must be above 0 and at most 1":   func() transport.Option { return transport.WithAdaptiveRate(0) },
		"transport: adaptive rate with a floor of 1.1: must be above 0 and at most 1": func() transport.Option { return transport.WithAdaptiveRate(1.1) },
		"transport: retry with 1 attempts: must be at least 2":                        func() transport.Option { return transport.WithRetry(transport.Retry{Attempts: 1}) },
		"transport: retry with a budget of -0.1: must be above 0 and at most 1":       func() transport.Option { return transport.WithRetry(transport.Retry{Budget: -0.1}) },
		"transport: retry with a budget of 1.5: must be above 0 and at most 1":        func() transport.Option { return transport.WithRetry(transport.Retry{Budget: 1.5}) },
	} {
		require.PanicsWithValue(t, want, func() { transport.New(nil, ready, opt()) })
	}
	require.Panics(t, func() { transport.New(nil, ready, nil) })
	require.PanicsWithValue(t, "transport: NewKeyed called with a nil KeyedWaiter", func() { transport.NewKeyed(nil, nil, nil) })
}

// Everything that a Waiter may say has a name. The Shaper and the Group say all of it.
var (
	_ transport.CostWaiter   = (*shaper.Shaper)(nil)
	_ transport.Leaver       = (*shaper.Shaper)(nil)
	_ transport.Charger      = (*shaper.Shaper)(nil)
	_ transport.Holder       = (*shaper.Shaper)(nil)
	_ transport.Scaler       = (*shaper.Shaper)(nil)
	_ transport.ScaleChecker = (*shaper.Shaper)(nil)
	_ transport.Predictor    = (*shaper.Shaper)(nil)
	_ transport.Places       = (*shaper.Shaper)(nil)

	_ transport.ArrivalKeeper = (*shaper.Shaper)(nil)
	_ transport.ArrivalKeeper = (*shaper.Group[string])(nil)
	_ transport.ArrivalKeeper = (*shaper.Key[string])(nil)
	_ transport.Places        = (*shaper.Key[string])(nil)

	_ transport.KeyedCostWaiter = (*shaper.Group[string])(nil)
	_ transport.KeyedLeaver     = (*shaper.Group[string])(nil)
	_ transport.KeyedCharger    = (*shaper.Group[string])(nil)
	_ transport.KeyedHolder     = (*shaper.Group[string])(nil)
	_ transport.KeyedScaler     = (*shaper.Group[string])(nil)
	_ transport.ScaleChecker    = (*shaper.Group[string])(nil)
	_ transport.KeyedPredictor  = (*shaper.Group[string])(nil)
	_ transport.KeyedPlaces     = (*shaper.Group[string])(nil)
)

// wrapped is a Waiter and nothing more, whatever is in it.
func wrapped(w transport.Waiter) transport.Waiter { return struct{ transport.Waiter }{w} }

// stingy is Places that take no bound.
type stingy struct{ *shaper.Shaper }

func (stingy) SetMaxInFlight(int) error { return errFull }

// An option that the Waiter cannot follow is an error when the Transport is made. What it can
// follow some other way is none.
func TestOptionsThatTheWaiterCannotFollow(t *testing.T) {
	from := func(s scheduler.Scheduler) transport.Waiter { return must(shaper.NewFrom(s)) }
	window := func() scheduler.Scheduler { return must(scheduler.NewSlidingLog(100, 10*time.Second)) }
	gcra := func() scheduler.Scheduler { return must(scheduler.NewGCRA(scheduler.PerSecond(10), 1)) }
	s := func() *shaper.Shaper { return newShaper(t, scheduler.PerSecond(10)) }
	xtime := &limiter{interval: time.Second}
	retry := transport.WithRetry(transport.Retry{})
	keeps := transport.WithRetry(transport.Retry{KeepPlace: true})
	resend := transport.WithRetry(transport.Retry{Resend429: true})
	for name, tc := range map[string]struct {
		waiter transport.Waiter
		opts   []transport.Option
		want   string // empty: it can
	}{
		"adaptive, wrapped":   {wrapped(s()), []transport.Option{transport.WithAdaptiveRate(0.1)}, "an adaptive rate needs a Waiter with Scale: not a struct"},
		"adaptive, x/time":    {xtime, []transport.Option{transport.WithAdaptiveRate(0.1)}, "an adaptive rate needs a Waiter with Scale: not a *transport_test.limiter"},
		"adaptive, window":    {from(window()), []transport.Option{transport.WithAdaptiveRate(0.1)}, "an adaptive rate needs a Waiter that can scale: shaper: "},
		"adaptive, All":       {from(scheduler.All(gcra(), window())), []transport.Option{transport.WithAdaptiveRate(0.1)}, "an adaptive rate needs a Waiter that can scale: shaper: "},
		"adaptive, deaf":      {s(), []transport.Option{transport.WithAdaptiveRate(0.1), transport.WithClassifier(nil)}, "an adaptive rate is about answers"},
		"adaptive, GCRA":      {from(gcra()), []transport.Option{transport.WithAdaptiveRate(0.1)}, ""},
		"adaptive":            {s(), []transport.Option{transport.WithAdaptiveRate(0.1)}, ""},
		"hold, wrapped":       {wrapped(s()), []transport.Option{transport.WithMaxHold(time.Minute)}, "a maximum hold needs a Waiter with HoldUntil, or WithRetry: not a struct"},
		"hold, x/time":        {xtime, []transport.Option{transport.WithMaxHold(time.Minute)}, "a maximum hold needs a Waiter with HoldUntil, or WithRetry: not a *transport_test.limiter"},
		"hold, x/time, retry": {xtime, []transport.Option{transport.WithMaxHold(time.Minute), retry}, ""},
		"hold, deaf":          {s(), []transport.Option{transport.WithMaxHold(time.Minute), transport.WithClassifier(nil)}, "a maximum hold is about answers"},
		"hold":                {s(), []transport.Option{transport.WithMaxHold(time.Minute)}, ""},
		"cost, wrapped":       {wrapped(s()), []transport.Option{segments(3)}, "a cost needs a Waiter with WaitN: not a struct"},
		"cost, x/time":        {xtime, []transport.Option{segments(3)}, ""},
		"cost, none":          {ready, []transport.Option{transport.WithCost(nil)}, ""},
		"resend, deaf":        {s(), []transport.Option{resend, transport.WithClassifier(nil)}, "Resend429 is about answers"},
		"retry, deaf":         {s(), []transport.Option{retry, transport.WithClassifier(nil)}, ""},
		"places":              {stingy{s()}, []transport.Option{transport.WithMaxInFlight(3)}, "in flight: line full"},
		"keeps, wrapped":      {wrapped(s()), []transport.Option{keeps}, "KeepPlace needs a Waiter with WithArrival: not a struct"},
		"keeps, x/time":       {xtime, []transport.Option{keeps}, "KeepPlace needs a Waiter with WithArrival: not a *transport_test.limiter"},
		"keeps":               {s(), []transport.Option{keeps}, ""},
		"places, wrapped":     {wrapped(s()), []transport.Option{transport.WithMaxInFlight(3)}, "a bound in flight needs a Waiter with Acquire and Release: not a struct"},
		"places, x/time":      {xtime, []transport.Option{transport.WithMaxInFlight(3)}, "a bound in flight needs a Waiter with Acquire and Release: not a *transport_test.limiter"},
		"the rest, x/time": {xtime, []transport.Option{resend, transport.WithMaxDelay(time.Second),
			transport.WithHooks(&transport.Trace{}), transport.WithClassifier(feedback.Stripe)}, ""},
		"no option": {ready, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			make := func() { transport.New(newPartner(), tc.waiter, tc.opts...) }
			if tc.want == "" {
				require.NotPanics(t, make)
				return
			}
			require.Contains(t, panicOf(make), "transport: "+tc.want)
		})
	}
	keyed := struct{ transport.KeyedWaiter }{newGroup(t, scheduler.PerSecond(10))}
	for _, opt := range []transport.Option{transport.WithAdaptiveRate(0.1), transport.WithMaxHold(time.Minute), transport.WithMaxInFlight(1), segments(3)} {
		require.Contains(t, panicOf(func() { transport.NewKeyed(nil, nil, keyed, opt) }), "needs a ")
	}
}

func panicOf(f func()) (text string) {
	defer func() { text = fmt.Sprint(recover()) }()
	f()
	return
}

// An adaptive rate over a window of 100 in 10 s alone, which has no rate to cut, is an error.
// With a rate beside the window a refusal cuts that.
func TestCaseJ12AdaptiveRateOverAWindow(t *testing.T) {
	window := func() scheduler.Scheduler { return must(scheduler.NewSlidingLog(100, 10*time.Second)) }
	alone := must(shaper.NewFrom(window()))
	require.Contains(t, panicOf(func() { transport.New(nil, alone, transport.WithAdaptiveRate(0.1)) }), "cannot be set")

	synctest.Test(t, func(t *testing.T) {
		p := newPartner()
		script(p, status(http.StatusTooManyRequests, "Retry-After: 0"))
		s := newShaper(t, scheduler.PerSecond(10), shaper.WithLimits(window()))
		mustSend(t, transport.New(p, s, transport.WithAdaptiveRate(0.1)), "/")
		require.Equal(t, scheduler.PerSecond(7), s.Stats().Rate)
	})
}
