package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-redis/redis_rate/v10"
	goredis "github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/scheduler/redis"
	"github.com/sluice-go/sluice/shaper"
)

// A limit that is shared over Redis, at 10,000 calls per second: four instances of each
// library, with a client of its own each, stand for four processes. The server is one that
// the trial starts, on loopback.
//
// Crowded: 256 callers of each instance call all the time: a process takes no more slots
// at a time than calls wait, so with fewer it takes more steps. steps/s is what the server
// counts of scripts, calls/s what left, cpu-us/call the CPU time of all four, and
// server-cpu-us/call that of the server. Sparse: one call every 5 ms, which need not wait;
// wait-p50-us and wait-p99-us are what the library takes all the same.
//
// redis_rate answers whether a call may leave; its callers sleep for as long as it says and
// ask again, as its users do. It asks once for each answer.
func sharedScenarios() []scenario {
	subjects := []subject{
		{name: "sluice", share: shareSluice},
		{name: "redis_rate", share: shareRedisRate},
	}
	return []scenario{
		{name: "Redis/crowded", rounds: targetRounds, subjects: subjects, measure: onServer(measureCrowded)},
		{name: "Redis/sparse", rounds: targetRounds, subjects: subjects, measure: onServer(measureSparse)},
	}
}

const (
	sharedRate = 10_000
	instances  = 4
	// callersEach is how many callers an instance has.
	callersEach = 256
)

func shareSluice(client *goredis.Client) func(context.Context) error {
	pace := must(redis.New(client, "benchmark", scheduler.PerSecond(sharedRate), 1, redis.FailLocal(instances)))
	return must(redis.NewShaper(pace, shaper.WithQueue(1<<16))).Wait
}

func shareRedisRate(client *goredis.Client) func(context.Context) error {
	limiter := redis_rate.NewLimiter(client)
	limit := redis_rate.Limit{Rate: sharedRate, Burst: 1, Period: time.Second}
	return func(ctx context.Context) error {
		for {
			res, err := limiter.Allow(ctx, "benchmark", limit)
			if err != nil || res.Allowed > 0 {
				return err
			}
			select {
			case <-time.After(res.RetryAfter):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
}

// onServer starts a server and the instances of a subject for a measurement. Without a
// server there is nothing to measure, and the figures say so by being absent.
func onServer(measure func([]func(context.Context) error, *redisServer, scale) (sample, error)) func(subject, scale) (sample, error) {
	return func(s subject, scale scale) (sample, error) {
		server, err := startRedis()
		if errors.Is(err, errNoRedis) {
			return sample{}, nil
		}
		if err != nil {
			return nil, err
		}
		defer server.stop()
		var waits []func(context.Context) error
		for range instances {
			waits = append(waits, s.share(goredis.NewClient(&goredis.Options{Addr: server.addr})))
		}
		return measure(waits, server, scale)
	}
}

func measureCrowded(waits []func(context.Context) error, server *redisServer, scale scale) (sample, error) {
	var left atomic.Int64
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	for _, wait := range waits {
		for range callersEach {
			all.Go(func() {
				for wait(ctx) == nil {
					left.Add(1)
				}
			})
		}
	}
	defer all.Wait()
	defer cancel()
	time.Sleep(5 * scale.settle)

	before, err := server.score()
	if err != nil {
		return nil, err
	}
	n, u := left.Load(), startUsage()
	time.Sleep(scale.blocked)
	n = left.Load() - n
	u.stop()
	after, err := server.score()
	if err != nil {
		return nil, err
	}
	if n == 0 {
		return nil, fmt.Errorf("no call left within %v", scale.blocked)
	}
	return sample{
		{"steps/s", float64(after.scripts-before.scripts) / u.elapsed.Seconds()},
		{"calls/s", float64(n) / u.elapsed.Seconds()},
		{"cpu-us/call", micros(u.cpu) / float64(n)},
		{"server-cpu-us/call", micros(after.cpu-before.cpu) / float64(n)},
	}, nil
}

func measureSparse(waits []func(context.Context) error, _ *redisServer, scale scale) (sample, error) {
	var took []time.Duration
	for end := time.Now().Add(scale.blocked); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		began := time.Now()
		if err := waits[len(took)%instances](context.Background()); err != nil {
			return nil, err
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	return sample{
		{"wait-p50-us", micros(took[len(took)/2])},
		{"wait-p99-us", micros(took[len(took)*99/100])},
	}, nil
}
