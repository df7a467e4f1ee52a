package shaper

import "github.com/sluice-go/sluice/scheduler"

// MustNew is [New] for arguments that are known to be valid, as constants are: it panics
// with the error that New would return. It is for package variables.
func MustNew(r scheduler.Rate, opts ...Option) *Shaper { return scheduler.Must(New(r, opts...)) }

// MustNewFrom is [NewFrom], but panics with its error; see [MustNew].
func MustNewFrom(s scheduler.Scheduler, opts ...Option) *Shaper {
	return scheduler.Must(NewFrom(s, opts...))
}

// MustNewGroup is [NewGroup], but panics with its error; see [MustNew].
func MustNewGroup[K comparable](r scheduler.Rate, opts ...Option) *Group[K] {
	return scheduler.Must(NewGroup[K](r, opts...))
}
