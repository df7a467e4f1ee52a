package redis_test

import (
	"context"
	"log"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/scheduler/redis"
	"github.com/sluice-go/sluice/shaper"
)

// Up to four processes share 100 calls per second, and 10,000 per day.
func ExampleNew() {
	client := goredis.NewClient(&goredis.Options{Addr: "127.0.0.1:6379"})
	pace, err := redis.New(client, "partner", scheduler.PerSecond(100), 1, redis.FailLocal(4),
		redis.WithSharedHold(),
		redis.WithOnChange(func(s redis.State) { log.Printf("redis up: %v (%v)", s.Up, s.Err) }))
	if err != nil {
		log.Fatal(err)
	}
	perDay, err := redis.NewFixedWindow(client, "partner per day", 10_000, 24*time.Hour, redis.FailClosed())
	if err != nil {
		log.Fatal(err)
	}
	line, err := redis.NewShaper(pace, shaper.WithLimits(perDay))
	if err != nil {
		log.Fatal(err)
	}
	defer line.Close()
	if err := line.Wait(context.Background()); err != nil {
		log.Fatal(err) // not sent, and no slot used
	}
}

// Each sender has 10 messages per second, in whatever process.
func ExampleNewGroup() {
	type sender string
	client := goredis.NewClient(&goredis.Options{Addr: "127.0.0.1:6379"})
	senders, err := redis.NewGroup[sender](client, "senders", scheduler.PerSecond(10), 1, redis.FailLocal(4))
	if err != nil {
		log.Fatal(err)
	}
	if err := senders.Wait(context.Background(), "+15550100"); err != nil {
		log.Fatal(err)
	}
}
