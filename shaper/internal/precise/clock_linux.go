package precise

import (
	"syscall"
	"time"
)

// clockIsReal reports whether time.Now reads the machine's clock. Inside a bubble of
// testing/synctest and in a build with faked time it does not; the kernel, asked
// directly, does not know of either.
func clockIsReal() bool {
	// A step of the machine's clock between two readings looks like a fake. Steps are
	// rare: three in a row are none.
	for range 3 {
		var before, behind syscall.Timeval
		if syscall.Gettimeofday(&before) != nil {
			return false
		}
		now := time.Now().UnixNano()
		if syscall.Gettimeofday(&behind) != nil {
			return false
		}
		// The kernel's readings are cut to microseconds.
		if now >= before.Nano() && now < behind.Nano()+int64(time.Microsecond) {
			return true
		}
	}
	return false
}
