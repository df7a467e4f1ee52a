package shaper

import (
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice/shaper/internal/precise"
)

// preciseAlarm is the alarm of [WithPreciseTiming]. It fires on the goroutine that all
// Shapers of the process share, which then wakes the callers whose calls leave.
type preciseAlarm struct {
	alarm *precise.Alarm
	grain time.Duration // from one firing to the next, at least
	epoch time.Time
	fired atomic.Int64 // when it fired last, since the epoch
}

func newPreciseAlarm(grain time.Duration, fire func()) *preciseAlarm {
	p := &preciseAlarm{grain: grain, epoch: time.Now()}
	p.fired.Store(int64(-grain))
	p.alarm = precise.New(func() {
		if p.grain > 0 {
			p.fired.Store(int64(time.Since(p.epoch)))
		}
		fire()
	})
	return p
}

func (p *preciseAlarm) set(_ *call, wait time.Duration) {
	if p.grain > 0 {
		since := time.Since(p.epoch) - time.Duration(p.fired.Load())
		wait = max(wait, p.grain-since)
	}
	p.alarm.Set(wait)
}

func (p *preciseAlarm) forget(*call) {}

func (p *preciseAlarm) stop() { p.alarm.Stop() }
