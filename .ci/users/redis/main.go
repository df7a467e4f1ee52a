package main

import (
	"context"
	"fmt"
	"log"

	goredis "github.com/redis/go-redis/v9"
	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/scheduler/redis"
)

func main() {
	client := goredis.NewClient(&goredis.Options{Addr: "127.0.0.1:1"}) // no server: the local rate counts
	limit, err := redis.New(client, "partner", scheduler.PerSecond(10), 1, redis.FailLocal(1))
	if err != nil {
		log.Fatal(err)
	}
	line, err := redis.NewShaper(limit)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("left:", line.Wait(context.Background()))
}
