package shaper

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluice-go/sluice/shaper/internal/pq"
)

// Under has the keys of a [Group] share the limits of an account, beside their own: a call
// leaves when the limits of its key and those of the account allow it, at the first instant
// at which both do, and takes nothing of either before. It is for [NewGroup] only.
//
// The calls of all keys stand in the account's line, with the calls of the account itself
// and of other Groups under it. A call that its own key holds back is in the way of no other
// key. Of the calls that their keys allow, the one goes next that came first, or by
// [WithClasses] or [WithWeights]; a key that was held or paused counts from when that ended. A call
// that is next is waited for, whatever it costs.
//
// The account bounds how many calls wait ([WithQueue]), and how long; bounds that the Group
// is given hold for each key besides. The room of the line is shared among the keys by
// weight, 1 by default: when it is full, the newest call of the least urgent class of the key
// that has the most room for its weight is refused with [ErrQueueFull], if the newcomer's key
// would have less for its weight; otherwise the newcomer is. So to be accepted is no promise
// of room.
//
// Where several keys have calls, a predicted wait counts those of the call's own key only: a
// call is refused at once if it could not make its deadline whatever the others do. One that
// was accepted may miss it.
//
// A hold, a pause, a rate or a bound of calls in flight may be the key's, set by the methods
// of the Group, or the account's, set by its own. [Group.Charge] charges both. Acquire takes a
// place at both. Closing the Group refuses the calls of its keys, and closing the account
// those of all.
//
// The Group lives by the account's clock and timing: [WithPreciseTiming] and another clock
// than the account's are an error, as is a closed account. Classes are those of the account
// if it has any; others are an error then.
func Under(account *Shaper) Option {
	return func(c *config) {
		c.once("under a Shaper", c.underSet)
		c.under, c.underSet = account, true
	}
}

// maxWeight bounds weights, so that the share of a single unit can be told.
const maxWeight = 1 << 20

// WithWeights gives the keys of a [Group] shares of the account that it is [Under], in
// proportion to what f returns for each, from 1 to 1,048,576. K is the type of the keys. It is
// for [NewGroup] only.
//
// While two keys have calls that their own limits allow, each leaves units in proportion to
// its weight, whatever the calls cost: a call leaves no later than the largest cost after the
// instant, in units of the account, at which an ideal sharing of a fluid would have finished
// it. That holds whatever comes, goes, is held, or is weighed or limited otherwise meanwhile;
// of what it means then:
//   - The fluid serves a call from when its key allows it. A call that becomes the next of its
//     key, as the one before it was cancelled or it is more urgent, goes on with what that was
//     served, and is finished no sooner than that would have been.
//   - Another weight counts from the call after the next one of the key.
//   - A hold of the account takes from the fluid what it takes from the account.
//   - A charge is served to its key before the key's calls. Units that are charged and that the
//     fluid has not served yet come on top of the largest cost.
//
// (Earliest eligible virtual deadline first, EEVDF; Stoica and Abdel-Wahab, TR-95-22; it is
// WF2Q+ with the virtual time of the fluid.) Virtual time is counted in parts of 2^-28 of a
// unit for a weight of 1, to which tags are rounded. A cost above 2^32 counts as so many units.
// The bound is in what the rate of the account allows: a wait for its places in flight, or for
// another schedule of it, comes on top. A key that has no calls saves nothing up, and
// one that its own limits hold back counts as such a key: near its own limit under a busy
// account it gets less than its own rate. The calls of the account itself, and the keys of
// Groups without weights, weigh 1 each. [WithClasses] orders the calls inside a key then.
//
// f is called without a lock, on the goroutine of a call, for each call. It must be safe for
// concurrent use. What it returns counts from that call on. Another weight is the error of
// the call that needed it. See [Group.SetWeight], too.
func WithWeights[K comparable](f func(key K) int) Option {
	return func(c *config) { c.weights = f }
}

