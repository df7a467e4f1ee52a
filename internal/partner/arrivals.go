package partner

import "time"

// An arrival is an accepted call.
type arrival struct {
	at    time.Duration
	units int64
}

// arrivals is a log of accepted calls, oldest first, and the sum of their units.
type arrivals struct {
	log   []arrival
	units int64
}

func (a *arrivals) add(at time.Duration, n int64) {
	// The forgotten head of the array is dropped whenever append has to grow it,
	// so it never holds much more than the live calls.
	a.log = append(a.log, arrival{at, n})
	a.units += n
}

// forget drops the calls before horizon.
func (a *arrivals) forget(horizon time.Duration) {
	for len(a.log) > 0 && a.log[0].at < horizon {
		a.units -= a.log[0].units
		a.log = a.log[1:]
	}
}

// reaches returns when the sum of units, from the oldest call on, reached n. The
// log must hold as many.
func (a *arrivals) reaches(n int64) time.Duration {
	i := 0
	for n > a.log[i].units {
		n -= a.log[i].units
		i++
	}
	return a.log[i].at
}
