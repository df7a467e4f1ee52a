package shaper

import (
	"sync"

	"github.com/sluice-go/sluice/scheduler"
)

// A class is what keys of the same rate have in common.
type class struct {
	rate  scheduler.Rate
	fresh *scheduler.GCRA // that has let nothing leave
	ticks scheduler.Ticks
	exact bool // in ticks; otherwise a key keeps a Shaper for as long as it owes anything
}

func (c *config) newClass(r scheduler.Rate) (*class, error) {
	pacer, err := c.pacer(r)
	if err != nil {
		return nil, err
	}
	ticks, exact := pacer.Ticks()
	return &class{r, pacer, ticks, exact}, nil
}

// pacer returns a schedule that has let nothing leave.
func (c *class) pacer() *scheduler.GCRA {
	g := *c.fresh
	return &g
}

// classes remembers those of a Group, so that keys of one rate share one. It is bounded
// by being forgotten: then new keys get a class of their own, until that is shared.
type classes struct {
	mu     sync.Mutex
	byRate map[scheduler.Rate]*class
}

const maxClasses = 1024

func (cs *classes) get(r scheduler.Rate, c *config) (*class, error) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if known := cs.byRate[r]; known != nil {
		return known, nil
	}
	made, err := c.newClass(r)
	if err != nil {
		return nil, err
	}
	if cs.byRate == nil || len(cs.byRate) == maxClasses {
		cs.byRate = make(map[scheduler.Rate]*class)
	}
	cs.byRate[r] = made
	return made, nil
}
