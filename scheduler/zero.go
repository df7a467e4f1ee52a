package scheduler

import "fmt"

// A zero value of a schedule has no limit to keep. It would let nothing leave for ever,
// and silently, so only the method that loads a state works.

// mustBeMade panics for a zero value.
func mustBeMade(made bool, name string) {
	if !made {
		panicZero(name)
	}
}

func panicZero(name string) {
	panic("scheduler: a zero " + name + ": make it with New" + name + ", or load a state")
}

// errZeroState is for a state that no schedule could load.
func errZeroState(name string) error {
	return fmt.Errorf("scheduler: state: a zero %s has none", name)
}
