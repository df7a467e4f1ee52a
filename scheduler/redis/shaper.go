package redis

import (
	"errors"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
)

// A Shared is a schedule of this package: a [*Schedule] or a [*Quota].
type Shared interface {
	scheduler.Scheduler
	shared()
}

// NewShaper returns a Shaper that lets calls leave when the schedule says so, which it owns from
// then on and closes with itself. It is [shaper.NewFrom]; see there for the options and errors.
func NewShaper(s Shared, opts ...shaper.Option) (*shaper.Shaper, error) {
	if s == nil {
		return nil, errors.New("redis: schedule nil: must be a Schedule or a Quota")
	}
	return shaper.NewFrom(s, opts...)
}

// NewGroup returns a Group in which each key has the rate and burst, over all processes that use
// the same prefix: a partner's host, an API credential, a sender. The limit of key "k" of the
// prefix "p" is that of the [Schedule] with the name "p/k", if neither has a slash.
//
// It is a [shaper.NewGroup] with a Schedule for each key, and all that such a Group does it does:
// holds, charges, weights, [shaper.Under]. A rate that is set for a key, or scaled, is that of its
// own process, beside the one that is shared. All state is in Redis, where that of an idle key
// expires by itself; a process has in memory what it uses. All keys share one view of whether
// Redis is away, and steps of many of them go together.
//
// It refuses what [New] refuses, an empty prefix for a name, and wrong options of [WithShaper].
func NewGroup[K ~string](client goredis.UniversalClient, prefix string, r scheduler.Rate, burst int64, p Policy, opts ...Option) (*shaper.Group[K], error) {
	c, err := configure(opts)
	if err != nil {
		return nil, err
	}
	if prefix == "" {
		return nil, errNoName
	}
	l, err := newLink(client, c)
	if err != nil {
		return nil, err
	}
	return newGroup[K](l, prefix, r, burst, p, c)
}

func newGroup[K ~string](l *link, prefix string, r scheduler.Rate, burst int64, p Policy, c *config) (*shaper.Group[K], error) {
	trial, err := newSchedule(l, keyOfGroup(prefix, ""), r, burst, p, c)
	if err != nil {
		return nil, err
	}
	// The rate of the process itself is there to be scaled. Slots that are shared come less evenly
	// than it would let them, by as much as replies are under way, and it must not hold those back.
	slack := trial.pace.within(c.horizon+trial.tolerance+time.Second) + 1
	own := []shaper.Option{shaper.WithBurst(int(min(burst+slack, trial.most)))}
	own = append(own, c.shaper...)
	own = append(own, shaper.WithSchedules(func(key K) (scheduler.Scheduler, error) {
		return newSchedule(l, keyOfGroup(prefix, string(key)), r, burst, p, c)
	}))
	return shaper.NewGroup[K](r, own...)
}
