package fair

import (
	"github.com/sluice-go/sluice/scheduler"
	"time"
)

type Flow[O any] struct{ Owner *O }
type Sharing[O any] struct{}

func (s *Sharing[O]) SetRate(scheduler.Rate)                               {}
func (s *Sharing[O]) Advance(now time.Duration, running bool)              {}
func (s *Sharing[O]) Join(f *Flow[O], cost, weight int64, order uint64)    {}
func (s *Sharing[O]) Left(f *Flow[O], cost int64)                          {}
func (s *Sharing[O]) Succeed(f *Flow[O], cost, weight int64, order uint64) {}
func (s *Sharing[O]) Replace(f *Flow[O], cost int64, order uint64)         {}
func (s *Sharing[O]) Dry(f *Flow[O])                                       {}
func (s *Sharing[O]) Charge(f *Flow[O], cost, weight int64)                {}
func (s *Sharing[O]) First() *Flow[O]                                      { return nil }
func (s *Sharing[O]) Passed(f *Flow[O]) bool                               { return true }
