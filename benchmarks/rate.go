package main

import "time"

// rate is an interval between calls. All rates that are measured have one in whole
// nanoseconds, so that no library has to round.
type rate time.Duration

func perSecond(n int) rate { return rate(int(time.Second) / n) }

// standstill is so slow that no call leaves while something else is measured, and fast
// enough for 100,000 calls to wait within the range of a time.Duration.
const standstill = rate(time.Minute)

func (r rate) interval() time.Duration { return time.Duration(r) }

func (r rate) hertz() float64 { return 1 / time.Duration(r).Seconds() }
