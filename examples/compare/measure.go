package main

import (
	"fmt"
	"strings"
	"time"
)

// A measure is what a partner would see of a run, and what its callers would feel.
type measure struct {
	passed, refused int
	units           int64

	worst   int64         // most units in a half-open window
	worstAt time.Duration // when that window begins

	wait time.Duration // the longest one
	gap  time.Duration // the smallest one, if two or more passed
	last time.Duration // departure, if any
}

// measured looks at nothing but the departures, which are in order.
func measured(outcomes []outcome, window time.Duration) measure {
	var m measure
	var left []outcome
	for _, o := range outcomes {
		if o.refused {
			m.refused++
			continue
		}
		if m.passed > 0 && (m.passed == 1 || o.left-m.last < m.gap) {
			m.gap = o.left - m.last
		}
		m.passed++
		m.units += o.cost
		m.wait = max(m.wait, o.left-o.at)
		m.last = o.left
		left = append(left, o)
	}
	m.worst, m.worstAt = worstWindow(left, window)
	return m
}

// worstWindow returns the most units in any half-open window, and the first such
// window that begins with a departure: no other can have more.
func worstWindow(left []outcome, window time.Duration) (units int64, at time.Duration) {
	var inside int64
	end := 0
	for _, first := range left {
		for ; end < len(left) && left[end].left-first.left < window; end++ {
			inside += left[end].cost
		}
		if inside > units {
			units, at = inside, first.left
		}
		inside -= first.cost
	}
	return units, at
}

// excess returns how many times the limit the worst window has, or nothing if it
// keeps the limit.
func (m measure) excess(limit int64) string {
	times := float64(m.worst) / float64(limit)
	switch {
	case m.worst <= limit:
		return ""
	case times < 1.05:
		return ">1.0x" // 1.0x would be within it
	case times >= 100:
		return fmt.Sprintf("%.0fx", times)
	}
	return fmt.Sprintf("%.1fx", times)
}

// short writes a duration as precisely as is of interest where windows are that long:
// to about a ten-thousandth.
func short(d, window time.Duration) string {
	unit := time.Nanosecond
	for unit*10 <= window/10_000 {
		unit *= 10
	}
	return plain(d.Round(unit))
}

// plain writes a duration without the zeros of 24h0m0s.
func plain(d time.Duration) string {
	text := d.String()
	if short, ok := strings.CutSuffix(text, "m0s"); ok {
		text = short + "m"
	}
	if short, ok := strings.CutSuffix(text, "h0m"); ok {
		text = short + "h"
	}
	return text
}
