package main

import "time"

// usage is what the process uses between start and stop.
type usage struct {
	began   time.Time
	elapsed time.Duration
	cpu     time.Duration // user and system
	allocs  uint64
}

func startUsage() *usage {
	return &usage{allocs: mallocs(), cpu: cpuTime(), began: time.Now()}
}

func (u *usage) stop() {
	u.elapsed = time.Since(u.began)
	u.cpu = cpuTime() - u.cpu
	u.allocs = mallocs() - u.allocs
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }
