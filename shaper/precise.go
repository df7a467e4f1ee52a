package shaper

import (
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice/shaper/internal/precise"
)

// punctual is the alarm of [WithPreciseTiming]. It fires on the goroutine that all
// Shapers of the process share, which then wakes those who leave.
type punctual struct {
	alarm *precise.Alarm
	grain time.Duration // from one firing to the next, at least
	epoch time.Time
	fired atomic.Int64 // when it fired last, since the epoch
}

func newPunctual(grain time.Duration, fire func()) *punctual {
	p := &punctual{grain: grain, epoch: time.Now()}
	p.fired.Store(int64(-grain))
	p.alarm = precise.New(func() {
		if p.grain > 0 {
			p.fired.Store(int64(time.Since(p.epoch)))
		}
		fire()
	})
	return p
}

func (p *punctual) set(_ *call, wait time.Duration) {
	if p.grain > 0 {
		since := time.Since(p.epoch) - time.Duration(p.fired.Load())
		wait = max(wait, p.grain-since)
	}
	p.alarm.Set(wait)
}

func (p *punctual) forget(*call) {}

func (p *punctual) stop() { p.alarm.Stop() }