// goUnder has the keys stand in the line of an account, if there is one.
func (g *Group[K]) goUnder() error {
	c := &g.config
	if !c.underSet {
		if g.weights != nil {
			return errors.New("shaper: weights by key: a share of what? It needs Under")
		}
		return nil
	}
	if c.under == nil {
		return errors.New("shaper: under nil: must be a Shaper")
	}
	c.under.made()
	account := &c.under.line
	account.lock()
	defer account.unlock()
	switch {
	case account.life.state != open:
		return fmt.Errorf("shaper: under a Shaper: %w", ErrClosed)
	case c.clockSet && !account.time.livesBy(c.clock):
		return errors.New("shaper: under a Shaper: its clock is another one")
	case c.timing:
		return errors.New("shaper: under a Shaper: precise timing is a matter of that")
	case c.unsettled != nil:
		return errors.New("shaper: under a Shaper: what may be unsettled is a matter of that")
	}
	switch {
	case c.classes == nil:
		c.rule = account.rule
	case account.rule.last > 0 && *c.rule != *account.rule:
		return fmt.Errorf("shaper: %d classes: the Shaper that the Group is under has %d of its own", *c.classes, account.rule.last+1)
	}
	g.account, g.time = account, account.time.timebase
	g.party = &party{bounds: c.bounds}
	if !c.queueSet {
		g.party.capacity = 0
	}
	if c.roomOfAll != nil {
		g.party.room = *c.roomOfAll
	}
	if c.ofAll != nil {
		g.party.places.most = int64(*c.ofAll)
		g.party.standing = pq.New(goesBefore, func(f *flow) *int32 { return &f.atStanding })
	}
	now := account.time.now()
	account.passLocked(now)
	if account.keys == nil {
		account.keys = newKeys()
		account.placeLocked(account.first, now, changed)
	}
	if g.weights != nil {
		account.shareOutLocked(now)
	}
	account.dispatchLocked(now)
	return nil
}

// SetWeight sets the weight of the key, from 1 to 1,048,576, in place of what the function of
// [WithWeights] says. It counts from the next call on. The key is remembered for good. Another
// weight, and a Group without weights, is an error that changes nothing.
func (g *Group[K]) SetWeight(key K, weight int) error {
	g.made()
	if g.weights == nil {
		return fmt.Errorf("shaper: weight %d: needs WithWeights", weight)
	}
	if err := checkWeight(weight); err != nil {
		return err
	}
	return g.change(key, func(f *flow) error {
		f.setWeight(int64(weight))
		return nil
	})
}

func checkWeight(weight int) error {
	if weight < 1 || weight > maxWeight {
		return fmt.Errorf("shaper: weight %d: must be from 1 to %d", weight, maxWeight)
	}
	return nil
}

func (f *flow) setWeight(weight int64) {
	l := f.lock()
	defer l.unlock()
	l.arriveLocked(l.time.since())
	f.weighted = false
	f.weighLocked(weight)
	f.weighted, f.kept = true, true
}

func (f *flow) weigh(weight int64) {
	if weight > 0 {
		l := f.lock()
		defer l.unlock()
		l.arriveLocked(l.time.since())
		f.weighLocked(weight)
	}
}

// weigh asks for the weight of the member's key. It calls the function of the user's, so no
// lock may be held.
func (m *member[K]) weigh(a *ask) error {
	weights := m.shard.group.weights
	if weights == nil {
		return nil
	}
	weight := weights(m.key)
	if err := checkWeight(weight); err != nil {
		return fmt.Errorf("%w (from the function for weights)", err)
	}
	a.weight = int64(weight)
	return nil
}

// wait is for a call of the member's key.
func (m *member[K]) wait(ctx context.Context, read time.Duration, a ask) error {
	if err := m.weigh(&a); err != nil {
		return m.shard.refuse(err, int(a.cost))
	}
	return m.flow.wait(ctx, ctx.Err(), read, a)
}

// delayOfNew returns what the first call of a key without limits of its own would wait.
func (l *line) delayOfNew(cost int64) time.Duration {
	l.lock()
	defer l.unlock()
	now := l.arriveLocked(l.time.since())
	return l.foresee(now, 0, cost, cost).Sub(now)
}
