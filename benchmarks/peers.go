package main

import (
	"context"
	"time"

	"github.com/failsafe-go/failsafe-go/ratelimiter"
	juju "github.com/juju/ratelimit"
	"github.com/sethvargo/go-limiter/memorystore"
	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/memstore"
	uber "go.uber.org/ratelimit"
	xtime "golang.org/x/time/rate"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
)

// plenty is a burst that no loop of decisions uses up, as it is refilled at one unit
// per nanosecond.
const plenty = 1_000_000_000

// subjects are all libraries. Ours is the first.
var subjects = []subject{
	{name: "sluice", ready: readySluice, pace: paceSluice},
	{name: "xtime", ready: readyXTime, pace: paceXTime},
	{name: "uber", ready: readyUber, pace: paceUber},
	{name: "failsafe", ready: readyFailsafe, pace: paceFailsafe},
	{name: "failsafe-try", ready: readyFailsafeTry},
	{name: "juju", ready: readyJuju, pace: paceJuju},
	{name: "throttled", ready: readyThrottled},
	{name: "sethvargo", ready: readySethvargo},
}

// must is for errors that only a mistake in this program can cause.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func readySluice() limiter {
	return ofSluice(must(shaper.New(scheduler.Every(1), shaper.WithBurst(plenty))))
}

// precise and grained are variants of ours, for scenarios of pacing only.
var (
	precise = subject{name: "precise", pace: paceWith(shaper.WithPreciseTiming())}
	grained = subject{name: "grain=250us", pace: paceWith(shaper.WithPreciseTiming(), shaper.WithGrain(250*time.Microsecond))}
)

func paceSluice(r rate, waiting int) limiter { return paceWith()(r, waiting) }

// paceWith makes a line with room for more than the waiting calls, so that none is refused.
func paceWith(opts ...shaper.Option) func(rate, int) limiter {
	return func(r rate, waiting int) limiter {
		queue := shaper.WithQueue(2*waiting + 16)
		return ofSluice(must(shaper.New(scheduler.Every(r.interval()), append(opts, queue)...)))
	}
}

func ofSluice(s *shaper.Shaper) limiter {
	return limiter{allow: s.Allow, wait: s.Wait, waiter: s, cancels: true, setRate: func(r rate) {
		if err := s.SetRate(scheduler.Every(r.interval())); err != nil {
			panic(err)
		}
	}}
}

func readyXTime() limiter { return ofXTime(xtime.NewLimiter(plenty, plenty)) }

func paceXTime(r rate, _ int) limiter {
	return ofXTime(xtime.NewLimiter(xtime.Every(r.interval()), 1))
}

func ofXTime(l *xtime.Limiter) limiter {
	return limiter{allow: l.Allow, wait: l.Wait, waiter: l, cancels: true, setRate: func(r rate) {
		l.SetLimit(xtime.Every(r.interval()))
	}}
}

func readyUber() limiter { return ofUber(uber.New(plenty)) }

func paceUber(r rate, _ int) limiter {
	return ofUber(uber.New(1, uber.Per(r.interval())))
}

// Take knows no context, and there is no form of it that does not wait.
func ofUber(l uber.Limiter) limiter {
	return limiter{wait: func(context.Context) error { l.Take(); return nil }}
}

func readyFailsafe() limiter { return ofFailsafe(1) }

func paceFailsafe(r rate, _ int) limiter { return ofFailsafe(r.interval()) }

func ofFailsafe(interval time.Duration) limiter {
	l := ratelimiter.NewSmoothWithMaxRate[any](interval)
	return limiter{allow: l.TryAcquirePermit, wait: l.AcquirePermit, cancels: true}
}

// TryAcquirePermit is what failsafe has for a call that need not wait: AcquirePermit makes
// a timer all the same.
func readyFailsafeTry() limiter {
	try := readyFailsafe().allow
	return limiter{wait: func(context.Context) error {
		if !try() {
			return context.DeadlineExceeded
		}
		return nil
	}}
}

func readyJuju() limiter { return ofJuju(juju.NewBucket(1, plenty)) }

func paceJuju(r rate, _ int) limiter { return ofJuju(juju.NewBucket(r.interval(), 1)) }

// Wait knows no context.
func ofJuju(b *juju.Bucket) limiter {
	return limiter{
		allow: func() bool { return b.TakeAvailable(1) == 1 },
		wait:  func(context.Context) error { b.Wait(1); return nil },
	}
}

func readyThrottled() limiter {
	store := must(memstore.NewCtx(0)) // any number of keys: a bound costs it a list
	l := must(throttled.NewGCRARateLimiterCtx(store, throttled.RateQuota{
		MaxRate:  throttled.PerDuration(1, 1),
		MaxBurst: plenty,
	}))
	// By default it gives up with an error after ten lost races.
	l.SetMaxCASAttemptsLimit(plenty)
	return limiter{allow: func() bool {
		limited, _, err := l.RateLimitCtx(context.Background(), "key", 1)
		return err == nil && !limited
	}}
}

func readySethvargo() limiter {
	store := must(memorystore.New(&memorystore.Config{Tokens: plenty, Interval: time.Second}))
	return limiter{allow: func() bool {
		_, _, _, ok, err := store.Take(context.Background(), "key")
		return err == nil && ok
	}}
}
