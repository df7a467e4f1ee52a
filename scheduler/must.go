package scheduler

// Must returns what a constructor of this package has made, and panics with its error. It
// is for arguments that are known to be valid, as constants are:
//
//	shaper.WithLimits(scheduler.Must(scheduler.NewFixedWindow(10_000, 24*time.Hour)))
func Must[T any](made T, err error) T {
	if err != nil {
		panic(err)
	}
	return made
}
