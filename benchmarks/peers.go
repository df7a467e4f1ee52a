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
	{"sluice", readySluice, paceSluice},
	{"xtime", readyXTime, paceXTime},
	{"uber", readyUber, paceUber},
	{"failsafe", readyFailsafe, paceFailsafe},
	{"juju", readyJuju, paceJuju},
	{"throttled", readyThrottled, nil},
	{"sethvargo", readySethvargo, nil},
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

// The line has room for more than those who wait, so that nobody is refused.
func paceSluice(r rate, waiting int) limiter {
	return ofSluice(must(shaper.New(scheduler.Every(r.interval()), shaper.WithQueue(2*waiting+16))))
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
