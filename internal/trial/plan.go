package trial

import (
	"fmt"
	"math/rand/v2"
	"strconv"
)

const (
	seedVar = "SLUICE_SEED"
	runVar  = "SLUICE_RUN"
	runsVar = "SLUICE_RUNS"
)

// A plan is the runs from first to end, end itself left out, all of one seed.
type plan struct {
	seed, first, end uint64
}

// newPlan is the given number of runs, as far as the environment does not say otherwise.
func newPlan(runs int, getenv func(string) string) (plan, error) {
	// Random and not from the clock, which stands still at the start of a synctest bubble.
	p := plan{seed: rand.Uint64(), end: uint64(runs)}
	number := func(name string, set func(n uint64)) error {
		text := getenv(name)
		if text == "" {
			return nil
		}
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			return fmt.Errorf("trial: %s=%q is not a number", name, text)
		}
		set(n)
		return nil
	}
	if err := number(seedVar, func(n uint64) { p.seed = n }); err != nil {
		return plan{}, err
	}
	if err := number(runsVar, func(n uint64) { p.end = n }); err != nil {
		return plan{}, err
	}
	return p, number(runVar, func(n uint64) { p.first, p.end = n, n+1 })
}
