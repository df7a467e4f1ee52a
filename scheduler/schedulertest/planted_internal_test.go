package schedulertest

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/sluice-go/sluice/scheduler"
)

// A recorder notes whether a check fails, in place of a test.
type recorder struct {
	testing.TB // nil: all that a check uses is below
	said       []string
}

var errStopped = errors.New("the check has ended")

func (r *recorder) Helper()                      {}
func (r *recorder) Failed() bool                 { return len(r.said) > 0 }
func (r *recorder) Errorf(f string, args ...any) { r.said = append(r.said, fmt.Sprintf(f, args...)) }
func (r *recorder) Fatalf(f string, args ...any) {
	r.Errorf(f, args...)
	panic(errStopped)
}

// broken returns the promises that the schedule of c breaks.
func broken(c Config) []string {
	var names []string
	for _, p := range promises {
		r := &recorder{}
		if p.made == nil || p.made(c) {
			func() {
				defer func() {
					if said := recover(); said != nil && said != any(errStopped) {
						panic(said)
					}
				}()
				p.check(c, r)
			}()
		}
		if r.Failed() {
			names = append(names, p.name)
		}
	}
	return names
}

// hours is open in the first 300 ms of each second, and can be planted with faults.
type hours struct {
	seen time.Time

	early    bool // it names the instant before it opens
	skips    bool // it misses an opening
	answers  bool // it opens for whatever has been told to wait
	pessimal bool // it thinks that units ahead take a second each
	forgets  bool // it goes back with a stale clock
	told     map[time.Time]bool
}

func (h *hours) Next(t time.Time, ahead, n int64) time.Time {
	if !h.forgets && t.Before(h.seen) {
		t = h.seen
	}
	if h.pessimal && ahead > 0 {
		t = t.Add(time.Duration(min(ahead, 1000)) * time.Second)
	}
	start := t.Truncate(time.Second)
	open := t.Sub(start) < 300*time.Millisecond
	switch {
	case open || h.told[t]:
		return t
	case h.early:
		return later(t, start.Add(time.Second-1))
	case h.skips && start.Unix()%3 == 0:
		return start.Add(2 * time.Second)
	case h.answers:
		h.told[t.Add(10*time.Millisecond)] = true
		return t.Add(10 * time.Millisecond)
	}
	return start.Add(time.Second)
}

func (h *hours) Commit(due, left time.Time, n int64) { h.seen = later(h.seen, left) }
func (h *hours) MaxCost() int64                      { return 1<<63 - 1 }

func opened(_ []Departure, at time.Time, _ int64) bool {
	return at.Sub(at.Truncate(time.Second)) < 300*time.Millisecond
}

// A naive All asks each limit once, as if what may leave at one instant may leave later.
type naiveAll []scheduler.Scheduler

func (a naiveAll) Next(t time.Time, ahead, n int64) time.Time {
	next := t
	for _, limit := range a {
		next = later(next, limit.Next(next, ahead, n))
	}
	return next
}

func (a naiveAll) Commit(due, left time.Time, n int64) {
	for _, limit := range a {
		limit.Commit(due, left, n)
	}
}

func (a naiveAll) MaxCost() int64 { return a[0].MaxCost() }

func gcra() *scheduler.GCRA {
	g, err := scheduler.NewGCRA(scheduler.PerSecond(10), 3)
	if err != nil {
		panic(err)
	}
	return g
}

// Each of these is a GCRA that breaks the contract of one optional interface.
type (
	fastRated     struct{ *scheduler.GCRA }
	slackSetter   struct{ *scheduler.GCRA }
	zeroSetter    struct{ *scheduler.GCRA }
	noForfeit     struct{ *scheduler.GCRA }
	liveForfeited struct{ *scheduler.GCRA }
	negative      struct{ *scheduler.GCRA }
	eager         struct{ *scheduler.GCRA }
	caller        struct {
		*scheduler.GCRA
		again func()
	}
	releaser struct{ *scheduler.GCRA }
	hasty    struct{ *scheduler.GCRA }
	giver    struct {
		*scheduler.GCRA
		costs map[uint64]int64
	}
	twice struct {
		*scheduler.GCRA
		costs map[uint64]int64
	}
)

// giver takes what comes back off what is owed.
func (s giver) CommitUnsettled(id uint64, due, left time.Time, n int64) {
	s.Commit(due, left, n)
	s.costs[id] = n
}

func (s giver) Settle(id uint64, actual int64) error {
	n, ok := s.costs[id]
	switch {
	case actual < 0:
		return errors.New("negative")
	case !ok:
		return scheduler.ErrFinal
	}
	delete(s.costs, id)
	s.Shift(time.Duration(actual-n) * 100 * time.Millisecond)
	return nil
}

func (s giver) Unsettled() int { return len(s.costs) }

// twice takes what was settled once more.
func (s twice) CommitUnsettled(id uint64, due, left time.Time, n int64) {
	s.GCRA.CommitUnsettled(id, due, left, n)
	s.costs[id] = n
}

func (s twice) Settle(id uint64, actual int64) error {
	if err := s.GCRA.Settle(id, actual); err != nil && s.costs[id] == 0 {
		return err
	}
	return nil
}

