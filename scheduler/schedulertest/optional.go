package schedulertest

import (
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/sluice-go/sluice/scheduler"
)

func (c Config) rateIsKept(t testing.TB) {
	const row = 20
	c.histories(func(rng *rand.Rand, h, _ history) {
		r := h.s.(scheduler.Rated).Rate()
		if err := r.Validate(); err != nil {
			t.Errorf("Rate: %v", err)
			return
		}
		if !h.spend() {
			return // it saves up more than can be spent here
		}
		start := h.now
		for range row {
			h.leaveSavingNothing()
		}
		if took := h.now.Sub(start); took < r.For(row)-1 {
			t.Errorf("at a rate of %v, %d units in a row take %v", r, row, took)
		}
	})
}

// spend lets units leave until one has to wait, and that one, too. It returns false if
// none had to.
func (h *history) spend() bool {
	for range 10_000 {
		before := h.now
		h.leaveSavingNothing()
		if h.now.After(before) {
			return true
		}
	}
	return false
}

// leaveSavingNothing lets a unit leave. What has been saved up while another limit held
// it back is given up.
func (h *history) leaveSavingNothing() {
	due := h.s.Next(h.now, 0, 1)
	if s, ok := h.s.(scheduler.Forfeiter); ok {
		s.Forfeit(due, 1)
	}
	h.s.Commit(due, due, 1)
	h.now = due
}

func (c Config) rateCanBeSet(t testing.TB) {
	c.histories(func(rng *rand.Rand, changed, twin history) {
		s := changed.s.(scheduler.RateSetter)
		if err := s.SetRate(changed.now, scheduler.Rate{}); err == nil {
			t.Errorf("SetRate accepts the zero Rate")
		}
		at := changed.now.Add(c.gap(rng))
		n := c.cost(rng, changed.s)
		want := twin.s.Next(at, 0, n)
		if got := changed.s.Next(at, 0, n); !got.Equal(want) {
			t.Errorf("a rate that was refused lets %d units leave %v later", n, got.Sub(want))
		}
		if _, ok := changed.s.(scheduler.Rated); ok {
			checkRateChange(t, rng, changed, at, n, want)
		}
	})
}

// checkRateChange sets a share of the rate. want is when n units may leave without that.
func checkRateChange(t testing.TB, rng *rand.Rand, changed history, at time.Time, n int64, want time.Time) {
	rated := changed.s.(scheduler.Rated)
	num, den := 1+rng.Int64N(3), 1+rng.Int64N(3)
	r, err := rated.Rate().Scale(num, den)
	if err != nil || changed.s.(scheduler.RateSetter).SetRate(changed.now, r) != nil {
		return // out of range
	}
	if rated.Rate() != r {
		t.Errorf("the rate is set to %v and told as %v", r, rated.Rate())
	}
	// Rounding may make it 1 ns later.
	got := changed.s.Next(at, 0, n)
	if num >= den && got.After(want.Add(1)) {
		t.Errorf("at %d/%d of the rate %d units leave %v later", num, den, n, got.Sub(want))
	}
	if num <= den && got.Before(want) {
		t.Errorf("at %d/%d of the rate %d units leave %v earlier", num, den, n, want.Sub(got))
	}
}

func (c Config) forfeitGivesUpWhatIsSaved(t testing.TB) {
	c.histories(func(rng *rand.Rand, h, twin history) {
		h.now = h.now.Add(c.gap(rng))
		keep := rng.Int64N(6) - 1
		ahead, n := rng.Int64N(10), c.cost(rng, h.s)
		before := h.s.Next(h.now, ahead, n)
		foreseen := h.s.(scheduler.Forfeiter).Forfeited(h.now, keep).Next(h.now, ahead, n)
		if got := h.s.Next(h.now, ahead, n); !got.Equal(before) {
			t.Errorf("Forfeited changes the schedule: Next(t, %d, %d) by %v", ahead, n, got.Sub(before))
		}
		twin.s.(scheduler.Forfeiter).Forfeit(h.now, keep)
		after := twin.s.Next(h.now, ahead, n)
		if !after.Equal(foreseen) {
			t.Errorf("with %d kept, Next(t, %d, %d) lies %v after what Forfeited told", keep, ahead, n, after.Sub(foreseen))
		}
		if after.Before(before) {
			t.Errorf("with %d kept, Next(t, %d, %d) is %v earlier", keep, ahead, n, before.Sub(after))
		}
		// Only a schedule with an interval is sure to save up.
		if r, ok := twin.s.(scheduler.Rated); !ok || r.Rate() == scheduler.Unlimited {
			return
		}
		keep = max(keep, 1)
		for range keep {
			twin.s.Commit(h.now, h.now, 1)
		}
		if !twin.s.Next(h.now, 0, 1).After(h.now) {
			t.Errorf("with %d kept, one more leaves at once", keep)
		}
	})
}

func (c Config) lateDeparturesGainNothing(t testing.TB) {
	c.histories(func(rng *rand.Rand, late, punctual history) {
		j := late.s.(scheduler.Tolerant).Tolerance()
		if j < 0 {
			t.Errorf("Tolerance is %v", j)
			return
		}
		n := c.cost(rng, late.s)
		due := late.s.Next(late.now, 0, n)
		left := late.s.Next(due.Add(time.Duration(rng.Int64N(int64(min(j, c.Step))+1))+c.gap(rng)), 0, n)
		late.s.Commit(due, left, n)
		punctual.s.Commit(due, due, n)
		at := left.Add(c.gap(rng))
		if got, want := late.s.Next(at, 0, n), punctual.s.Next(at, 0, n); got.Before(want) {
			t.Errorf("after a departure that was %v late %d units leave %v earlier", left.Sub(due), n, want.Sub(got))
		}
	})
}

func (c Config) notifierDoesNotCallBack(t testing.TB) {
	s := c.New()
	s.(scheduler.Notifier).Notify(func() {
		if calledByTheSuite() {
			t.Errorf("a method of the schedule calls the function that Notify gave it")
		}
	})
	h := c.pastOf(s, rand.New(rand.NewPCG(c.Seed, 0)))
	h.s.Next(h.now, 5, 1)
	h.s.MaxCost()
}

// calledByTheSuite reports whether the caller of its caller was called, by whatever way,
// by a function of this package: on a goroutine of the schedule it is not.
func calledByTheSuite() bool {
	pcs := make([]uintptr, 64)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs)])
	for {
		frame, more := frames.Next()
		if strings.Contains(frame.Function, "/schedulertest.") {
			return true
		}
		if !more {
			return false
		}
	}
}

func (c Config) holdMakesNothingEarlier(t testing.TB) {
	c.histories(func(rng *rand.Rand, held, twin history) {
		for _, until := range []time.Time{{}, held.now.Add(-c.Step), held.now.Add(c.gap(rng)), time.Unix(1<<40, 0)} {
			held.s.(scheduler.Holder).Hold(until)
			n := c.cost(rng, held.s)
			at := held.now.Add(c.gap(rng))
			if got, want := held.s.Next(at, 0, n), twin.s.Next(at, 0, n); got.Before(want) {
				t.Errorf("a hold until %v lets %d units leave %v earlier", until, n, want.Sub(got))
			}
		}
	})
}
