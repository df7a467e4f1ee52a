package main

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	xtime "golang.org/x/time/rate"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
)

// Keys under an account: a million of them, with one call each that waits without a goroutine
// for its key's limit and for the account's.
//
// bytes/key is what the heap has grown by when all of them wait, the key and its string, the
// call and what holds both together; the function that is called back is the caller's, and one
// for all. Then 400,000 may leave per second, more than two cores can do, each key once in 2.5 s,
// and each call waits again when it has left: departures/s is how many really leave, and
// cpu-us/departure as in a blocked wait.
//
// What x/time is compared with has a map of limiters as in the scenario of keys, and one for
// the account; a call reserves at both and waits for the later time. That is no fair bargain for
// its user: what is reserved at the account is lost while the key holds the call back.
func underScenario() scenario {
	return scenario{
		name:     "Under/keys=1000000",
		rounds:   targetRounds,
		subjects: []subject{{name: "sluice", under: underSluice}, {name: "xtime-both", under: underXTime}},
		measure: func(s subject, scale scale) (sample, error) {
			keys := 1_000_000 / scale.crowd
			bytes, err := measureUnderMemory(s.under(standstill, standstill, keys), keys)
			if err != nil {
				return nil, err
			}
			fast := perSecond(400_000)
			found, err := measureUnder(s.under(fast*rate(keys), fast, keys), keys, scale)
			return append(sample{{"bytes/key", bytes}}, found...), err
		},
	}
}

// A keyedEnqueuer is an enqueuer of calls of a key.
type keyedEnqueuer func(key string, c *callback)

func underSluice(ofKey, ofAccount rate, keys int) keyedEnqueuer {
	account := must(shaper.New(scheduler.Every(ofAccount.interval()), shaper.WithQueue(2*keys)))
	g := must(shaper.NewGroup[string](scheduler.Every(ofKey.interval()), shaper.Under(account), shaper.WithMaxKeys(2*keys)))
	return func(key string, c *callback) { must(g.Enqueue(key, shaper.Call{}, c.erred)) }
}

func underXTime(ofKey, ofAccount rate, _ int) keyedEnqueuer {
	account := xtime.NewLimiter(xtime.Every(ofAccount.interval()), 1)
	all := newSharded()
	made := func() *xtime.Limiter { return xtime.NewLimiter(xtime.Every(ofKey.interval()), 1) }
	return func(key string, c *callback) {
		delay := max(all.get(key, made).Reserve().Delay(), account.Reserve().Delay())
		time.AfterFunc(delay, c.plain)
	}
}

// measureUnderMemory has each key use up its burst's only unit, or the account's, first.
func measureUnderMemory(enqueue keyedEnqueuer, keys int) (bytes float64, err error) {
	var departed atomic.Int64
	c := newCallback(func() { departed.Add(1) })
	enqueue(key(keys), c)
	before := settled().HeapAlloc
	for i := range keys {
		enqueue(key(i), c)
	}
	grown := growth(before)
	if n := departed.Load(); n > 1 {
		return 0, fmt.Errorf("%d calls left at a standstill", n-1)
	}
	runtime.KeepAlive(enqueue)
	return grown / float64(keys), nil
}

func measureUnder(enqueue keyedEnqueuer, keys int, scale scale) (sample, error) {
	var departed atomic.Int64
	for i := range keys {
		name := key(i)
		var again *callback
		again = newCallback(func() {
			departed.Add(1)
			enqueue(name, again)
		})
		enqueue(name, again)
	}
	runtime.GC() // as no program begins with the one that making the keys has brought about
	time.Sleep(scale.settle)
	u := startUsage()
	n := departed.Load()
	time.Sleep(scale.blocked)
	n = departed.Load() - n
	u.stop()
	if n == 0 {
		return nil, fmt.Errorf("no call left within %v", scale.blocked)
	}
	return sample{
		{"departures/s", float64(n) / u.elapsed.Seconds()},
		{"cpu-us/departure", micros(u.cpu) / float64(n)},
		{"allocs/departure", float64(u.allocs) / float64(n)},
	}, nil
}
