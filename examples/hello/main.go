// Hello paces three calls at ten per second. It is the program that begins the README.
//
//	go run ./examples/hello
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
)

func main() {
	ctx := context.Background()
	s, err := shaper.New(scheduler.PerSecond(10))
	if err != nil {
		log.Fatal(err)
	}
	for _, message := range []string{"one", "two", "three"} {
		if err := s.Wait(ctx); err != nil {
			log.Fatal(err) // not sent, and no slot used
		}
		fmt.Println("send", message)
	}
}
