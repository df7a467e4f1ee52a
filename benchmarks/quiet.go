package main

import (
	"fmt"
	"math"
	"os"
	"strings"
	"time"
)

const (
	quiet = 0.10                   // a machine is quiet if no more of its CPUs is busy
	look  = 200 * time.Millisecond // how long to look
)

// awaitQuiet waits for a quiet machine, up to patience.
func awaitQuiet(patience time.Duration) {
	for began := time.Now(); time.Since(began) < patience; {
		if busy := busyShare(look); !(busy > quiet) {
			return
		}
	}
}

// busyShare returns which share of the CPUs is busy during d, or NaN if the system
// does not tell.
func busyShare(d time.Duration) float64 {
	busyBefore, allBefore := ticks()
	time.Sleep(d)
	busy, all := ticks()
	if all == allBefore {
		return math.NaN()
	}
	return (busy - busyBefore) / (all - allBefore)
}

// A bystander tells how busy others kept the CPUs while a process of ours ran.
type bystander struct{ busy, all float64 }

func watch() bystander {
	busy, all := ticks()
	return bystander{busy, all}
}

// share returns which share of the CPUs was busy since watch, without what the process
// itself used; NaN if the system does not tell. The kernel counts busy ticks by looking
// now and then, so some percent mean nothing.
func (b bystander) share(own time.Duration) float64 {
	const tick = 10 * time.Millisecond // USER_HZ is 100 on all systems that Go runs on
	busy, all := ticks()
	if all == b.all {
		return math.NaN()
	}
	return max(0, busy-b.busy-float64(own)/float64(tick)) / (all - b.all)
}

// ticks returns how long the CPUs of the machine have been busy, and all of it.
func ticks() (busy, all float64) {
	stat, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, 0
	}
	return parseTicks(string(stat))
}

// parseTicks reads the first line of /proc/stat: user, nice, system, idle, iowait, irq,
// softirq and steal. Time stolen by other guests counts as busy.
func parseTicks(stat string) (busy, all float64) {
	var user, nice, system, idle, iowait, irq, softirq, steal float64
	line, _, _ := strings.Cut(stat, "\n")
	if _, err := fmt.Sscan(strings.TrimPrefix(line, "cpu"), &user, &nice, &system, &idle, &iowait, &irq, &softirq, &steal); err != nil {
		return 0, 0
	}
	busy = user + nice + system + irq + softirq + steal
	return busy, busy + idle + iowait
}
