package shaper

// ForcePrecise has [WithPreciseTiming] take effect in bubbles, too, until restore is
// called. Its alarm goes by a timer of the bubble there, so it is exact.
func ForcePrecise() (restore func()) {
	before := preciseAvailable
	preciseAvailable = func() bool { return true }
	return func() { preciseAvailable = before }
}
