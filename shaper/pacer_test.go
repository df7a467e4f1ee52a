package shaper_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
)

// A pacer is a Shaper, or a key of a Group, which must be like one.
type pacer interface {
	WaitN(ctx context.Context, cost int) error
	Acquire(ctx context.Context, cost int) error
	Release()
	AllowN(cost int) bool
	Delay() time.Duration
	SetRate(r scheduler.Rate) error
	Scale(num, den int64) error
	Pause()
	Resume()
	HoldUntil(t time.Time)
	Charge(cost int)
}

// oneKey is a key of a Group.
type oneKey struct {
	t testing.TB
	g *shaper.Group[string]
}

func newKey(t testing.TB, r scheduler.Rate, opts ...shaper.Option) oneKey {
	return oneKey{t, newGroup[string](t, r, opts...)}
}

func (k oneKey) WaitN(ctx context.Context, cost int) error   { return k.g.WaitN(ctx, "k", cost) }
func (k oneKey) Acquire(ctx context.Context, cost int) error { return k.g.Acquire(ctx, "k", cost) }
func (k oneKey) Release()                                    { k.g.Release("k") }
func (k oneKey) AllowN(cost int) bool                        { return k.g.AllowN("k", cost) }
func (k oneKey) Delay() time.Duration                        { return k.g.Delay("k") }
func (k oneKey) SetRate(r scheduler.Rate) error              { return k.g.SetRate("k", r) }
func (k oneKey) Scale(num, den int64) error                  { return k.g.Scale("k", num, den) }
func (k oneKey) Pause()                                      { assert.NoError(k.t, k.g.Pause("k")) }
func (k oneKey) Resume()                                     { k.g.Resume("k") }
func (k oneKey) HoldUntil(t time.Time)                       { assert.NoError(k.t, k.g.HoldUntil("k", t)) }
func (k oneKey) Charge(cost int)                             { assert.NoError(k.t, k.g.Charge("k", cost)) }
