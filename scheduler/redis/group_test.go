package redis_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/scheduler/redis"
	"github.com/sluice-go/sluice/shaper"
)

type host string

func TestGroupSharesEachKey(t *testing.T) {
	onEach(t, func(t *testing.T, addr string) {
		r := scheduler.PerSecond(50)
		var all sync.WaitGroup
		var mu sync.Mutex
		left := map[host]int{}
		began := time.Now()
		for range 2 {
			g, err := redis.NewGroup[host](client(t, addr), "hosts", r, 1, redis.FailLocal(2), redis.WithTimeout(patience))
			require.NoError(t, err)
			defer g.Close()
			for i := range 60 {
				key := host(fmt.Sprint("host ", i%3))
				all.Go(func() {
					if !assert.NoError(t, g.Wait(t.Context(), key)) {
						return
					}
					mu.Lock()
					defer mu.Unlock()
					// However late it is noticed, the n-th of a key leaves (n-1)T after the first.
					assert.GreaterOrEqual(t, time.Since(began), r.For(int64(left[key])))
					left[key]++
				})
			}
		}
		all.Wait()
		assert.Equal(t, map[host]int{"host 0": 40, "host 1": 40, "host 2": 40}, left)
	})
}

func TestGroupIsBounded(t *testing.T) {
	onEach(t, func(t *testing.T, addr string) {
		g, err := redis.NewGroup[host](client(t, addr), "few", scheduler.PerMinute(1), 1, redis.FailLocal(1), redis.WithShaper(shaper.WithMaxKeys(10)))
		require.NoError(t, err)
		defer g.Close()
		// None of the keys can be dropped while it is held.
		for i := range 10 {
			g.HoldUntil(host(fmt.Sprint(i)), time.Now().Add(time.Minute))
		}
		assert.ErrorIs(t, g.Wait(t.Context(), "one more"), shaper.ErrTooManyKeys)
		assert.Equal(t, 10, g.Len())
	})
}

func TestGroupForgetsNothing(t *testing.T) {
	onEach(t, func(t *testing.T, addr string) {
		c := client(t, addr)
		g, err := redis.NewGroup[host](c, "many", scheduler.PerHour(1), 1, redis.FailLocal(1), redis.WithTimeout(patience))
		require.NoError(t, err)
		defer g.Close()
		require.NoError(t, g.Wait(t.Context(), "x"))
		assert.Equal(t, 1, g.Len())
		soon, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		refusal, ok := errors.AsType[*shaper.Refusal](g.Wait(soon, "x"))
		require.True(t, ok)
		assert.InDelta(t, 3600, refusal.Delay.Seconds(), 300)
		// The limit of a key is that of a Schedule.
		d, err := newSchedule(t, c, "many/x", scheduler.PerHour(1), 1).Allow(t.Context(), 1)
		require.NoError(t, err)
		assert.False(t, d.OK)
	})
}

// Of many keys none stays, neither here nor there. SLUICE_KEYS=100000 makes them that many.
func TestGroupOfManyKeys(t *testing.T) {
	addr := realServer(t).Addr
	c := client(t, addr)
	keys := 2_000
	if s := os.Getenv("SLUICE_KEYS"); s != "" {
		var err error
		keys, err = strconv.Atoi(s)
		require.NoError(t, err)
	}
	g, err := redis.NewGroup[host](c, "crowd", scheduler.PerSecond(1), 1, redis.FailLocal(1), redis.WithTimeout(brief),
		redis.WithOnChange(func(s redis.State) { t.Error(s.Err) }))
	require.NoError(t, err)
	before := runtime.NumGoroutine()
	began := time.Now()
	next := make(chan host)
	var all sync.WaitGroup
	for range 64 {
		all.Go(func() {
			for key := range next {
				assert.NoError(t, g.Wait(t.Context(), key))
			}
		})
	}
	for i := range keys {
		next <- host(fmt.Sprint(i))
	}
	close(next)
	all.Wait()
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	t.Logf("%d keys in %v, %d MB in use", keys, time.Since(began), mem.HeapInuse>>20)
	assert.Eventually(t, func() bool { return g.Len() == 0 }, eventually, 50*ms)
	assert.Eventually(t, func() bool { return runtime.NumGoroutine() <= before+2 }, eventually, 50*ms)
	assert.Eventually(t, func() bool { return c.DBSize(t.Context()).Val() == 0 }, eventually, 200*ms)
}