func (fastRated) Rate() scheduler.Rate { return scheduler.PerSecond(5) }

func (s slackSetter) SetRate(now time.Time, r scheduler.Rate) error {
	err := s.GCRA.SetRate(now, r)
	if err == nil {
		*s.GCRA = *gcra()
	}
	return err
}

func (s zeroSetter) SetRate(now time.Time, r scheduler.Rate) error {
	if r.Validate() != nil {
		return nil
	}
	return s.GCRA.SetRate(now, r)
}

func (noForfeit) Forfeit(time.Time, int64) {}
func (s noForfeit) Forfeited(time.Time, int64) scheduler.Scheduler {
	return s
}

func (s liveForfeited) Forfeited(t time.Time, keep int64) scheduler.Scheduler {
	s.Forfeit(t, keep)
	return s.GCRA
}

func (negative) Tolerance() time.Duration { return -1 }

func (e eager) Commit(due, left time.Time, n int64) {
	if left.After(due) {
		n = 0 // a late one is free
	}
	e.GCRA.Commit(due, left, n)
}

func (c *caller) Notify(again func()) { c.again = again }
func (c *caller) Commit(due, left time.Time, n int64) {
	c.GCRA.Commit(due, left, n)
	if c.again != nil {
		c.again()
	}
}

func (h hasty) FreshAt() (time.Time, bool) { return h.TAT().Add(-h.Rate().Interval()), true }

func (r releaser) Hold(time.Time) { *r.GCRA = *gcra() }

func TestTheSuiteFindsWhatIsPlanted(t *testing.T) {
	hoursOf := func(h hours) func() scheduler.Scheduler {
		return func() scheduler.Scheduler {
			other := h
			other.told = map[time.Time]bool{}
			return &other
		}
	}
	for name, tt := range map[string]struct {
		build    func() scheduler.Scheduler
		conforms func([]Departure, time.Time, int64) bool
		want     string // one of the promises that it breaks; none: it keeps all
	}{
		"closed times":          {hoursOf(hours{}), opened, ""},
		"leaves while closed":   {hoursOf(hours{early: true}), opened, "NextIsWhatTheDefinitionAllows"},
		"misses an opening":     {hoursOf(hours{skips: true}), opened, "NextIsWhatTheDefinitionAllows"},
		"opens when asked":      {hoursOf(hours{answers: true}), opened, "NextIsWhatTheDefinitionAllows"},
		"the same, not defined": {hoursOf(hours{answers: true}), nil, "NextIsTheEarliest"},
		"too late ahead":        {hoursOf(hours{pessimal: true}), opened, "NextAheadMatchesDepartures"},
		"stale clocks":          {hoursOf(hours{forgets: true}), opened, "StaleTimeMintsNothing"},
		"All that asks once, closed first": {func() scheduler.Scheduler { return naiveAll{&hours{}, gcra()} },
			opened, "NextIsWhatTheDefinitionAllows"},
		"All that asks once, closed first, undefined": {func() scheduler.Scheduler { return naiveAll{&hours{}, gcra()} },
			nil, "NextIsTheEarliest"},
		"All":                  {func() scheduler.Scheduler { return scheduler.All(&hours{}, gcra()) }, nil, ""},
		"GCRA":                 {func() scheduler.Scheduler { return gcra() }, nil, ""},
		"rate":                 {func() scheduler.Scheduler { return fastRated{gcra()} }, nil, "Rated"},
		"set rate forgets":     {func() scheduler.Scheduler { return slackSetter{gcra()} }, nil, "RateSetter"},
		"set rate takes all":   {func() scheduler.Scheduler { return zeroSetter{gcra()} }, nil, "RateSetter"},
		"forfeits nothing":     {func() scheduler.Scheduler { return noForfeit{gcra()} }, nil, "Forfeiter"},
		"Forfeited is Forfeit": {func() scheduler.Scheduler { return liveForfeited{gcra()} }, nil, "Forfeiter"},
		"negative tolerance":   {func() scheduler.Scheduler { return negative{gcra()} }, nil, "Tolerant"},
		"late ones are free":   {func() scheduler.Scheduler { return eager{gcra()} }, nil, "Tolerant"},
		"calls the line back":  {func() scheduler.Scheduler { return &caller{GCRA: gcra()} }, nil, "Notifier"},
		"forgets too soon":     {func() scheduler.Scheduler { return hasty{gcra()} }, nil, "Forgettable"},
		"gives back":           {func() scheduler.Scheduler { return giver{gcra(), map[uint64]int64{}} }, nil, "Settler"},
		"settles twice":        {func() scheduler.Scheduler { return twice{gcra(), map[uint64]int64{}} }, nil, "Settler"},
		"a hold forgets":       {func() scheduler.Scheduler { return releaser{gcra()} }, nil, "Holder"},
	} {
		t.Run(name, func(t *testing.T) {
			got := broken(Config{
				New: tt.build, Conforms: tt.conforms, Step: 100 * time.Millisecond,
				Origin: time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC),
			})
			if tt.want == "" && len(got) > 0 || tt.want != "" && !slices.Contains(got, tt.want) {
				t.Errorf("it breaks %q, want %q", got, tt.want)
			}
		})
	}
}
