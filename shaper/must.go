package shaper

import "github.com/sluice-go/sluice/scheduler"

// MustNew is [New] for arguments that are known to be valid, as constants are: it panics
// with the error that New would return. It is for package variables.
func MustNew(r scheduler.Rate, opts ...Option) *Shaper { return must(New(r, opts...)) }

// MustNewFrom is [NewFrom], but panics with its error; see [MustNew].
func MustNewFrom(s scheduler.Scheduler, opts ...Option) *Shaper { return must(NewFrom(s, opts...)) }

// MustNewGroup is [NewGroup], but panics with its error; see [MustNew].
func MustNewGroup[K comparable](r scheduler.Rate, opts ...Option) *Group[K] {
	return must(NewGroup[K](r, opts...))
}

func must[T any](made T, err error) T {
	if err != nil {
		panic(err)
	}
	return made
}
