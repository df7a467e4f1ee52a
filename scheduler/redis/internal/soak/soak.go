package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"runtime"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/scheduler/redis"
)

const (
	perSecond = 100
	workers   = 10 // callers of each process
	calm      = 3 * time.Second
)

var rate = scheduler.PerSecond(perSecond)

type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

func soak(ctx context.Context, seed uint64, length time.Duration, processes int, trace *log.Logger) (err error) {
	goredis.SetLogger(silent{}) // it says of each broken connection that it is broken
	rng := rand.New(rand.NewPCG(seed, 0))
	world, err := newWorld(trace)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, world.close()) }()
	// What the clients have in their pools, and the operations under way.
	most := runtime.NumGoroutine() + processes*(workers+40)

	book := newLedger(processes)
	var sends sync.WaitGroup
	running, stop := context.WithCancel(ctx)
	var closers []io.Closer
	var schedules []*redis.Schedule
	for i := range processes {
		client := goredis.NewClient(&goredis.Options{Addr: "current", Dialer: world.dial})
		sched, err := redis.New(client, "soak", rate, 1, redis.FailLocal(processes))
		if err != nil {
			stop()
			return err
		}
		s, err := redis.NewShaper(sched)
		if err != nil {
			stop()
			return err
		}
		schedules = append(schedules, sched)
		closers = append(closers, s, client)
		for range workers {
			sends.Go(func() {
				for s.Wait(running) == nil {
					book.left(i)
				}
			})
		}
	}

	end := time.Now().Add(length)
	events := 0
	for err == nil && time.Now().Before(end) {
		// Now and then nothing happens for a while, so that all must be as if nothing had.
		pause := time.Duration(rng.Int64N(int64(2 * time.Second)))
		if rng.IntN(4) == 0 {
			pause = 2 * calm
		}
		time.Sleep(pause)
		began := time.Now()
		if err = world.happen(rng); err != nil {
			break
		}
		book.disturbed(began, time.Now())
		events++
		if err = book.check(); err != nil {
			break
		}
		if n := runtime.NumGoroutine(); n > most {
			err = fmt.Errorf("%d goroutines, more than %d", n, most)
		}
	}
	if err == nil {
		time.Sleep(2 * calm)
		err = book.check()
	}
	stop()
	sends.Wait()
	for _, sched := range schedules {
		fmt.Printf("%+v\n", sched.Stats())
	}
	for _, c := range closers {
		err = errors.Join(err, c.Close())
	}
	total, disturbed := book.totals()
	fmt.Printf("seed %d: %d events in %v, %d calls left (%d of them in calm times), %d goroutines at the most\n",
		seed, events, length, total, total-disturbed, most)
	return err
}
