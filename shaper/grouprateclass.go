package shaper

import (
	"sync"

	"github.com/sluice-go/sluice/scheduler"
)

// A rateClass is what keys of the same rate have in common.
type rateClass struct {
	rate  scheduler.Rate
	fresh *scheduler.GCRA // that has let nothing leave
	ticks scheduler.Ticks
	exact bool // in ticks; otherwise a key keeps a Shaper for as long as it owes anything
	terms *terms
}

func (c *config) newClass(r scheduler.Rate) (*rateClass, error) {
	pacer, err := c.pacer(r)
	if err != nil {
		return nil, err
	}
	ticks, exact := pacer.Ticks()
	terms := newTerms(pacer, c.maxInFlight)
	terms.shared = true
	return &rateClass{r, pacer, ticks, exact, terms}, nil
}

// pacer returns a schedule that has let nothing leave.
func (c *rateClass) pacer() *scheduler.GCRA {
	g := *c.fresh
	return &g
}

// rateClasses remembers those of a Group, so that keys of one rate share one. It is bounded
// by being forgotten: then new keys get a class of their own, until that is shared.
type rateClasses struct {
	mu     sync.Mutex
	byRate map[scheduler.Rate]*rateClass
}

const maxRateClasses = 1024

func (cs *rateClasses) get(r scheduler.Rate, c *config) (*rateClass, error) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if known := cs.byRate[r]; known != nil {
		return known, nil
	}
	made, err := c.newClass(r)
	if err != nil {
		return nil, err
	}
	if cs.byRate == nil || len(cs.byRate) == maxRateClasses {
		cs.byRate = make(map[scheduler.Rate]*rateClass)
	}
	cs.byRate[r] = made
	return made, nil
}
