package main

import (
	"context"
	"fmt"
	"log"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
)

func main() {
	s, err := shaper.New(scheduler.PerSecond(10))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("left:", s.Wait(context.Background()))
}
