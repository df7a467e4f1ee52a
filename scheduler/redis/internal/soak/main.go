// Command soak lets several processes' worth of schedules share a limit for as long as
// it is told, while their Redis is stopped, killed, flushed, cut off and failed over at
// random. It ends with an error if one of them wedges, if more leaves than may, or if
// goroutines pile up.
//
//	go run ./scheduler/redis/internal/soak -seed 1 -for 10m
//
// It starts servers of its own and needs redis-server or valkey-server in the PATH.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"time"
)

func main() {
	seed := flag.Uint64("seed", 1, "of the events")
	length := flag.Duration("for", time.Minute, "how long")
	processes := flag.Int("processes", 4, "that share the limit")
	verbose := flag.Bool("v", false, "print each event")
	flag.Parse()
	log.SetFlags(log.Ltime | log.Lmicroseconds)
	trace := io.Discard
	if *verbose {
		trace = os.Stderr
	}
	if err := soak(context.Background(), *seed, *length, *processes, log.New(trace, "", log.Ltime|log.Lmicroseconds)); err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
}
